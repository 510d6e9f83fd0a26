"""Ports: which are free, who has the others, and which setting moves ours."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import psutil

from inferdeck.errors import CannotRun

__all__ = ["free_ports", "is_free", "listener", "require_free"]


def is_free(host: str, port: int) -> bool:
    """Return whether *port* can be bound on *host* now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # as servers do: a port whose last connections linger in TIME_WAIT is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return *count* different ports that are free now.

    All are held until the last is found, so that none is given twice; afterwards somebody else may still take one.
    """
    held = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for one in held:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


def listener(port: int) -> str:
    """Return who listens on *port* as "name, pid N", or "" where we may not see it."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr.port == port
                and connection.pid
            ):
                return f"{psutil.Process(connection.pid).name()}, pid {connection.pid}"
    except (psutil.Error, OSError):
        return ""
    return ""


def require_free(host: str, ports: Mapping[str, int]) -> None:
    """Refuse to go on when a port is taken or given twice.

    Args:
        host: Address to bind.
        ports: Port by the name of its setting.

    Raises:
        CannotRun: Names each taken port, who has it, and the variable that moves ours: all at once, so that a second
            try meets no second surprise.
    """
    seen: dict[int, str] = {}
    wrong: list[str] = []
    movable: list[str] = []
    for setting, port in ports.items():
        variable = f"INFERDECK_STACK_{setting.upper()}"
        if port in seen:
            wrong.append(f"port {port} is set for both {seen[port]} and {setting}")
            movable.append(variable)
            continue
        seen[port] = setting
        if not is_free(host, port):
            _refuse_for_other_reasons(host, port, variable)
            who = listener(port)
            wrong.append(f"port {port} ({setting}) is taken{f' by {who}' if who else ''}")
            movable.append(variable)
    if len(wrong) == 1:
        stop_it = "" if "set for both" in wrong[0] else "stop that, or "
        raise CannotRun(wrong[0], f"{stop_it}set {movable[0]} to another port")
    if wrong:
        raise CannotRun("; ".join(wrong), f"stop those, or set {', '.join(movable)} to other ports")


def _refuse_for_other_reasons(host: str, port: int, variable: str) -> None:
    """Tell an address that is not ours, or a port that needs more rights, from one that is taken."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
    except OSError as error:
        raise CannotRun(
            f"cannot listen on {host}: {error.strerror}", "set INFERDECK_STACK_HOST to an address of this machine"
        ) from error
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((host, port))
    except PermissionError as error:
        raise CannotRun(f"this user may not listen on port {port}", f"set {variable} to a port above 1023") from error
    except OSError:
        return
