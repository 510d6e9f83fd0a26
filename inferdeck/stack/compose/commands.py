"""`up --stack compose` and `down` of what it started."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.compose.engine import Container, Engine, find_engine, read_containers
from inferdeck.stack.compose.env_file import complete_env_file
from inferdeck.stack.compose.project import (
    COMPOSE_FILE,
    ENV_FILE_VARIABLE,
    NOTIFIERS,
    Project,
    compose_services,
    forget_project,
    last_words,
    notifier_of,
    read_project,
    run_compose,
    variables_of,
    write_project,
)
from inferdeck.stack.ports import require_free
from inferdeck.stack.state import only_stack
from inferdeck.version import ROOT

__all__ = ["compose_down", "compose_up", "compose_urls", "refuse_beside_compose"]

Say = Callable[[str], None]
# Images from nothing: the slowest seen took four minutes on two shared cores, training included.
BUILD_SECONDS = 1800.0
# Containers are made one after the other, and images of others may have to be fetched.
START_SECONDS = 900.0
STOP_SECONDS = 180.0


def plan_project(
    settings: StackSettings, engine: Engine, profiles: Sequence[str], without: Sequence[str], scale: int
) -> Project:
    """Return the project that is asked for; its file of secrets is completed.

    Args:
        settings: Ports.
        engine: What will run it.
        profiles: Profiles beside the parts that always start.
        without: Parts that shall not start.
        scale: Containers of the service.

    Raises:
        CannotRun: If a profile or a part is unknown, or the file of secrets cannot be written.
    """
    parts = compose_services()
    known = {name for of_part in parts.values() for name in of_part}
    if unknown := sorted(set(profiles) - known):
        raise CannotRun(f"there is no profile {unknown[0]!r}", f"there are {', '.join(sorted(known))}")
    if unknown := sorted(set(without) - set(parts)):
        raise CannotRun(f"there is no part {unknown[0]!r}", f"there are {', '.join(parts)}")
    env_file = Path(os.environ.get(ENV_FILE_VARIABLE) or ROOT / ".env").absolute()
    variables = complete_env_file(env_file)
    notifier = notifier_of(profiles, variables)
    services = tuple(name for name, of in parts.items() if name not in without and (not of or set(of) & set(profiles)))
    _require_notifier(notifier, services, env_file)
    return Project(
        name=os.environ.get("COMPOSE_PROJECT_NAME") or "inferdeck",
        root=ROOT,
        engine=engine,
        env_file=env_file,
        profiles=tuple(profiles),
        services=services,
        scale=scale,
        variables=variables_of(settings, engine, notifier, scale),
    )


def _require_notifier(notifier: str, services: Sequence[str], env_file: Path) -> None:
    """Refuse a stack in which alerts fire and nobody is told, because the file says another one than what starts."""
    if notifier not in NOTIFIERS:
        raise CannotRun(f"{env_file}: INFERDECK_NOTIFIER is {notifier!r}", f"set it to one of {', '.join(NOTIFIERS)}")
    if notifier == "alertmanager" and notifier not in services:
        raise CannotRun(
            f"{env_file} makes Alertmanager the notifier, and it is not to start",
            "add --profile alertmanager, or take INFERDECK_NOTIFIER out of the file",
        )


def compose_up(
    settings: StackSettings,
    say: Say,
    *,
    profiles: Sequence[str] = (),
    without: Sequence[str] = (),
    scale: int = 1,
    build: bool = True,
) -> tuple[Project, list[Container]]:
    """Bring the compose stack up, and return when every part is well.

    Args:
        settings: Ports, folders and how long getting ready may take.
        say: Gets one line for each step.
        profiles: Profiles beside the parts that always start.
        without: Parts that shall not start.
        scale: Containers of the service.
        build: Build our images first; else those that are there are taken.

    Raises:
        CannotRun: If it cannot be brought up; what this call started is ended then.
    """
    engine = find_engine()
    with only_stack(settings.state_path):
        project = plan_project(settings, engine, profiles, without, scale)
        if not set(NOTIFIERS) & set(project.services):
            say("warning: neither Grafana nor Alertmanager starts, so that nobody is told of alerts")
        before = read_containers(engine, project.name)
        if not before:
            _require_ports(settings, project)
        if build:
            say("building the images (minutes at the first time)")
            done = run_compose(project, "build", timeout_seconds=BUILD_SECONDS, show=True)
            if done.returncode != 0:
                raise CannotRun(f"{COMPOSE_FILE}: the images cannot be built", "read what the build said above")
        try:
            project = write_project(settings.state_path, project)
            _start(project)
            return project, _await_health(project, settings.ready_timeout_seconds * 2, say)
        except BaseException:
            # Ctrl-C as well: nothing is left half started, unless it ran before
            if not before:
                end_project(project, purge=False)
                forget_project(settings.state_path)
            raise


def refuse_beside_compose(settings: StackSettings) -> None:
    """Refuse to start another stack from a state folder whose compose stack runs: `down` would end only one of them.

    Raises:
        CannotRun: If one runs from there.
    """
    project = read_project(settings.state_path)
    if project is not None and read_containers(project.engine, project.name):
        raise CannotRun(
            f"the compose stack {project.name} runs from {settings.state_path}",
            "end it with `inferdeck down`, or set INFERDECK_STATE_DIR",
        )


def _require_ports(settings: StackSettings, project: Project) -> None:
    fixed = {"service_port"} if project.scale == 1 else set()
    fixed |= {f"{part}_port" for part in project.services} & set(type(settings).model_fields)
    require_free("127.0.0.1", {name: getattr(settings, name) for name in sorted(fixed)})


def _start(project: Project) -> None:
    words = ["up", "--detach", "--no-build", "--scale", f"service={project.scale}", *project.services]
    done = run_compose(project, *words, timeout_seconds=START_SECONDS)
    if done.returncode != 0:
        raise CannotRun(f"{project.engine.name}: {last_words(done)}", f"see {COMPOSE_FILE}")


def _await_health(project: Project, patience_seconds: float, say: Say) -> list[Container]:
    deadline = time.monotonic() + patience_seconds
    told: set[str] = set()
    while True:
        containers = read_containers(project.engine, project.name)
        for one in containers:
            if one.ready and one.part not in told:
                told.add(one.part)
                say(f"{one.part}: ready{f' on http://127.0.0.1:{one.port}' if one.port else ''}")
        missing = set(project.services) - {one.service for one in containers}
        if containers and not missing and all(one.ready for one in containers):
            return containers
        # a container that ends is started again by its policy; one that stays ended is told at once
        ended = [one for one in containers if one.state in {"exited", "dead"}]
        if ended or time.monotonic() > deadline:
            raise _not_well(project, ended or [one for one in containers if not one.ready], sorted(missing))
        time.sleep(1.0)


def _not_well(project: Project, bad: Sequence[Container], missing: Sequence[str]) -> CannotRun:
    states = [f"{one.part} ({one.state}{f', {one.health}' if one.health else ''})" for one in bad]
    said = log_tail_of(project.engine, bad[0].name, 1) if bad else []
    words = f": {said[-1]}" if said else ""
    return CannotRun(
        f"not ready: {', '.join([*states, *missing])}{words}",
        f"see `{Path(project.engine.containers[0]).name} logs NAME`",
    )


def log_tail_of(engine: Engine, name: str, lines: int) -> list[str]:
    """Return the last lines that a container wrote; none when they cannot be had."""
    try:
        done = subprocess.run(
            (*engine.containers, "logs", "--tail", str(lines), name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode(errors="replace").splitlines()[-lines:] if done.returncode == 0 else []


def compose_urls(containers: Sequence[Container]) -> dict[str, str]:
    """Return where each part with a published port is found."""
    return {one.part: f"http://127.0.0.1:{one.port}" for one in containers if one.port}


def end_project(project: Project, *, purge: bool) -> list[dict[str, Any]]:
    """Stop and remove the containers of a project, and its network; its volumes only with *purge*.

    Returns:
        Name, pid (None: containers have their own) and way of each that was there.

    Raises:
        CannotRun: If the engine refuses.
    """
    there = read_containers(project.engine, project.name)
    words = ("down", *(["--volumes"] if purge else []))
    done = run_compose(project, *words, timeout_seconds=STOP_SECONDS)
    # podman-compose ends only the first container of a scaled part, and then fails at network and volumes
    if project.engine.name == "podman" and (more := read_containers(project.engine, project.name)):
        remove = (*project.engine.containers, "rm", "--force", "--time", "10", *(one.name for one in more))
        subprocess.run(remove, capture_output=True, timeout=STOP_SECONDS, check=False)
        done = run_compose(project, *words, timeout_seconds=STOP_SECONDS)
    left = read_containers(project.engine, project.name)
    if done.returncode != 0 or left:
        names = ", ".join(one.name for one in left) or last_words(done)
        raise CannotRun(f"{project.engine.name} could not end all of {project.name}: {names}", "end them by hand")
    return [
        {"name": one.part, "pid": None, "how": "term" if one.state == "running" else "gone"}
        for one in there
        if one.state == "running"
    ]


def compose_down(project: Project, state_dir: Path, *, purge: bool) -> dict[str, Any]:
    """End a project and forget it.

    Args:
        project: What runs.
        state_dir: Where that is written down.
        purge: Delete its volumes as well: rows, archive, reports, Prometheus' and Grafana's data.

    Returns:
        As `down` of the embedded stack: `stopped`, `purged`, `kept`.
    """
    stopped = end_project(project, purge=purge)
    forget_project(state_dir)
    volumes = [f"volumes of {project.name}"]
    return {
        "state_dir": str(state_dir),
        "stopped": stopped,
        "purged": volumes if purge else [],
        "kept": [str(project.env_file)] if purge else [],
    }
