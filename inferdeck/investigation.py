"""Behind `inferdeck investigate`: reads a window's feature records, has them judged, keeps and shows the answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.errors import CannotRun
from inferdeck.look_up import ring_folder
from inferdeck.result import Outcome, iso_utc
from inferdeck.settings import StackSettings

if TYPE_CHECKING:
    from rich.console import Console

    from exporters.drift.reference import Reference

__all__ = ["FOLDER", "MOST_KEPT", "run_investigation"]

FOLDER: Final = "investigations"
# About 20 kB each, and 100 kB of page.
MOST_KEPT: Final = 50


def run_investigation(
    settings: StackSettings, since_seconds: float, page: Path | None = None, report_id: str | None = None
) -> Outcome:
    """Investigate the window that ends now.

    Args:
        settings: Where the stack is.
        since_seconds: How long the window is.
        page: Where the page is written as well.
        report_id: The incident's report that is to tell of it.

    Raises:
        CannotRun: If the page cannot be written, or there is no such report.
    """
    from exporters.feature_records import read_features
    from runbooks.investigation.investigate import investigate

    until_ns = time.time_ns()
    since_ns = until_ns - int(since_seconds * 1e9)
    rings = ring_folder(settings)
    reference, note = _reference(settings, rings)
    records = read_features(rings, settings.state_path / "archive", since_ns, until_ns)
    found = _with_times(investigate(records, reference))
    payload = {"since_s": since_seconds, "reference": note, "report": None, "page": None, **found}
    payload = _kept(payload, settings.state_path)
    if page is not None:
        _write_page(page, payload)
        payload["page"] = str(page)
    if report_id is not None:
        _link(settings, report_id, payload)
    named = found["verdict"]["kind"] != "nothing"
    return Outcome(payload, 1 if named else 0, lambda console: _show(console, payload))


def _reference(settings: StackSettings, rings: Path) -> tuple[Reference | None, str]:
    """Return the reference of the model that answers, which lies beside its rows, else of the set one; and which."""
    from exporters.drift.reference import ReferenceUnusable, load_reference

    why = "no reference: run `inferdeck train`"
    for folder in (rings, settings.model_path):
        path = folder / "reference.npz"
        try:
            return load_reference(path), str(path)
        except FileNotFoundError:
            continue
        except (ReferenceUnusable, OSError) as error:
            why = str(error)
    return None, why


def _with_times(found: dict[str, Any]) -> dict[str, Any]:
    """Return the same with a readable time beside each one in seconds."""

    def readable(value: Any) -> Any:
        if isinstance(value, list):
            return [readable(one) for one in value]
        if not isinstance(value, dict):
            return value
        told: dict[str, Any] = {}
        for name, one in value.items():
            told[name] = readable(one)
            if name.endswith("_unix") and not isinstance(one, list):
                told[name.removesuffix("_unix")] = None if one is None else iso_utc(one)
        return told

    return {**readable(found)}


def _kept(payload: dict[str, Any], state_dir: Path) -> dict[str, Any]:
    """Keep answer and page where there is a state folder; a full disk costs only that."""
    from probes.private_file import write_private
    from runbooks.store import ReportStore, StoreError

    if not state_dir.is_dir():
        return payload
    store = ReportStore(state_dir / FOLDER, MOST_KEPT)
    try:
        kept = store.save(payload)
        page = store.folder / f"{kept['id']}.html"
        write_private(page, _page_of(kept).encode())
    except (StoreError, OSError) as error:
        sys.stderr.write(f"inferdeck: {error}\n")
        return payload
    ids = set(store.ids())
    for old in store.folder.glob("*.html"):
        if old.stem not in ids:
            old.unlink(missing_ok=True)
    return kept | {"page": str(page)}


def _page_of(payload: Mapping[str, Any]) -> str:
    from inferdeck.investigation_page import render_page

    return render_page(payload)


def _write_page(path: Path, payload: Mapping[str, Any]) -> None:
    from probes.private_file import write_private

    try:
        write_private(path.absolute(), _page_of(payload).encode())
    except OSError as error:
        raise CannotRun(f"cannot write {path}: {error.strerror}", "give a file in a folder that is there") from error


def _link(settings: StackSettings, report_id: str, payload: Mapping[str, Any]) -> None:
    """Tell of the investigation in the incident's report."""
    from runbooks.store import ReportStore

    told = {
        "id": payload.get("id"),
        "report": payload["report"],
        "page": payload["page"],
        "kind": payload["verdict"]["kind"],
        "summary": payload["verdict"]["summary"],
        "since": payload["verdict"]["since"],
    }
    store = ReportStore(settings.state_path / "reports")
    if not store.amend(report_id, lambda report: report.update(investigation=told)):
        raise CannotRun(f"no report {report_id!r} to add to", "`inferdeck reports` lists them")


def _show(console: Console, payload: Mapping[str, Any]) -> None:
    verdict = payload["verdict"]
    console.print(f"{verdict['kind'].upper()}: {verdict['summary']}", style="bold", markup=False)
    if verdict["since"]:
        console.print(f"  since {verdict['since']}", markup=False)
    span = f"{payload['from']} .. {payload['to']}" if payload["records"] else "none"
    console.print(f"  {payload['records']} answered requests, {span}; training: {payload['reference']}", markup=False)
    if payload["cut"]:
        console.print("  older ones of the window left out: there are more than fit", markup=False)
    for one in payload["slices"]:
        place = "all traffic" if one["dimension"] == "all" else f"{one['dimension']} {one['value']}"
        figures = f"effect {one['effect']:.2f}, explains {one['explained']:.0%}, {one['share']:.0%} of the traffic"
        console.print(f"  {place}: {one['feature']} {figures}", markup=False)
    for word, (old, new) in ((payload["mix"] or {}).get("moved") or {}).items():
        console.print(f"  share of {word}: {old:.0%} -> {new:.0%}", markup=False)
    for one in payload["changes"]:
        console.print(f"  first seen {one['at']}: {one['what']} {one['value']}", markup=False)
    if payload["page"]:
        console.print(f"Kept as {payload['page']}", markup=False)
