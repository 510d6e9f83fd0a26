from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exporters.exporter import Exporter
from exporters.lookup import find_session, slowest
from exporters.rows import load_rows
from exporters.settings import ExporterSettings
from probes import FlightRecorder, Recorder, RecorderSettings

SMALL = RecorderSettings(ring_rows=64, open_slots=8, sensors=False, status_s=3600)
SESSION = "session-0123456789ab"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def ask(recorder: Recorder, count: int = 1) -> None:
    """Make requests on an event loop of their own."""

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Any) -> None:
        pass

    async def main() -> None:
        for _ in range(count):
            headers = [(b"x-session-id", SESSION.encode())]
            scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
            await FlightRecorder(app, recorder)(scope, receive, send)

    asyncio.run(main())


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    """Watch a folder that may come later; looks are made by the test."""
    exporter = Exporter(ExporterSettings(ring_dir=tmp_path / "rings", state_dir=tmp_path / "state"))
    exporter.tick()
    yield exporter
    exporter.stop()


def total(exporter: Exporter, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples that bear these labels."""
    return sum(
        sample.value
        for family in exporter.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_more_workers_than_the_bound_of_64_are_all_counted(tmp_path: Path, exporter: Exporter) -> None:
    """Seventy workers' rows add up; their ordinals stay within the label's bound, and the rest is counted as one."""
    recorders = [Recorder.open(tmp_path / "rings", "crowd", settings=SMALL) for _ in range(70)]
    for recorder in recorders:
        ask(recorder)
    rows = total(exporter, "telemetry_rows_read_total")
    workers = {
        sample.labels["worker"]
        for family in exporter.collect()
        for sample in family.samples
        if sample.name == "model_worker_up"
    }
    found = find_session(tmp_path / "rings", SESSION)
    for recorder in recorders:
        recorder.close()

    assert 70 == rows
    assert len(workers) <= 65
    assert 70 == len(found)


def litter(folder: Path) -> list[str]:
    """Put into the folder what has no business there, under names that look as if it had."""
    (folder / "note.txt").write_text("hello")
    (folder / "empty.ring").touch()
    (folder / "folder.ring").mkdir()
    (folder / "zero.ring").symlink_to("/dev/zero")
    (folder / "outside.ring").symlink_to("/etc/passwd")
    (folder / "nowhere.ring").symlink_to(folder / "not-there")
    os.mkfifo(folder / "pipe.ring")
    # Beside the folder and moved in: a socket's address may have 108 bytes at most.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("/tmp/inferdeck-test-socket")  # noqa: S108
        shutil.move("/tmp/inferdeck-test-socket", folder / "socket.ring")  # noqa: S108
    with (folder / "sparse.ring").open("wb") as sparse:
        sparse.truncate(1 << 40)
    (folder / "unfinished.ring.new").touch()
    (folder / "\udcff\udcfe.ring").write_bytes(b"inferdk\n" * 100)
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.timeout(60)
def test_foreign_files_links_and_pipes_hang_nobody_and_hide_nothing(tmp_path: Path, exporter: Exporter) -> None:
    """Service, exporter and look-up go on beside whatever lies in the folder; links are not followed."""
    rings = tmp_path / "rings"
    first = Recorder.open(rings, "tidy", settings=SMALL)
    names = litter(rings)
    second = Recorder.open(rings, "tidy", settings=SMALL)
    ask(first, 3)
    ask(second, 4)
    rows = total(exporter, "telemetry_rows_read_total")
    table, found, slow = load_rows(rings), find_session(rings, SESSION), slowest(rings, 2)
    losses = (first.loss, second.loss)
    first.close()
    second.close()

    assert 7 == rows
    assert (7, 7, 2) == (len(table), len(found), len(slow))
    assert (None, None) == losses
    assert {"0", "1"} == {str(worker) for worker in set(table["worker"].tolist())}
    # Of what is not ours nothing was removed but a ring file that is none: sweeping is by name and lock alone.
    assert (
        {"note.txt", "folder.ring"}
        <= {path.name for path in rings.iterdir()}
        <= set(names) | {path.name for path in rings.iterdir() if len(path.stem) == 25}
    )


def test_two_services_in_one_folder_are_told_apart(tmp_path: Path, exporter: Exporter) -> None:
    """Each has worker 0, its own rows and its own name on them."""
    services = {name: Recorder.open(tmp_path / "rings", name, settings=SMALL) for name in ("alpha", "beta")}
    ask(services["alpha"], 2)
    ask(services["beta"], 3)
    rows = total(exporter, "telemetry_rows_read_total")
    table = load_rows(tmp_path / "rings")
    for recorder in services.values():
        recorder.close()

    assert 5 == rows
    assert {"alpha": 2, "beta": 3} == {name: int((table["service"] == name).sum()) for name in services}
    assert {0} == set(table["worker"].tolist())


def with_key(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return what makes a private folder whose key is no key."""

    def both(folder: Path) -> None:
        folder.mkdir(mode=0o700)
        make(folder / "key")

    return both


FOLDERS: dict[str, Callable[[Path], None]] = {
    "not private": lambda folder: folder.mkdir(mode=0o755),
    "a file": lambda folder: folder.touch(),
    "a link": lambda folder: folder.symlink_to(folder.parent),
    "a damaged key": with_key(lambda key: key.write_bytes(b"short")),
    "a key that is a pipe": with_key(os.mkfifo),
    "a key that has no end": with_key(lambda key: key.symlink_to("/dev/zero")),
    "a key that is a folder": with_key(lambda key: key.mkdir()),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", FOLDERS.values(), ids=FOLDERS.keys())
def test_a_folder_that_cannot_be_used_costs_the_rows_and_never_the_request(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """The recorder opens, says why nobody can read its rows, counts them, and serves; look-up finds nothing."""
    rings = tmp_path / "rings"
    make(rings)
    recorder = Recorder.open(rings, "homeless", settings=SMALL)
    ask(recorder, 3)
    loss, lost = recorder.loss, recorder.status()["loss"]
    found = find_session(rings, SESSION)
    recorder.close()

    assert loss is not None
    assert {loss: 3} == lost
    assert [] == found
