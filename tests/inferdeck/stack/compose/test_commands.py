"""Bringing up and down, with a program in docker's place that only notes what it is told."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings, load_settings
from inferdeck.stack.compose.commands import compose_down, compose_up, compose_urls
from inferdeck.stack.compose.project import PORTS, compose_services, read_project
from inferdeck.stack.ports import free_ports

# Answers as docker does: what `up` started is there until `down`; a file says how each container is.
DOCKER = """\
#!{python}
import json, sys
from pathlib import Path

home = Path({home!r})
words = sys.argv[1:]
with (home / "asked").open("a") as file:
    file.write(" ".join(words) + "\\n")
states = json.loads((home / "states").read_text())
running = home / "running"
if "up" in words:
    running.write_text(json.dumps([word for word in words if word in {parts!r}]))
    sys.exit(states.get("up", 0))
if "build" in words:
    sys.exit(states.get("build", 0))
if "down" in words:
    running.unlink(missing_ok=True)
there = json.loads(running.read_text()) if running.exists() else []
if words[0] == "ps":
    print("\\n".join(there))
if words[0] == "logs":
    print("first words\\nlast words of " + words[-1])
if words[0] == "inspect":
    print(json.dumps([{{
        "Name": "/" + name,
        "State": {{"Status": "running", "ExitCode": 3, "Health": {{"Status": "healthy"}}, **states.get(name, {{}})}},
        "Config": {{"Labels": {{"com.docker.compose.service": name}}, "Healthcheck": {{"Test": ["CMD", "x"]}}}},
        "NetworkSettings": {{"Ports": {{"1/tcp": [{{"HostIp": "127.0.0.1", "HostPort": "4000"}}]}}}},
    }} for name in words[1:]]))
"""


class Docker:
    """The program, what it was asked, and what it answers."""

    def __init__(self, home: Path) -> None:
        self.home = home
        path = home / "docker"
        path.write_text(DOCKER.format(python=sys.executable, home=str(home), parts=set(compose_services())))
        path.chmod(0o755)
        self.answers()

    def answers(self, **states: Any) -> None:
        """Say how containers are: `part={"Status": ...}`, or with which code a verb ends."""
        (self.home / "states").write_text(json.dumps(states))

    def asked(self, word: str) -> list[str]:
        """Return the command lines that hold a word."""
        return [line for line in (self.home / "asked").read_text().splitlines() if f" {word}" in f" {line}"]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """Put the program first on PATH, and all that is written into a folder of its own."""
    home = tmp_path / "docker"
    home.mkdir()
    monkeypatch.setenv("PATH", str(home), prepend=":")
    monkeypatch.setenv("INFERDECK_COMPOSE_ENGINE", "docker")
    monkeypatch.setenv("INFERDECK_COMPOSE_ENV_FILE", str(tmp_path / "secrets.env"))
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    return Docker(home)


def settings(**fields: Any) -> StackSettings:
    """Return settings on free ports, with little patience."""
    names = ("service_port", *PORTS)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    return load_settings(**(ports | {"ready_timeout_seconds": 0.2} | fields))


def test_all_parts_start_once_the_images_are_built_and_are_told_when_well(docker: Docker) -> None:
    """The record says what runs, so that `down` ends just that."""
    lines: list[str] = []
    wanted = settings()
    project, containers = compose_up(wanted, lines.append)

    assert [1, 1] == [len(docker.asked("build")), len(docker.asked("up"))]
    assert "jaeger: ready on http://127.0.0.1:4000" in lines
    assert {"service", "exporter", "triage", "prometheus", "jaeger", "grafana"} == set(compose_urls(containers))
    assert project == read_project(wanted.state_path)
    assert ["service", "exporter"] == [
        word for word in docker.asked("up")[0].split() if word in {"service", "exporter"}
    ]

    result = compose_down(project, wanted.state_path, purge=False)

    assert "--volumes" not in docker.asked("down")[0]
    assert len(project.services) == len(result["stopped"])
    assert read_project(wanted.state_path) is None


def test_it_is_said_when_nobody_would_be_told_of_alerts(docker: Docker) -> None:
    """Without Grafana, and without Alertmanager in its place."""
    for profiles, told in (((), True), (("alertmanager",), False)):
        lines: list[str] = []
        compose_up(settings(), lines.append, without=["grafana"], profiles=profiles, build=False)

        assert told == any("nobody is told of alerts" in line for line in lines)


def test_volumes_go_only_with_a_purge(docker: Docker) -> None:
    """And the file of secrets stays, since Grafana's password is in its kept data no more than there."""
    wanted = settings()
    project, _ = compose_up(wanted, lambda _line: None, build=False)
    result = compose_down(project, wanted.state_path, purge=True)

    assert [] == docker.asked("build")
    assert "--volumes" in docker.asked("down")[0]
    assert [str(project.env_file)] == result["kept"]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"jaeger": {"Status": "exited"}}, r"not ready: jaeger \(exited.*\): last words of jaeger"),
        ({"triage": {"Health": {"Status": "unhealthy"}}}, r"not ready: triage \(running, unhealthy\): last words"),
        ({"up": 1}, "docker: see above"),
    ],
)
def test_what_is_not_well_is_named_and_what_was_started_is_ended(
    docker: Docker, states: dict[str, Any], said: str
) -> None:
    """With its last words; no record is left."""
    docker.answers(**states)
    # one that has ended is told at once, whatever the patience; the test's own time would run out else
    wanted = settings(ready_timeout_seconds=600.0 if "exited" in said else 0.2)
    with pytest.raises(CannotRun, match=said):
        compose_up(wanted, lambda _line: None)

    assert 1 == len(docker.asked("down"))
    assert read_project(wanted.state_path) is None


def test_a_second_up_that_fails_ends_nothing_that_ran_before(docker: Docker) -> None:
    """Whoever mends a running stack must not lose the rest of it."""
    wanted = settings()
    compose_up(wanted, lambda _line: None)
    docker.answers(jaeger={"Status": "exited"})
    with pytest.raises(CannotRun, match="not ready: jaeger"):
        compose_up(wanted, lambda _line: None)

    assert [] == docker.asked("down")
    assert read_project(wanted.state_path) is not None


def test_images_that_cannot_be_built_stop_the_start(docker: Docker) -> None:
    """Nothing was started then."""
    docker.answers(build=1)
    with pytest.raises(CannotRun, match="the images cannot be built"):
        compose_up(settings(), lambda _line: None)

    assert [] == docker.asked("up")


def test_a_taken_port_is_told_before_anything_is_built(docker: Docker) -> None:
    """With the variable that moves ours; not for a port of a part that shall not start."""
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(CannotRun, match=rf"port {port} \(jaeger_port\) is taken.*INFERDECK_STACK_JAEGER_PORT"):
            compose_up(settings(jaeger_port=port), lambda _line: None)
        assert [] == docker.asked("build")

        compose_up(settings(grafana_port=port), lambda _line: None, without=["grafana"])
