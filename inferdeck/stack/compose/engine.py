"""What runs a compose file here (docker compose or podman-compose), and what it says about its containers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun

__all__ = ["ENGINES", "ENGINE_VARIABLE", "Container", "Engine", "find_engine", "read_containers"]

ENGINE_VARIABLE = "INFERDECK_COMPOSE_ENGINE"
ENGINES = ("docker", "podman")
# Both write this label on what they start.
PROJECT_LABEL, SERVICE_LABEL = "com.docker.compose.project", "com.docker.compose.service"
NUMBER_LABEL = "com.docker.compose.container-number"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Which = Callable[[str], str | None]


@dataclass(frozen=True)
class Engine:
    """A program that runs compose files, and the one that runs its containers.

    Attributes:
        name: docker or podman.
        compose: Command line of the former, up to its options.
        containers: Command line of the latter.
    """

    name: str
    compose: tuple[str, ...]
    containers: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the engine as plain JSON values."""
        return {"name": self.name, "compose": list(self.compose), "containers": list(self.containers)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Engine:
        """Read an engine back.

        Raises:
            KeyError, TypeError: If it is none.
        """
        return cls(str(raw["name"]), tuple(raw["compose"]), tuple(raw["containers"]))


@dataclass(frozen=True)
class Container:
    """One container of a project as its engine tells it.

    Attributes:
        name: Its full name, for logs.
        part: The service in the compose file, with a number behind it from the second on.
        service: The service alone.
        state: running, exited, created, and so on.
        health: healthy, unhealthy, starting, or "" when it has no health check.
        exit_code: Of the last end; None while it runs.
        port: The first published port on this machine; None when none is published.
    """

    name: str
    part: str
    service: str
    state: str
    health: str
    exit_code: int | None
    port: int | None

    @property
    def ready(self) -> bool:
        """Whether it runs and its health check, if any, says that it is well."""
        return self.state == "running" and self.health in {"healthy", ""}


def _search_path() -> Which:
    # beside this interpreter as well: a virtual environment is used without being activated
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return lambda name: shutil.which(name, path=folders)


def _answers(run: Run, argv: Sequence[str]) -> bool:
    try:
        return run(argv, capture_output=True, text=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _docker(run: Run, which: Which) -> Engine | str:
    docker = which("docker")
    if docker is None:
        return "docker is not there"
    if not _answers(run, (docker, "compose", "version")):
        return "docker has no compose plugin"
    if not _answers(run, (docker, "info")):
        return "the daemon of docker does not answer"
    return Engine("docker", (docker, "compose"), (docker,))


def _podman(run: Run, which: Which) -> Engine | str:
    podman, compose = which("podman"), which("podman-compose")
    if podman is None or compose is None:
        return f"{'podman' if podman is None else 'podman-compose'} is not there"
    if not _answers(run, (podman, "info")):
        return "podman does not work here (`podman info` fails)"
    # a pod would be one more thing to remove, and nothing here shares one
    return Engine("podman", (compose, "--podman-path", podman, "--in-pod=false"), (podman,))


def find_engine(
    environment: Mapping[str, str] = os.environ, run: Run = subprocess.run, which: Which | None = None
) -> Engine:
    """Return what can run a compose file on this machine.

    Args:
        environment: `INFERDECK_COMPOSE_ENGINE` names one of `ENGINES`; else the first that works is taken.
        run: Starts a program.
        which: Finds a program.

    Raises:
        CannotRun: If nothing can; says of each what is missing.
    """
    which = which or _search_path()
    wanted = environment.get(ENGINE_VARIABLE, "")
    if wanted and wanted not in ENGINES:
        raise CannotRun(f"{ENGINE_VARIABLE} is {wanted!r}", f"set it to {' or '.join(ENGINES)}, or unset it")
    tried: list[str] = []
    for name, look in (("docker", _docker), ("podman", _podman)):
        if wanted in {"", name}:
            found = look(run, which)
            if isinstance(found, Engine):
                return found
            tried.append(found)
    raise CannotRun(
        f"no program for compose files works here: {'; '.join(tried)}",
        "install Docker with its compose plugin, or podman and podman-compose; `inferdeck up` alone needs neither",
    )


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        return 1


def _port(raw: Mapping[str, Any]) -> int | None:
    for bindings in ((raw.get("NetworkSettings") or {}).get("Ports") or {}).values():
        for binding in bindings or ():
            if port := str(binding.get("HostPort", "")):
                return int(port)
    return None


def _container(raw: Mapping[str, Any]) -> Container:
    state, config = raw["State"], raw["Config"]
    labels = config.get("Labels") or {}
    service, number = labels.get(SERVICE_LABEL, "?"), _number(labels.get(NUMBER_LABEL))
    status = str(state["Status"])
    checked = bool(config.get("Healthcheck")) and (config["Healthcheck"].get("Test") or ["NONE"])[0] != "NONE"
    health = str((state.get("Health") or state.get("Healthcheck") or {}).get("Status", "")) if checked else ""
    return Container(
        name=str(raw["Name"]).lstrip("/"),
        part=service if number == 1 else f"{service}-{number}",
        service=service,
        state=status,
        health=health or ("starting" if checked else ""),
        exit_code=None if status == "running" else int(state.get("ExitCode", 0)),
        port=_port(raw),
    )


def read_containers(engine: Engine, project: str, run: Run = subprocess.run) -> list[Container]:
    """Return the containers of a project, ended ones as well, in the order of their parts.

    Podman runs health checks only under systemd; without it each is run here, before the states are read.

    Args:
        engine: What runs them.
        project: Name of the project.
        run: Starts a program.

    Raises:
        CannotRun: If the engine does not answer.
    """

    def ask(*words: str) -> str:
        try:
            done = run((*engine.containers, *words), capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotRun(f"{engine.name} does not answer: {error}", "see whether it runs") from error
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no word why"])[-1]
            raise CannotRun(f"{engine.name} {words[0]} failed: {last}", f"see whether {engine.name} runs")
        return done.stdout

    ids = ask("ps", "--all", "--quiet", "--filter", f"label={PROJECT_LABEL}={project}").split()
    if not ids:
        return []
    found = [_container(raw) for raw in json.loads(ask("inspect", *ids))]
    if engine.name == "podman":
        for one in found:
            if one.state == "running" and one.health:
                # exit 1 says unhealthy, which is written down and read below
                run((*engine.containers, "healthcheck", "run", one.name), capture_output=True, timeout=30, check=False)
        found = [_container(raw) for raw in json.loads(ask("inspect", *ids))]
    return sorted(found, key=lambda one: one.part)
