"""What is left when the service is killed in the middle of its load."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx

from probes.reader import RingFile, list_rings

CLIENTS = 4
ROOT = Path(__file__).resolve().parents[2]


def hammer(client: int, url: str, answered: list[str], stop: threading.Event) -> None:
    """Ask until the service is gone; keep the session ids of what was answered."""
    with contextlib.suppress(httpx.HTTPError), httpx.Client(base_url=url) as http:
        number = 0
        while not stop.is_set():
            session = f"client-{client:02d}-{number:08d}"
            answer = http.get(f"/jobs/{number}", headers={"x-session-id": session})
            if answer.status_code == 200 and answer.json() == {"number": number}:
                answered.append(session)
            number += 1


def hang(url: str) -> None:
    """Ask for an answer that never comes."""
    with contextlib.suppress(httpx.HTTPError), httpx.Client(base_url=url, timeout=60) as http:
        http.get("/hang", headers={"x-session-id": "session-that-hangs"})


def test_after_sigkill_under_load_no_answered_request_is_missing(ring_dir: Path) -> None:
    """Every answered request has its row, or an open slot if the kill came between its last byte and its commit.

    No torn row is accepted, the sequence has no gap, and what never ended is told with its last stage.
    """
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(64)
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        victim = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("victim.py")), str(ring_dir), str(bound.fileno())],
            pass_fds=[bound.fileno()],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        answered: list[str] = []
        stop = threading.Event()
        threads = [threading.Thread(target=hammer, args=(client, url, answered, stop)) for client in range(CLIENTS)]
        threads.append(threading.Thread(target=hang, args=(url,)))
        try:
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + 60
            while len(answered) < 400 and victim.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.wait(30)
            stop.set()
    for thread in threads:
        thread.join(60)

    [path] = list_rings(ring_dir)
    with RingFile(path) as ring:
        batch, slots, names, alive = (
            ring.read(0, 1 << 20),
            ring.open_slots(),
            ring.header.stage_names,
            ring.owner_alive(),
        )
    committed = {session.decode() for session in batch.rows["session"]}
    unfinished = {slot["session"].decode(): names[slot["stage"]] for slot in slots}

    assert len(answered) >= 400
    assert not alive
    assert (0, 0) == (batch.torn, batch.lost)
    assert list(range(len(batch.rows))) == batch.rows["seq"].tolist()
    assert [int(session[-8:]) for session in sorted(committed)] == [
        int(row["tokens"]) for row in sorted(batch.rows, key=lambda row: bytes(row["session"]))
    ]
    assert "model.forward" == unfinished.pop("session-that-hangs")
    assert len(unfinished) <= CLIENTS
    assert set() == set(answered) - committed - set(unfinished)
    assert len(set(answered) - committed) <= CLIENTS
