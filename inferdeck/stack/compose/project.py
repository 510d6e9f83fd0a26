"""One compose project: what is asked for, what is written down about it, and the command line that acts on it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.compose.engine import Engine
from inferdeck.stack.compose.env_file import SECRETS, read_env_file
from inferdeck.stack.state import write_private
from inferdeck.version import ROOT, commit

__all__ = [
    "COMPOSE_FILE",
    "ENV_FILE_VARIABLE",
    "NOTIFIERS",
    "PORTS",
    "Project",
    "compose_services",
    "forget_project",
    "read_project",
    "run_compose",
    "write_project",
]

COMPOSE_FILE = "docker-compose.observability.yml"
ENV_FILE_VARIABLE = "INFERDECK_COMPOSE_ENV_FILE"
FORMAT = 1
# Who tells of alerts: with Grafana, Prometheus evaluates the same rules and notifies nobody.
NOTIFIERS = ("grafana", "alertmanager")
# Setting of each port that the compose file publishes at a fixed place.
PORTS = ("exporter_port", "triage_port", "prometheus_port", "alertmanager_port", "grafana_port", "jaeger_port")


@dataclass(frozen=True)
class Project:
    """A compose project as it was brought up.

    Attributes:
        name: Its name; containers, network and volumes bear it.
        root: The checkout that holds the compose file.
        engine: What runs it.
        env_file: Where its secrets are.
        profiles: Profiles that were asked for.
        services: Parts that were asked for, by their names in the compose file.
        variables: What the settings say to the compose file: ports, notifier.
        started_unix: When it was brought up, in seconds.
    """

    name: str
    root: Path
    engine: Engine
    env_file: Path
    profiles: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    scale: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    started_unix: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the project as plain JSON values; its secrets stay in their file."""
        plain = {"root": str(self.root), "env_file": str(self.env_file), "engine": self.engine.to_json()}
        return {"format": FORMAT} | vars(self) | plain

    @classmethod
    def from_json(cls, raw: Any) -> Project:
        """Read a project back.

        Raises:
            KeyError, ValueError, TypeError: If it is none.
        """
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ValueError(f"not a record of format {FORMAT}")
        return cls(
            name=str(raw["name"]),
            root=Path(raw["root"]),
            engine=Engine.from_json(raw["engine"]),
            env_file=Path(raw["env_file"]),
            profiles=tuple(raw["profiles"]),
            services=tuple(raw["services"]),
            scale=int(raw["scale"]),
            variables=dict(raw["variables"]),
            started_unix=float(raw["started_unix"]),
        )


def compose_services(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Return the profiles of each part in the compose file; none for a part that always starts.

    Args:
        root: The checkout.

    Raises:
        CannotRun: If there is no compose file, as in an installed package.
    """
    path = root / COMPOSE_FILE
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRun(
            f"there is no {COMPOSE_FILE} in {root}", "the compose stack starts from a checkout of the repository"
        ) from error
    except yaml.YAMLError as error:
        raise CannotRun(f"{path} is no YAML: {str(error).partition(chr(10))[0]}", "run `inferdeck check`") from error
    return {name: tuple(service.get("profiles", ())) for name, service in document["services"].items()}


def variables_of(settings: StackSettings, engine: Engine, notifier: str, scale: int) -> dict[str, str]:
    """Return what the settings say to the compose file.

    Args:
        settings: Ports of the stack.
        engine: Docker finds a place in a range of ports for each container of a scaled service, podman cannot.
        notifier: grafana or alertmanager.
        scale: Containers of the service.
    """
    first = settings.service_port
    # nine more: as many as the range of the compose file's default
    several = f"{first}-{first + max(9, scale - 1)}" if engine.name == "docker" else ""
    alerting = "./alerts/grafana/provisioning" if notifier == "grafana" else "./alerts/grafana/withdrawn"
    # what links in messages lead to, as a reader's browser knows it
    links = {
        "INFERDECK_NOTIFY_GRAFANA_URL": f"http://127.0.0.1:{settings.grafana_port}",
        "INFERDECK_NOTIFY_TRIAGE_URL": f"http://127.0.0.1:{settings.triage_port}",
        "INFERDECK_RUNBOOK_URL": f"http://127.0.0.1:{settings.triage_port}/",
        "INFERDECK_JAEGER_URL": f"http://127.0.0.1:{settings.jaeger_port}",
    }
    return {
        **{f"INFERDECK_STACK_{name.upper()}": str(getattr(settings, name)) for name in PORTS},
        **links,
        "INFERDECK_SERVICE_HOST_PORTS": str(first) if scale == 1 else several,
        "INFERDECK_NOTIFIER": notifier,
        "INFERDECK_GRAFANA_ALERTING": alerting,
        "INFERDECK_COMMIT": commit(),
    }


def record_path(state_dir: Path) -> Path:
    """Return the path of the record of a state folder's project."""
    return state_dir / "run" / "compose.json"


def write_project(state_dir: Path, project: Project) -> Project:
    """Write down what runs, with the present time."""
    project = replace(project, started_unix=time.time())
    write_private(record_path(state_dir), json.dumps(project.to_json(), indent=1))
    return project


def read_project(state_dir: Path) -> Project | None:
    """Return the project that was brought up from a state folder, or None.

    Raises:
        CannotRun: If its record cannot be read.
    """
    path = record_path(state_dir)
    try:
        return Project.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRun(
            f"{path} cannot be read ({type(error).__name__}: {error})",
            "look for its containers with `docker ps` or `podman ps`, then delete the file",
        ) from error


def forget_project(state_dir: Path) -> None:
    """Remove the record, once nothing runs any more."""
    record_path(state_dir).unlink(missing_ok=True)


def run_compose(
    project: Project, *words: str, timeout_seconds: float, show: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the engine's compose program on a project.

    Args:
        project: The project.
        words: Verb and its options.
        timeout_seconds: How long it may take; an image may have to be built.
        show: Let what it says through to stderr: builds take minutes.

    Raises:
        CannotRun: If it does not end in time.
    """
    profiles = [word for name in project.profiles for word in ("--profile", name)]
    argv = (*project.engine.compose, "-p", project.name, "-f", str(project.root / COMPOSE_FILE))
    argv = (*argv, "--env-file", str(project.env_file), *profiles, *words)
    # a lost file of secrets must not keep anybody from ending what runs: the compose file only asks that they are there
    stand_ins = dict.fromkeys(SECRETS, "lost") if not project.env_file.exists() else {}
    known = read_env_file(project.env_file)
    told = {name: value for name, value in project.variables.items() if name not in known}
    environment = {**os.environ, **stand_ins, **told}
    if not project.env_file.exists():
        argv = tuple(word for word in argv if word not in {"--env-file", str(project.env_file)})
    try:
        return subprocess.run(
            argv,
            cwd=project.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if not show else 2,
            stderr=subprocess.PIPE if not show else None,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotRun(
            f"{project.engine.compose[0]} {words[0]} did not end within {timeout_seconds:.0f} s", "look at its output"
        ) from error


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a program wrote, as far as it was kept."""
    lines: Sequence[str] = [line for text in (done.stdout, done.stderr) for line in (text or "").strip().splitlines()]
    return lines[-1] if lines else "see above"


def notifier_of(profiles: Sequence[str], known: Mapping[str, str]) -> str:
    """Return who tells of alerts: what the file of variables says, else Alertmanager when its profile is asked for."""
    return known.get("INFERDECK_NOTIFIER") or ("alertmanager" if "alertmanager" in profiles else "grafana")
