"""Which program runs compose files here, and what it says about containers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from inferdeck.errors import CannotRun
from inferdeck.stack.compose.engine import Engine, find_engine, read_containers

PODMAN = Engine("podman", ("podman-compose",), ("podman",))


class Machine:
    """Stands for the programs of a machine: which are there, and what they answer."""

    def __init__(self, *programs: str, fails: Sequence[str] = (), inspected: Sequence[dict[str, Any]] = ()) -> None:
        self.programs = programs
        self.fails = fails
        self.inspected = inspected
        self.asked: list[str] = []

    def which(self, name: str) -> str | None:
        """Return the program's path."""
        return f"/bin/{name}" if name in self.programs else None

    def run(self, argv: Sequence[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        """Answer as the program would."""
        line = " ".join(argv)
        self.asked.append(line)
        out = "a b\n" if " ps " in line and self.inspected else json.dumps(self.inspected) if "inspect" in line else ""
        return subprocess.CompletedProcess(argv, int(any(word in line for word in self.fails)), out, "it said no")


def inspected(service: str = "service", number: str = "1", **state: Any) -> dict[str, Any]:
    """Return what docker inspect says of a container."""
    return {
        "Name": f"/x_{service}_{number}",
        "State": {"Status": "running", "ExitCode": 0, **state},
        "Config": {
            "Labels": {"com.docker.compose.service": service, "com.docker.compose.container-number": number},
            "Healthcheck": {"Test": ["CMD", "true"]} if "Health" in state else None,
        },
        "NetworkSettings": {"Ports": {"8081/tcp": None, "8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}]}},
    }


def test_docker_is_taken_where_its_compose_and_its_daemon_answer() -> None:
    """Else podman, when both its programs are there."""
    all_programs = ("docker", "podman", "podman-compose")

    assert "docker" == find_engine({}, (m := Machine(*all_programs)).run, m.which).name
    for broken in ("compose version", "docker info"):
        assert "podman" == find_engine({}, (m := Machine(*all_programs, fails=[broken])).run, m.which).name


def test_a_wish_is_followed() -> None:
    """Podman where both work; and nothing else is tried when the wished one does not."""
    machine = Machine("docker", "podman", "podman-compose")
    assert "podman" == find_engine({"INFERDECK_COMPOSE_ENGINE": "podman"}, machine.run, machine.which).name
    assert [] == [line for line in machine.asked if "docker" in line]
    with pytest.raises(CannotRun, match="INFERDECK_COMPOSE_ENGINE is 'lxc'; set it to docker or podman"):
        find_engine({"INFERDECK_COMPOSE_ENGINE": "lxc"}, machine.run, machine.which)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Machine(), "docker is not there; podman is not there"),
        (Machine("docker", fails=["compose version"]), "docker has no compose plugin; podman is not there"),
        (Machine("docker", "podman", fails=["info"]), "the daemon of docker does not answer; podman-compose is not"),
        (Machine("podman", "podman-compose", fails=["info"]), "docker is not there; podman does not work here"),
    ],
)
def test_where_nothing_works_each_is_said_what_it_lacks(machine: Machine, said: str) -> None:
    """With the mend, in one line."""
    with pytest.raises(CannotRun, match=said) as caught:
        find_engine({}, machine.run, machine.which)

    assert "install Docker with its compose plugin, or podman and podman-compose" in caught.value.mend


def test_containers_are_told_by_part_state_health_and_port() -> None:
    """A second container of a service bears its number; an ended one its exit code."""
    machine = Machine(
        inspected=[
            inspected(number="2", Health={"Status": "starting"}),
            inspected(Health={"Status": "healthy"}),
            inspected("jaeger", Status="exited", ExitCode=137),
        ]
    )
    found = read_containers(PODMAN, "x", machine.run)

    assert ["jaeger", "service", "service-2"] == [one.part for one in found]
    assert [False, True, False] == [one.ready for one in found]
    assert [137, None, None] == [one.exit_code for one in found]
    assert [8080, 8080, 8080] == [one.port for one in found]


def test_podmans_health_checks_are_run_since_nobody_else_does() -> None:
    """Only of running containers that have one; docker runs its own."""
    told = [inspected(Health={"Status": "starting"}), inspected("jaeger"), inspected("triage", Status="exited")]
    for engine, expected in ((PODMAN, ["podman healthcheck run x_service_1"]), (Engine("docker", (), ("docker",)), [])):
        machine = Machine(inspected=told)
        read_containers(engine, "x", machine.run)

        assert expected == [line for line in machine.asked if "healthcheck" in line]


def test_an_engine_that_refuses_is_said_with_its_last_words() -> None:
    """And one that has nothing of ours says so by an empty list."""
    assert [] == read_containers(PODMAN, "x", Machine().run)
    with pytest.raises(CannotRun, match="podman ps failed: it said no"):
        read_containers(PODMAN, "x", Machine(fails=[" ps "]).run)


def test_an_engine_is_read_back_as_written() -> None:
    """From the record of a project."""
    assert Engine.from_json(json.loads(json.dumps(PODMAN.to_json()))) == PODMAN
