from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probes import Identity, Recorder, RecorderSettings
from probes.control import write_control
from probes.reader import RingFile, list_rings

SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "headers": []}


def serve_one(recorder: Recorder) -> None:
    """Record one request."""
    begun = recorder.begin(SCOPE)
    assert begun is not None
    recorder.finish(begun, SCOPE, 200, False)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that others may enter."""
    (tmp_path / "open").mkdir(mode=0o755)
    return tmp_path / "open"


def test_without_a_usable_folder_requests_are_served_and_the_loss_is_told(
    open_folder: Path, small: RecorderSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """The status in the process says how many rows nobody can read, and the log how to mend it."""
    with caplog.at_level(logging.WARNING):
        recorder = Recorder.open(open_folder, "test", settings=small)
    for _ in range(3):
        serve_one(recorder)
    loss, path, status = recorder.loss, recorder.path, recorder.status()
    recorder.close()

    assert ("folder_not_private", None, {"folder_not_private": 3}) == (loss, path, status["loss"])
    assert "chmod 700" in caplog.text
    assert [] == list_rings(open_folder)


def test_a_folder_that_is_mended_gets_its_ring_without_a_restart(open_folder: Path) -> None:
    """A request in flight ends where it began; the loss stays counted."""
    settings = RecorderSettings(ring_rows=64, sensors=False, status_s=0.02, beat_s=0.01, retry_s=0.05)
    recorder = Recorder.open(open_folder, "test", settings=settings)
    begun = recorder.begin(SCOPE)
    assert begun is not None
    serve_one(recorder)
    open_folder.chmod(0o700)
    assert wait_for(lambda: recorder.path is not None)
    recorder.finish(begun, SCOPE, 200, False)
    serve_one(recorder)
    loss, status = recorder.loss, recorder.status()
    with RingFile(recorder.path or "") as ring:
        head = ring.head()
    recorder.close()

    assert (None, 1, {"folder_not_private": 1}) == (loss, head, status["loss"])


# From 3.12 on Python warns of any fork beside threads; that is what servers that fork their workers do.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_worker_forked_after_the_start_has_a_file_of_its_own(ring_dir: Path, small: RecorderSettings) -> None:
    """And does not keep the parent's lock when the parent is gone."""
    recorder = Recorder.open(ring_dir, "test", settings=small)
    serve_one(recorder)
    read_end, write_end = os.pipe()
    # As if another thread was writing a row at that moment: in the child it does not exist and never lets go.
    with recorder.start().writer._lock:
        child = os.fork()
    if child == 0:  # pragma: no cover  the child process
        try:
            serve_one(recorder)
            serve_one(recorder)
            os.write(write_end, str(recorder.path).encode())
            os.close(write_end)
            threading.Event().wait(30)
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        childs = os.read(read_end, 4096).decode()
        parents = recorder.path
        recorder.close()
        with RingFile(parents or "") as mine, RingFile(childs) as theirs:
            seen = (mine.head(), mine.owner_alive(), theirs.head(), theirs.owner_alive(), theirs.header.pid)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(read_end)

    assert (1, False, 2, True, child) == seen


def test_start_phases_are_timed_and_ready_is_told(ring_dir: Path, small: RecorderSettings) -> None:
    """Warming up is told from dead: the status page has phase, readiness and seconds per phase."""
    recorder = Recorder(ring_dir, "test", settings=small)
    recorder.phase("loading_model")
    time.sleep(0.05)
    recorder.start()
    with RingFile(recorder.path or "") as ring:
        warming = ring.status()
        recorder.phase("warm_up")
        recorder.ready()
        ready = ring.status()
    recorder.close()
    assert warming is not None
    assert ready is not None

    assert ("loading_model", False) == (warming["phase"], warming["ready"])
    assert ("ready", True) == (ready["phase"], ready["ready"])
    assert ["import", "starting", "loading_model", "warm_up"] == list(ready["phases"])
    assert 0.05 <= ready["phases"]["loading_model"] < 30


def test_an_app_without_phases_is_ready_when_it_serves(ring_dir: Path, small: RecorderSettings) -> None:
    """Three lines attach an app: it need not say when it is ready. One with phases has to."""
    plain, phased = Recorder(ring_dir, "plain", settings=small), Recorder(ring_dir, "phased", settings=small)
    phased.phase("loading_model")
    seen = []
    for recorder in (plain, phased):
        serve_one(recorder)
        seen.append((recorder.status()["phase"], recorder.status()["ready"]))
        recorder.close()

    assert [("ready", True), ("loading_model", False)] == seen
    assert ["import", "starting"] == list(plain.status()["phases"])


