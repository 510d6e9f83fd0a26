from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.foreign.conftest import Watched

GUNICORN = ("gunicorn", "plain_app:app", "--bind", "fd://{fd}", "--workers", "2", "--worker-class")
SERVERS = {
    "uvicorn": ("uvicorn", "plain_app:app", "--fd", "{fd}", "--workers", "2"),
    "gunicorn": (*GUNICORN, "uvicorn_worker.UvicornWorker"),
    # The app, and with it the recorder, is made in the master and comes to the workers by fork.
    "gunicorn --preload": (*GUNICORN, "uvicorn_worker.UvicornWorker", "--preload"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_every_worker_has_a_file_of_its_own_and_the_totals_are_true(watched: Watched, server: str) -> None:
    """Requests over several workers add up, no worker shares a file, and one that is killed is seen as dead."""
    asked = 0

    def ask(number: int) -> int:
        # A connection of its own each time, so that the kernel may hand it to any worker.
        return httpx.get(f"{url}/sync/{number:08d}", timeout=30).status_code

    with watched.serve(*SERVERS[server]) as (client, master):
        url = str(client.base_url)
        with ThreadPoolExecutor(8) as pool:
            while len(busy := [ring for ring in watched.rows(asked).rings.values() if ring.head]) < 2 and asked < 4000:
                assert {200} == set(pool.map(ask, range(100)))
                asked += 100
        table = watched.rows(asked)
        watched.until(lambda: watched.metric("model_requests_total", outcome="ok") == asked)
        pids = {ring.header.pid for ring in busy}
        os.kill(busy[0].header.pid, signal.SIGKILL)
        watched.until(lambda: not load_alive(watched, busy[0].header.ring_id))

    assert 2 == len(busy)
    assert 2 == len(pids - {master.pid})
    assert {0, 1} == {ring.header.worker for ring in busy}
    assert asked == len(table)
    assert asked == sum(ring.head for ring in busy)
    assert {} == {reason: count for reason, count in table.losses.items() if count}


def load_alive(watched: Watched, ring_id: str) -> bool:
    """Return whether the worker of a ring lives."""
    return any(ring.alive for ring in watched.rows(0).rings.values() if ring.header.ring_id == ring_id)
