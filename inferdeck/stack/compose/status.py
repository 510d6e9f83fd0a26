"""What `status` says about a compose stack, in the shape of the embedded one's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inferdeck.stack.compose.commands import log_tail_of
from inferdeck.stack.compose.engine import Container, read_containers
from inferdeck.stack.compose.project import Project
from inferdeck.stack.status import JOB_OF_PART, last_scrapes

__all__ = ["describe_project"]

Ask = Callable[[Project], list[Container]]


def _health(one: Container) -> tuple[str, str]:
    if one.state != "running":
        return "dead", f"{one.state} with {one.exit_code}"
    return ("up", "") if one.ready else ("unhealthy", one.health)


def _row(one: Container, ages: dict[str, float], log: Callable[[str], list[str]]) -> dict[str, Any]:
    health, detail = _health(one)
    return {
        "name": one.part,
        "health": health,
        "detail": detail,
        "pid": None,
        "port": one.port or 0,
        "url": f"http://127.0.0.1:{one.port}" if one.port else "",
        "last_scrape_age_s": ages.get(JOB_OF_PART.get(one.service, "")),
        "exit_code": one.exit_code,
        "log": f"container {one.name}",
        "log_tail": log(one.name) if health == "dead" else [],
    }


def describe_project(
    project: Project,
    state_dir: Path,
    ask: Ask = lambda project: read_containers(project.engine, project.name),
    log: Callable[[Project, str], list[str]] = lambda project, name: log_tail_of(project.engine, name, 10),
) -> dict[str, Any]:
    """Return the state of a compose project in the shape of `status`.

    Args:
        project: What was brought up.
        state_dir: Where that is written down.
        ask: Returns its containers.
        log: Returns the last lines of a container.
    """
    containers = ask(project)
    ages = last_scrapes(_url(containers, "prometheus"), time.time()) if _url(containers, "prometheus") else {}
    rows = [_row(one, ages, lambda name: log(project, name)) for one in containers]
    gone = sorted(set(project.services) - {one.service for one in containers})
    well = bool(rows) and not gone and all(row["health"] == "up" for row in rows)
    return {
        "state": "up" if well else "degraded" if any(one.state == "running" for one in containers) else "down",
        "note": f"without a container: {', '.join(gone)}" if gone and rows else "",
        "phase": "ready",
        "state_dir": str(state_dir),
        "ring_dir": f"volume {project.name}_rows",
        "parts": rows,
    }


def _url(containers: Sequence[Container], part: str) -> str:
    return next((f"http://127.0.0.1:{one.port}" for one in containers if one.service == part and one.port), "")