def test_the_status_page_has_every_key_of_the_contract(ring_dir: Path) -> None:
    """docs/architecture.md section 2; written on its own by the heartbeat."""
    settings = RecorderSettings(ring_rows=64, status_s=0.02, beat_s=0.01)
    contract = {
        "written_unix_ns", "phase", "phases", "ready", "loop_tick_age_s", "loop_lag", "loop_blocked_s", "blocked", "gc",
        "cpu_s", "rss_bytes", "threads", "fds", "fd_limit", "loss", "open_overflow", "probe_failures",
    }  # fmt: skip

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        recorder = Recorder.open(ring_dir, "test", settings=settings)
        with RingFile(recorder.path or "") as ring:
            first = ring.status()
            await asyncio.sleep(0.2)
            second = ring.status()
        recorder.close()
        assert first is not None
        assert second is not None
        return first, second

    first, second = asyncio.run(main())

    assert contract <= set(second)
    assert first["written_unix_ns"] < second["written_unix_ns"]
    assert 0 <= second["loop_tick_age_s"] < 5
    assert {} == second["probe_failures"] == second["loss"]


def test_fingerprints_that_come_late_are_in_the_header(ring_dir: Path, small: RecorderSettings) -> None:
    """The model's is known after it is loaded."""
    recorder = Recorder.open(ring_dir, "test", Identity(build="b1"), small)
    recorder.identify(model="m1")
    with RingFile(recorder.path or "") as ring:
        header = ring.header
    recorder.close()

    assert ("b1", "m1") == (header.build, header.model)


def test_the_control_page_reaches_the_service(ring_dir: Path) -> None:
    """Within a status period, and only while it is in force."""
    settings = RecorderSettings(ring_rows=64, sensors=False, status_s=0.02, beat_s=0.01)
    recorder = Recorder.open(ring_dir, "test", settings=settings)
    write_control(ring_dir, {"keep": 0.5}, ttl_s=0.3)
    reached = wait_for(lambda: recorder.control.get("keep") == 0.5)
    expired = wait_for(lambda: recorder.control == {})
    recorder.close()

    assert (True, True) == (reached, expired)


def test_a_sensor_that_fails_costs_that_sensor(ring_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others are read, the failure is counted by name and logged once, requests go on."""
    settings = RecorderSettings(ring_rows=64, status_s=0.02, beat_s=0.01)
    recorder = Recorder.open(ring_dir, "test", settings=settings)

    class Broken:
        def reading(self) -> dict[str, Any]:
            raise OSError("no /proc here")

    recorder._process = Broken()  # type: ignore[assignment]
    counted = wait_for(lambda: recorder.status()["probe_failures"].get("process", 0) > 3)
    serve_one(recorder)
    status = recorder.status()
    recorder.close()

    assert counted
    assert "gc" in status
    assert "rss_bytes" not in status
    assert 1 == status["rows"]
    assert 1 == caplog.text.count("probe process failed")


def test_a_closed_recorder_opens_again_for_a_late_request(ring_dir: Path, small: RecorderSettings) -> None:
    """Tests and servers restart apps in one process; nothing is lost but the old file's lock."""
    recorder = Recorder.open(ring_dir, "test", settings=small)
    serve_one(recorder)
    recorder.close()
    recorder.close()
    serve_one(recorder)
    recorder.close()
    heads = []
    for path in list_rings(ring_dir):
        with RingFile(path) as ring:
            heads.append((ring.head(), ring.owner_alive()))

    assert [(1, False), (1, False)] == heads


def test_closing_leaves_no_thread_and_no_callback(ring_dir: Path) -> None:
    """A recorder that is closed is gone."""
    threads, callbacks = threading.active_count(), len(gc.callbacks)
    recorder = Recorder.open(ring_dir, "test", settings=RecorderSettings(ring_rows=64))
    during = threading.active_count()
    recorder.close()

    assert (threads + 1, threads, callbacks) == (during, threading.active_count(), len(gc.callbacks))


def test_many_restarts_do_not_fill_the_folder(ring_dir: Path) -> None:
    """A service that crashes at every start keeps some files of its past, not all."""
    settings = RecorderSettings(ring_rows=64, sensors=False, dead_rings=3)
    for _ in range(8):
        Recorder.open(ring_dir, "test", settings=settings).close()

    assert 4 == len(list_rings(ring_dir))


def test_rows_follow_the_wall_clock_when_it_is_set(recorder: Recorder, ring: RingFile) -> None:
    """Durations are steady, starts are wall time."""
    from probes.intake import Intake

    now = [1_800_000_000_000_000_000]
    intake = Intake(recorder.start().ring, clock_ns=lambda: now[0])
    for jump_s in (0, 3600):
        now[0] += jump_s * 10**9
        intake.anchor()
        intake.finish(intake.begin(SCOPE), SCOPE, 200, False)
    starts = ring.read().rows["start_unix_ns"].tolist()

    assert 3600 == round((starts[1] - starts[0]) / 1e9)


def test_more_sessions_than_are_remembered_are_all_hashed_rightly(recorder: Recorder) -> None:
    """The memory of header values is bounded, emptied, and never wrong."""
    intake = recorder.start()
    for number in range(3000):
        headers = [(b"x-session-id", b"session-%010d" % number), (b"user-agent", b"agent %d" % number)]
        intake.finish(intake.begin({**SCOPE, "headers": headers}), SCOPE, 200, False)

    assert len(intake._sessions) <= 1024
    assert len(intake._agents) <= 1024
    assert {} == recorder.status()["probe_failures"]
