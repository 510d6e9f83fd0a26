"""Gathers an incident: report, rows, series, doctor, logs' tails, versions; masked, checked by a replay, packed."""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from inferdeck.bundle.container import pack
from inferdeck.bundle.metrics import dump_metrics
from inferdeck.bundle.redact import Redactor
from inferdeck.bundle.replay import replay_folder
from inferdeck.bundle.rings import copy_window
from inferdeck.errors import CannotRun
from inferdeck.look_up import parse_duration, ring_folder
from inferdeck.result import Outcome, iso_utc
from inferdeck.settings import StackSettings
from inferdeck.stack.process import log_tail
from inferdeck.stack.state import make_private_folder, write_private
from inferdeck.triage_command import prometheus_url
from inferdeck.version import ROOT, commit, version

__all__ = ["run_bundle"]

LOG_LINES = 300
# a bundle is some MB; older ones go when further ones are made into the state folder
MOST_KEPT = 20


def run_bundle(settings: StackSettings, report_id: str | None, since: str | None, out: Path | None) -> Outcome:
    """Make a bundle of an incident.

    Args:
        settings: Where the stack is.
        report_id: The kept report that it is about; the last one when neither this nor *since* is given.
        since: Without a report: how far back to look, such as 15m.
        out: The file; below the state folder by default.

    Raises:
        CannotRun: If there is no such report, nothing to bundle, or the file cannot be written.
    """
    ring_dir, prometheus = ring_folder(settings), prometheus_url(settings)
    report = _report(settings.state_path, report_id, since, ring_dir, prometheus)
    target = (out or settings.state_path / "bundles" / f"{report['id']}.tar.gz").expanduser().absolute()
    if target.is_dir():
        raise CannotRun(f"{target} is a folder", "give the path of a file to -o")
    if out is None:
        make_private_folder(target.parent)
    elif not target.parent.is_dir():
        raise CannotRun(f"there is no folder {target.parent}", "make it first")
    with tempfile.TemporaryDirectory(prefix="inferdeck-bundle-") as scratch:
        folder = Path(scratch)
        manifest = _gather(folder, report, settings, ring_dir, prometheus)
        full = pack(folder, target, manifest)
    if out is None:
        for old in sorted(target.parent.glob("*.tar.gz"))[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    counts = {
        key: full[key] for key in ("report", "alert", "window", "rows", "rows_left_out", "series", "missing", "replay")
    }
    payload = {"bundle": str(target), "bytes": target.stat().st_size, "members": len(full["members"]) + 1, **counts}
    return Outcome(payload, 0, lambda console: _show(console, payload))


def _report(
    state_dir: Path, report_id: str | None, since: str | None, ring_dir: Path, prometheus: str
) -> dict[str, Any]:
    """Return the kept report, or one that is made now."""
    from runbooks.engine import triage
    from runbooks.sources import Sources
    from runbooks.store import ReportStore

    if report_id is not None and since is not None:
        raise CannotRun("--report and --since exclude each other", "see `inferdeck bundle --help`")
    if since is None:
        store = ReportStore(state_dir / "reports")
        chosen = report_id or next(iter(store.ids()), None)
        if chosen is None:
            raise CannotRun(f"no report is kept in {store.folder}", "give --since 15m")
        report = store.load(chosen)
        if report is None:
            raise CannotRun(f"no report {chosen!r} in {store.folder}", "GET /reports of the triage service lists them")
        return {**report, "id": chosen}
    seconds = parse_duration(since)
    if not 60 <= seconds <= 86_400:
        raise CannotRun(f"--since {since} is no window", "give one from 60s to 24h")
    until = time.time()
    report = triage(Sources.open(ring_dir, prometheus), window=(until - seconds, until))
    return {**report, "id": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(until))}


