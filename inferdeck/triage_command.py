"""Behind `inferdeck triage`: finds the sources of the stack, runs the engine, shows its answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.look_up import ring_folder
from inferdeck.result import Outcome
from inferdeck.settings import STATE_VARIABLE, StackSettings
from inferdeck.stack.state import read_state

if TYPE_CHECKING:
    from rich.console import Console

    from runbooks.sources import Sources

__all__ = ["open_sources", "prometheus_url", "run_triage", "triage_bundle"]


def prometheus_url(settings: StackSettings) -> str:
    """Return where Prometheus is: `INFERDECK_PROMETHEUS_URL`, else the running stack's, else the settings' port."""
    if given := os.environ.get("INFERDECK_PROMETHEUS_URL"):
        return given
    state = read_state(settings.state_path)
    part = state.part("prometheus") if state else None
    return part.url if part else f"http://{settings.host}:{settings.prometheus_port}"


def _read_notification(path: Path) -> dict[str, Any]:

    from runbooks.payloads import MOST_BYTES

    try:
        if str(path) == "-":
            # bounded: a notification comes from elsewhere
            raw = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CannotRun(
            f"cannot read {path}: {error.strerror}", "give the path of a notification, or - for stdin"
        ) from error
    if len(raw) > MOST_BYTES:
        raise CannotRun(f"{path} is larger than {MOST_BYTES} bytes", "give one notification of Alertmanager or Grafana")
    try:
        told = json.loads(raw)
    except ValueError as error:
        raise CannotRun(f"{path} is no JSON: {error}", "give one notification of Alertmanager or Grafana") from error
    if not isinstance(told, dict):
        raise CannotRun(f"{path} is no notification", "give one notification of Alertmanager or Grafana")
    return told


def _keep(answer: dict[str, Any], state_dir: Path) -> dict[str, Any]:
    """Keep the report beside those that alerts start, where there is a state folder; a full disk costs only that."""
    from runbooks.store import ReportStore, StoreError

    if not state_dir.is_dir():
        return answer
    try:
        return ReportStore(state_dir / "reports").save(answer)
    except StoreError as error:
        sys.stderr.write(f"inferdeck: {error}\n")
        return answer


def open_sources(settings: StackSettings, mapping: str | None, url: str | None, job: str | None) -> Sources:
    """Return where evidence comes from: the stack's, or a service without our rows by a mapping.

    Args:
        settings: Where the stack is.
        mapping: Name of a shipped mapping, or a file; `INFERDECK_TRIAGE_MAPPING` when absent.
        url: Prometheus; the settings' when absent.
        job: The foreign service's scrape job; `INFERDECK_TRIAGE_JOB` when absent, else looked for.

    Raises:
        CannotRun: If the mapping cannot be used or the address is none.
    """
    from runbooks.mapping.load import MappingError, find_mapping
    from runbooks.sources import Sources

    if url is not None and not url.startswith(("http://", "https://")):
        raise CannotRun(f"{url} is no address of Prometheus", "give http://HOST:PORT")
    url = url or prometheus_url(settings)
    # An empty variable is an unset one.
    mapping = mapping or os.environ.get("INFERDECK_TRIAGE_MAPPING") or None
    if mapping is None:
        if job is not None:
            raise CannotRun("--job says nothing without a mapping", "add --mapping NAME")
        return Sources.open(ring_folder(settings), url, settings.state_path / "archive")
    try:
        return Sources.foreign(find_mapping(mapping), url, job or os.environ.get("INFERDECK_TRIAGE_JOB") or None)
    except MappingError as error:
        raise CannotRun(str(error)) from error


def run_triage(
    settings: StackSettings,
    *,
    alert: str | None,
    payload: Path | None,
    at: str | None,
    mapping: str | None = None,
    url: str | None = None,
    job: str | None = None,
    page: Path | None = None,
) -> Outcome:
    """Ask what is wrong, now or at a time.

    Args:
        settings: Where the stack is.
        mapping: Of a service without our rows: name or file of the mapping.
        url: Prometheus; the stack's when absent.
        job: The foreign service's scrape job.
        alert: Name of the alert that fired.
        payload: File with a notification, - for stdin.
        at: Time to look at, ISO 8601 or Unix seconds.
        page: Where the answer is written as a page as well.

    Raises:
        CannotRun: If a time or a notification cannot be read, or the page cannot be written.
    """
    from runbooks.engine import triage
    from runbooks.payloads import PayloadError
    from runbooks.report import render

    notification = _read_notification(payload) if payload is not None else None
    sources = open_sources(settings, mapping, url, job)
    try:
        answer = triage(sources, alert=alert, payload=notification, at=at)
    except (PayloadError, ValueError) as error:
        raise CannotRun(str(error), "see `inferdeck triage --help`") from error
    answer = _keep(answer, settings.state_path)
    if page is not None:
        _write_page(page, answer)
    if answer["abstained"] and sources.mapping is None and read_state(settings.state_path) is None:
        # stdout is the report: this is about where it was looked for
        sys.stderr.write(f"inferdeck: {wrong_folder(settings.state_path)}\n")
    return Outcome(answer, 1 if answer["abstained"] else 0, lambda console: console.print(render(answer), markup=False))


def _write_page(path: Path, answer: dict[str, Any]) -> None:
    """Write the answer as a page, readable by its owner alone; without session ids, as kept reports are."""
    from probes.private_file import write_private
    from runbooks.redaction import redact
    from runbooks.report_page import render_page

    try:
        write_private(path.absolute(), render_page(redact(answer)).encode())
    except OSError as error:
        raise CannotRun(f"cannot write {path}: {error.strerror}", "give a file in a folder that is there") from error


def wrong_folder(state_dir: Path) -> str:
    """Return the line that tells somebody who stands in another folder than the stack's where it was looked for."""
    return f"no stack was started from {state_dir}; set {STATE_VARIABLE} to the state folder of the one that is meant"


def triage_bundle(path: Path) -> Outcome:
    """Look at a bundle again, with today's runbooks.

    Args:
        path: A file of `inferdeck bundle`.

    Raises:
        CannotRun: If it is no bundle that may be used.
    """
    from inferdeck.bundle.replay import replay_bundle
    from runbooks.report import render

    answer = replay_bundle(path)

    def show(console: Console) -> None:
        console.print(render(answer), markup=False)
        then = answer["replay"]
        what = "the same" if then["same"] else f"another verdict: {then['verdict'] or 'nothing'}"
        console.print(f"report {then['report']} of the bundle named {what}", markup=False, style="bold")

    return Outcome(answer, 1 if answer["abstained"] else 0, show)
