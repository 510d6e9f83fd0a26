"""A taken port names itself, who has it, and the variable that moves ours."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from inferdeck.errors import CannotRun
from inferdeck.stack.ports import free_ports, is_free, listener, require_free


@pytest.fixture
def taken() -> Iterator[int]:
    """Listen on a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_a_taken_port_is_refused_with_its_setting(taken: int) -> None:
    """The line holds port, setting, our pid as the listener, and the variable."""
    with pytest.raises(CannotRun) as caught:
        require_free("127.0.0.1", {"service_port": taken})

    line = str(caught.value)
    assert f"port {taken} (service_port) is taken" in line
    assert f"pid {os.getpid()}" in line
    assert "INFERDECK_STACK_SERVICE_PORT" in line


def test_all_taken_ports_are_named_at_once(taken: int) -> None:
    """Whoever moves one should not meet the next at the second try."""
    (free,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        more = int(other.getsockname()[1])
        ports = {"service_port": taken, "admin_port": free, "exporter_port": more, "x_port": free}
        with pytest.raises(CannotRun) as caught:
            require_free("127.0.0.1", ports)

    line = str(caught.value)
    assert f"port {taken} (service_port) is taken" in line
    assert f"port {more} (exporter_port) is taken" in line
    assert f"port {free} is set for both admin_port and x_port" in line
    assert "INFERDECK_STACK_SERVICE_PORT, INFERDECK_STACK_EXPORTER_PORT, INFERDECK_STACK_X_PORT" in line


def test_one_port_for_two_listeners_is_refused() -> None:
    """Two settings with the same port cannot both be served."""
    (port,) = free_ports(1)

    with pytest.raises(CannotRun, match="set for both service_port and admin_port"):
        require_free("127.0.0.1", {"service_port": port, "admin_port": port})


def test_an_address_that_is_not_ours_is_told_as_such() -> None:
    """No port is to blame when the host cannot be bound, or is no name at all."""
    (port,) = free_ports(1)

    for host in ("192.0.2.1", "host.invalid"):  # RFC 5737 and RFC 6761: never an address of this machine
        with pytest.raises(CannotRun, match=f"cannot listen on {host}: .*INFERDECK_STACK_HOST"):
            require_free(host, {"service_port": port})


def test_free_ports_are_free_and_different() -> None:
    """None is given twice, each can be bound."""
    ports = free_ports(6)

    assert 6 == len(set(ports))
    assert all(is_free("127.0.0.1", port) for port in ports)
    require_free("127.0.0.1", {str(port): port for port in ports})


def test_an_unknown_listener_is_empty() -> None:
    """Nobody on a port is no error."""
    (port,) = free_ports(1)

    assert "" == listener(port)
