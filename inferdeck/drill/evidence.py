"""Raw evidence of a run: what triage looked at, kept so that the same scores can be computed again.

One folder for each run:

    ground_truth.json     what was caused (a fault, a twin, a program of silence, the proof of a clean time), when, and
                          what the run measured
    alerts.json           timeline of alerts in Prometheus and Alertmanager
    triage_told.json      triage's answer when told the alert (absent when none fired)
    triage_blind.json     triage's answer when told the time alone
    report_by_alert.json  the report that the alert itself started
    rings/                the recorder's files, as read at the time of triage
    prometheus/           Prometheus' data folder
    metrics/              last exposition of the exporter and of the service
    state/                the stack's own folder: logs, configuration, reports that alerts started
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get
from inferdeck.result import to_json
from inferdeck.stack.state import make_private_folder, write_private

__all__ = [
    "copy_data_folder",
    "copy_rings",
    "hold_alive",
    "keep_prometheus",
    "read_json",
    "save_json",
    "save_metrics",
    "save_truth",
]

CHUNK_BYTES = 1024 * 1024
# a lock of a running Prometheus and a log of its open queries: neither belongs to the data
LEFT_BEHIND = ("lock", "queries.active")


def copy_rings(ring_dir: Path, target: Path) -> dict[str, bool]:
    """Copy the recorder's files while they are written, with `pread` as every reader does.

    A row that is overwritten meanwhile fails its checksum in the copy as it would in the original. The folder's key
    stays behind: it is a secret, and triage does not need it.

    Args:
        ring_dir: Folder of the rows.
        target: Where to; made 0700, files 0600.

    Returns:
        File name -> whether its owner was alive, for `hold_alive`.
    """
    from probes.folder import is_locked

    make_private_folder(target)
    alive = {}
    for ring in sorted(ring_dir.glob("*.ring")):
        # asked before the copy: an owner that dies meanwhile was alive at the time of triage
        alive[ring.name] = is_locked(ring)
        _copy_file(ring, target / ring.name)
    return alive


def _copy_file(source: Path, target: Path) -> None:
    # no links: what is copied into evidence must be the ring itself
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        offset = 0
        while chunk := os.pread(reader, CHUNK_BYTES, offset):
            view = memoryview(chunk)
            while view:
                # a write may be short, on a disk that is nearly full for example
                view = view[os.write(writer, view) :]
            offset += len(chunk)
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def hold_alive(folder: Path, alive: dict[str, bool]) -> Iterator[None]:
    """Hold the locks of those copies whose owners were alive: liveness is a lock, and copies have nobody who holds it.

    Args:
        folder: Folder of the copies.
        alive: As `copy_rings` returned it.
    """
    with ExitStack() as held:
        for name in sorted(name for name, lives in alive.items() if lives):
            handle = os.open(folder / name, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def copy_data_folder(source: Path, target: Path) -> None:
    """Copy the data folder of a Prometheus that has ended.

    Raises:
        CannotRun: If it is not there.
    """
    if not source.is_dir():
        raise CannotRun(f"no Prometheus data in {source}", "give the folder of a drill that ran with Prometheus")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_BEHIND), dirs_exist_ok=True)


def keep_prometheus(folder: Path) -> None:
    """Move the Prometheus data of a run beside its other evidence, once that Prometheus has ended: then all is on disk.

    Args:
        folder: The run's folder.
    """
    data = folder / "state" / "prometheus"
    if data.is_dir():
        data.rename(folder / "prometheus")


def save_truth(folder: Path, answers: Mapping[str, Any], truth: Mapping[str, Any]) -> None:
    """Write down what was caused, and what is needed to ask triage the same questions again.

    Written last: a folder with a ground truth is a finished run, and only those are rescored.

    Args:
        folder: The run's folder.
        answers: As `triage_and_keep` returned them.
        truth: `fault`, `silence`, `twin` or `clean` with what was found, and whatever else is known.
    """
    asked = {"at_unix": answers["at_unix"], "asked_unix": answers["asked_unix"], "rings_alive": answers["alive"]}
    save_json(folder / "ground_truth.json", {**truth, **asked})


def save_metrics(urls: dict[str, str], target: Path) -> None:
    """Save one exposition of each URL; what does not answer is noted instead.

    Args:
        urls: Name -> URL.
        target: Folder; `<name>.prom` is written.
    """
    make_private_folder(target)
    for name, url in urls.items():
        try:
            _, body = get(url, 5.0)
            text = body.decode("utf-8", errors="replace")
        except Unreachable as error:
            text = f"# {name} did not answer: {error}\n"
        write_private(target / f"{name}.prom", text)


def save_json(path: Path, content: Any) -> None:
    """Write *content* as JSON, readable by the owner alone."""
    write_private(path, to_json(content) + "\n")


def read_json(path: Path) -> Any:
    """Read a file of evidence.

    Raises:
        CannotRun: If it is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotRun(f"{path} cannot be read: {error}", "give the `runs_dir` of a finished drill") from error