def _gather(
    folder: Path, report: dict[str, Any], settings: StackSettings, ring_dir: Path, prometheus: str
) -> dict[str, Any]:
    """Write everything into *folder* and return the manifest."""
    from exporters.archive.reader import Archive
    from runbooks.prometheus_source import SourceMissingError
    from runbooks.redaction import redact

    try:
        since, until = (datetime.fromisoformat(report["window"][key]).timestamp() for key in ("from", "to"))
    except (KeyError, TypeError, ValueError) as error:
        raise CannotRun(f"the report has no window ({error})", "give --since 15m instead") from error
    redactor, missing = Redactor(), []
    # signs of life after the window are wanted, the rest of the day is not
    archived = Archive(settings.state_path / "archive").window(int(since * 1e9), int((until + 300.0) * 1e9))
    copies = copy_window(ring_dir, folder / "rings", int(since * 1e9), redactor, archived=archived)
    if not copies.alive:
        missing.append("rows")
    try:
        series = dump_metrics(prometheus, since, until, folder / "metrics.json")
    except SourceMissingError:
        series = 0
        missing.append("prometheus")
    if len(missing) == 2:
        raise CannotRun("there are neither rows nor series to bundle", "`inferdeck status`; INFERDECK_RING_DIR")
    # a report of the state folder names a path of this machine, which tells nobody anything
    kept = redact({key: value for key, value in report.items() if key != "report"})
    _json(folder / "report.json", redactor.value(kept))
    _json(folder / "doctor.json", redactor.value(_doctor(settings)))
    _logs(settings.state_path / "logs", folder / "logs", redactor)
    manifest: dict[str, Any] = {
        "created": iso_utc(time.time()),
        "asked_unix": time.time(),
        "report": report["id"],
        "alert": report.get("alert"),
        "window": {"from": report["window"]["from"], "to": report["window"]["to"]},
        "rings_alive": copies.alive,
        "rows": copies.rows,
        "rows_left_out": copies.left_out,
        "series": series,
        "missing": missing,
        "versions": _versions(),
    }
    # a bundle that tells another story than its report must say so here, not to whoever opens it
    verdict = replay_folder(folder, manifest)["verdict"]["slug"]
    named = (report.get("verdict") or {}).get("slug")
    return manifest | {"replay": {"verdict": verdict, "report_verdict": named, "same": verdict == named}}


def _doctor(settings: StackSettings) -> dict[str, Any]:
    from inferdeck.doctor import examine

    return {"checks": [asdict(check) for check in examine(settings)]}


def _logs(source: Path, target: Path, redactor: Redactor) -> None:
    make_private_folder(target)
    for path in sorted(source.glob("*.log")) if source.is_dir() else ():
        lines = redactor.lines(log_tail(path, LOG_LINES))
        write_private(target / path.name, "".join(f"{line}\n" for line in lines))


def _versions() -> dict[str, Any]:
    import numpy as np

    files = [
        path
        for pattern in ("alerts/catalogue/*.yaml", "alerts/rules/*.yml", "runbooks/*.md")
        for path in ROOT.glob(pattern)
    ]
    return {
        "inferdeck": version(),
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "files": {
            str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted(files)
        },
    }


def _json(path: Path, content: object) -> None:
    write_private(path, json.dumps(content, indent=1, ensure_ascii=False, default=str))


def _show(console: Console, payload: dict[str, Any]) -> None:
    console.print(f"{payload['bundle']}  {payload['bytes']} bytes, {payload['members']} files", markup=False)
    console.print(
        f"report {payload['report']}, {payload['window']['from']} .. {payload['window']['to']}: "
        f"{payload['rows']} rows, {payload['series']} series",
        markup=False,
    )
    for name in payload["missing"]:
        console.print(f"missing: {name}", style="yellow")
    if payload["rows_left_out"]:
        console.print(f"{payload['rows_left_out']} older rows of the window are left out", style="yellow")
    replay = payload["replay"]
    if replay["same"]:
        console.print(f"a replay names {replay['verdict'] or 'nothing'}, as the report does", markup=False)
    else:
        console.print(
            f"a replay names {replay['verdict'] or 'nothing'}, the report {replay['report_verdict'] or 'nothing'}: "
            "more, or less, is known now than then",
            style="yellow",
        )
    console.print(f"look at it: inferdeck triage --bundle {payload['bundle']}", markup=False)
