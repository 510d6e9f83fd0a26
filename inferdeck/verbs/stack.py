"""`up`, `down`, `status`."""

from __future__ import annotations

from typing import Any

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["down", "status", "up"]


@click.command(short_help="Start the whole stack.")
@click.option("--foreground", is_flag=True, help="Stay, show what happens, and stop everything on Ctrl-C.")
@click.option(
    "--stack",
    type=click.Choice(["embedded", "compose"]),
    default="embedded",
    show_default=True,
    help="Processes of this machine, or containers with Grafana and Jaeger as well.",
)
@click.option(
    "--backend",
    type=click.Choice(["onnx", "triton"]),
    help="Embedded: the model in the service's process, or behind a real Triton; the setting's by default.",
)
@click.option("--stream/--no-stream", default=None, help="Embedded: a stream of user queries as well; see docs.")
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="Compose: a profile of the file as well.")
@click.option("--without", multiple=True, metavar="PART", help="Compose: a part that shall not start.")
@click.option("--scale", type=click.IntRange(1, 16), default=1, metavar="N", help="Compose: containers of the service.")
@click.option("--build/--no-build", default=True, help="Compose: build our images first, or take those that are there.")
@reports
def up(
    *, foreground: bool, stack: str, backend: str | None, stream: bool | None, quiet: bool, **compose: Any
) -> Outcome:
    r"""Start the whole stack: service, exporter, triage, Alertmanager, Prometheus.

    Returns when every part is ready, and prints where each is found. Trains the model when there is none (about half a
    minute). Without Prometheus on this machine the rest still runs, and what is missing is said. When a stack runs
    and a part of it has ended, that part is started again.

    With --stack compose the same runs in containers (docker compose, else podman-compose), beside Grafana and Jaeger;
    the secrets it needs are written to .env, readable by you alone.

    \b
    Examples:
      inferdeck up
      inferdeck up --backend triton
      inferdeck up --stream
      inferdeck up --stack compose --scale 3
      INFERDECK_STACK_SERVICE_PORT=18080 inferdeck up
      inferdeck up --foreground
    """
    if stack == "compose":
        if backend is not None or stream is not None:
            raise click.UsageError("--backend and --stream belong to the embedded stack")
        return _compose_up(foreground=foreground, quiet=quiet, **compose)
    _refuse_compose_options(compose)

    from inferdeck.settings import load_settings
    from inferdeck.stack.commands import stack_urls
    from inferdeck.stack.commands import up as start_stack
    from inferdeck.stack.compose.commands import refuse_beside_compose
    from inferdeck.terminal import progress_bar, sayer

    asked = {"backend": backend, "stream": stream}
    settings = load_settings(**{name: value for name, value in asked.items() if value is not None})
    refuse_beside_compose(settings)
    with progress_bar("training the model", quiet=quiet) as progress:
        state = start_stack(settings, sayer(quiet=quiet), progress, foreground=foreground)
    missing = {part.name: part.left_out for part in state.parts if part.left_out}
    urls = stack_urls(state)
    payload = {"urls": urls, "missing": missing, "state_dir": state.state_dir, "ring_dir": state.ring_dir}
    return Outcome(payload, 0, lambda console: console.print(f"up: {urls['service']}   next: inferdeck status"))


def _refuse_compose_options(compose: dict[str, Any]) -> None:
    if compose["profiles"] or compose["without"] or compose["scale"] != 1 or not compose["build"]:
        raise click.UsageError("--profile, --without, --scale and --no-build belong to --stack compose")


def _compose_up(*, foreground: bool, quiet: bool, **compose: Any) -> Outcome:
    from inferdeck.settings import load_settings
    from inferdeck.stack.compose.commands import compose_up, compose_urls
    from inferdeck.terminal import sayer

    if foreground:
        raise click.UsageError("--foreground belongs to the embedded stack; follow containers with `docker logs -f`")
    settings = load_settings()
    project, containers = compose_up(settings, sayer(quiet=quiet), **compose)
    urls = compose_urls(containers)
    payload = {
        "urls": urls,
        "missing": dict.fromkeys(compose["without"], "left out as asked"),
        "state_dir": str(settings.state_path),
        "ring_dir": f"volume {project.name}_rows",
    }
    lines = [f"{name}: {url}" for name, url in urls.items()]
    lines += [f"secrets: {project.env_file}", "next: inferdeck status"]
    return Outcome(payload, 0, lambda console: console.print("\n".join(lines), markup=False, soft_wrap=True))


@click.command()
@click.option(
    "--purge", is_flag=True, help="Delete rows, logs, reports and Prometheus' data as well; bundles/ and drills/ stay."
)
@reports
def down(*, purge: bool, quiet: bool) -> Outcome:
    r"""Stop the stack and keep its data.

    Ends only processes that `up` started, by pid and start time: TERM first, KILL after a grace. The stack is that of
    the state folder: .inferdeck in the working folder, or INFERDECK_STATE_DIR. With --purge its bundles/ and drills/
    stay: incidents that were handed on, and evidence.

    \b
    Examples:
      inferdeck down
      inferdeck down --purge
    """
    from inferdeck.settings import load_settings
    from inferdeck.stack.commands import down as stop_stack
    from inferdeck.stack.compose.commands import compose_down
    from inferdeck.stack.compose.project import read_project

    del quiet
    settings = load_settings()
    if (project := read_project(settings.state_path)) is not None:
        payload = compose_down(project, settings.state_path, purge=purge)
    else:
        payload = stop_stack(settings, purge=purge)
    return Outcome(payload, 0, lambda console: console.print(down_line(payload), markup=False, soft_wrap=True))


def down_line(payload: dict[str, Any]) -> str:
    """Return what `down` has done, in one line; where it looked when it found nothing to end."""
    from inferdeck.settings import STATE_VARIABLE

    kept = f"; kept: {', '.join(payload['kept'])}" if payload["kept"] else ""
    if names := ", ".join(f"{one['name']} ({one['how']})" for one in payload["stopped"]):
        return f"down: {names}{kept}"
    return (
        f"down: nothing was running from {payload['state_dir']}; "
        f"for a stack of another state folder set {STATE_VARIABLE}{kept}"
    )


@click.command(short_help="Show health, process and port of each part.")
@reports
def status(*, quiet: bool) -> Outcome:
    r"""Show each part: process, port, health, age of the last scrape; the last words of dead ones.

    The stack is that of the state folder: .inferdeck in the working folder, or INFERDECK_STATE_DIR. Exit 0 when all
    parts are up, 1 when one is not or nothing runs.

    \b
    Examples:
      inferdeck status
      inferdeck status --json
    """
    from inferdeck.settings import load_settings
    from inferdeck.stack.compose.project import read_project
    from inferdeck.stack.compose.status import describe_project
    from inferdeck.stack.state import read_state
    from inferdeck.stack.status import describe
    from inferdeck.stack.status_view import show_status

    del quiet
    state_dir = load_settings().state_path
    project = read_project(state_dir)
    payload = describe_project(project, state_dir) if project else describe(read_state(state_dir), state_dir)
    return Outcome(payload, 0 if payload["state"] == "up" else 1, lambda console: show_status(console, payload))
