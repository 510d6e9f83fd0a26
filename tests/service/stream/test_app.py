"""The stream as a process: killed in the middle of windows its sums stay right; what keeps it from starting is told."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from inferdeck.stack.ports import free_ports
from tests.service.stream._queries import raw, write_lines

ROOT = Path(__file__).resolve().parents[3]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Return what starts a stream; whatever still runs is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(port: int, **settings: str) -> subprocess.Popen[bytes]:
        known = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
        wanted = {"port": str(port), "folder": str(tmp_path / "in"), "batch_messages": "50"} | settings
        environment = known | {f"INFERDECK_STREAM_{name.upper()}": value for name, value in wanted.items()}
        environment |= {"INFERDECK_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
        argv = [sys.executable, "-m", "service.stream"]
        one = subprocess.Popen(argv, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        started.append(one)
        return one

    (tmp_path / "in").mkdir()
    yield start_one
    for one in started:
        one.kill()
        one.wait()
        if one.stderr is not None:
            one.stderr.close()


def ask(port: int, path: str) -> Any:
    """Return what the stream answers; None while it does not."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except OSError:
        return None
    finally:
        connection.close()
    return json.loads(body) if path.startswith("/api") else body.decode()


def until(true: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_killed_in_the_middle_of_windows_the_sums_stay_right(start: Start, tmp_path: Path) -> None:
    """Each message counts once, however often it was sent and however often its reader was killed."""
    (port,) = free_ports(1)
    total, now = 20_000, time.time() - 120
    over = threading.Event()

    def write() -> None:
        for begin in range(0, total, 200):
            lines = [raw(number, now + number * 0.005) for number in range(begin, begin + 200)]
            # a tenth comes twice
            write_lines(tmp_path / "in" / "a.jsonl", lines + lines[::10])
            if over.wait(0.02):
                return

    def counted() -> int:
        answer = ask(port, "/api/windows")
        return 0 if answer is None else int(answer["counts"].get("messages:ok", 0))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reached = 0
        for _ in range(3):
            one = start(port)
            goal = reached + random.randrange(500, 4000)
            until(lambda goal=goal: counted() >= min(goal, total - 1000))  # type: ignore[misc]
            reached = counted()
            one.send_signal(signal.SIGKILL)
            one.wait()
        last = start(port)
        writer.join(60)
        until(lambda: (ask(port, "/api/windows") or {}).get("waiting_messages") == 0 and counted() >= total)
        told = ask(port, "/api/windows")
        last.send_signal(signal.SIGTERM)
        assert 0 == last.wait(30)
    finally:
        over.set()

    assert (total, total) == (told["counts"]["messages:ok"], sum(one["messages"] for one in told["windows"]))
    assert total // 10 <= told["counts"]["messages:duplicate"]
    # event time: the minutes that the messages say, and no others
    assert {int((now + number * 0.005) // 60) * 60 for number in range(total)} == {
        one["start_unix_s"] for one in told["windows"]
    }


def test_it_shows_metrics_and_says_when_it_is_ready(start: Start, tmp_path: Path) -> None:
    """On loopback, of what it has done."""
    (port,) = free_ports(1)
    write_lines(tmp_path / "in" / "a.jsonl", [raw(1, time.time()), b"no"])
    one = start(port)
    until(lambda: 'stream_dead_letters_total{reason="not_json"} 1.0' in (ask(port, "/metrics") or ""))

    assert 'stream_messages_total{result="ok"} 1.0' in ask(port, "/metrics")
    assert '"ready":true' in ask(port, "/healthz/ready")
    one.send_signal(signal.SIGTERM)
    assert 0 == one.wait(30)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"brokers": "127.0.0.1:1"}, "set one of INFERDECK_STREAM_FOLDER and INFERDECK_STREAM_BROKERS"),
        ({"batch_messages": "0"}, "INFERDECK_STREAM_BATCH_MESSAGES"),
        ({"steps": "nowhere:nothing"}, "nowhere"),
        ({"host": "192.0.2.1"}, "cannot bind"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(settings: dict[str, str], told: str, start: Start) -> None:
    """With the setting at fault, and status 2."""
    one = start(0, **settings)
    _, error = one.communicate(timeout=60)
    lines = error.decode().strip().splitlines()

    assert (2, 1) == (one.returncode, len(lines))
    assert told in lines[0]


def test_two_processes_do_not_share_a_state(start: Start, tmp_path: Path) -> None:
    """They would count the same messages twice."""
    first, second = free_ports(2)
    start(first)
    until(lambda: '"ready":true' in (ask(first, "/healthz/ready") or ""))
    _, error = start(second).communicate(timeout=60)

    assert "another process has the state" in error.decode()
