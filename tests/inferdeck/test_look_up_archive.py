"""Look-up goes on where the rings end: in the archive, and on other machines."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from exporters.answer import Question, answer
from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from inferdeck.errors import CannotRun
from inferdeck.look_up import Query, look_up, look_up_elsewhere
from inferdeck.schema import validate
from inferdeck.version import ROOT
from inferdeck.waterfall import show_traces
from probes.intake import Intake
from probes.plan import FIXED_INDEX
from probes.ringfile import open_ring
from probes.settings import Identity, RecorderSettings
from runbooks.row_source import RowSource

START = 1_700_000_000_000_000_000
MINE = "mine-0123456789abcdef"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Rows of 80 s in a ring that holds the last 16, and in an archive that holds all; the third one took a second."""
    rings, archive = tmp_path / "rings", tmp_path / "archive"
    owned = open_ring(rings, "sentiment", Identity(), RecorderSettings(ring_rows=16), lambda _reason: None)
    archiver = Archiver(rings, archive, Limits(keep_seconds=10**9))
    intake = Intake(owned)
    for number in range(80):
        headers = [(b"x-session-id", MINE.encode() if number == 2 else b"session-%012d" % number)]
        record = intake.begin({"type": "http", "method": "POST", "headers": headers})
        row = record.row  # a copy where the core is compiled
        row[FIXED_INDEX["start_unix_ns"]] = START + number * 10**9
        row[FIXED_INDEX["duration_ns"]] = 1_000_000_000 if number == 2 else 5_000_000
        row[FIXED_INDEX["input_length"]] = 40
        owned.writer.commit(row, record.slot)
        if number % 8 == 7:
            archiver.look(everything=True)
    owned.close()
    return rings, archive


def told(payload: dict[str, Any]) -> str:
    """What a person reads."""
    text = io.StringIO()
    show_traces(Console(file=text, width=200), payload)
    return text.getvalue()


def test_a_row_that_left_its_ring_is_found_and_explained(folders: tuple[Path, Path]) -> None:
    """From the archive, and against what was usual then."""
    rings, archive = folders
    assert [] == look_up(Query(session=MINE), rings)["traces"]
    payload = look_up(Query(session=MINE), rings, archive)
    (trace,) = payload["traces"]
    assert ("found", ["ring", "archive"], 1.0) == (payload["result"], payload["sources"], trace["duration_s"])
    assert "200 times the usual 0.00500 s" in trace["why"]
    rows = RowSource(rings, archive).collect(START / 1e9 - 1, START / 1e9 + 40)
    assert 40 == len(rows.start_s)


def test_the_archive_answers_when_the_rings_are_gone(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """After the machine's next start there is no folder of rows; without an archive either it is a clear line."""
    assert 3 == len(look_up(Query(slow=3, since_s=10**9), tmp_path / "none", folders[1])["traces"])
    with pytest.raises(CannotRun, match="no rows"):
        look_up(Query(slow=3), tmp_path / "none", tmp_path / "none")


def test_older_than_retention_is_said(folders: tuple[Path, Path]) -> None:
    """In words and in the result; a miss without a time says from when on rows are kept."""
    now = START / 1e9 + 100
    older = look_up(Query(session="x", within_s=1000), *folders, clock=lambda: now)
    assert ("older_than_retention", {"session_id": "x", "since_s": 1000}) == (older["result"], older["query"])
    assert "older than what is kept" in told(older)
    missing = told(look_up(Query(session="x", within_s=10), *folders, clock=lambda: now))
    assert "nothing found" in missing
    assert "kept since 2023-11-14T22:13:20" in missing


def test_a_damaged_segment_is_said(folders: tuple[Path, Path]) -> None:
    """A miss must not look complete when it is not."""
    segment = sorted(folders[1].glob("*.npz"))[0]
    segment.write_bytes(b"")
    assert f"segment {segment.name}" in told(look_up(Query(session="x"), *folders))


@pytest.fixture
def exporter(folders: tuple[Path, Path]) -> Iterator[Callable[[], str]]:
    """Start a server that answers a session's look-up as an exporter does; returns its address."""
    servers: list[ThreadingHTTPServer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answer(Question(session_id=MINE), *folders)
            body = json.dumps(found.about() | {"traces": [view.to_dict() for view in found.traces]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    def begin() -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def test_several_exporters_are_asked(exporter: Callable[[], str]) -> None:
    """Who answered is part of the answer, for people too."""
    dead = "http://127.0.0.1:1"
    payload = look_up_elsewhere(Query(session=MINE), f"{exporter()},{exporter()},{dead}")
    assert 1 == len(payload["traces"])
    assert (3, 2, [dead]) == (
        payload["endpoints"]["asked"],
        payload["endpoints"]["answered"],
        [one["endpoint"] for one in payload["endpoints"]["failed"]],
    )
    assert "2 of 3 exporters answered" in told(payload)
    assert f"{dead}: cannot be reached" in told(payload)
    assert "causes are named where the rows are: run `inferdeck trace` on that machine" in told(payload)


@pytest.mark.parametrize(("endpoints", "line"), [("http://127.0.0.1:1", "none of 1"), ("what", "--endpoints")])
def test_nobody_to_ask_is_a_clear_line(endpoints: str, line: str) -> None:
    """With the mend; not an empty answer."""
    with pytest.raises(CannotRun, match=line):
        look_up_elsewhere(Query(session=MINE), endpoints)


def test_the_console_asks_and_answers_in_its_shape(
    folders: tuple[Path, Path], exporter: Callable[[], str], tmp_path: Path
) -> None:
    """Here and elsewhere: exit 0 when found, 1 when not, valid JSON by the schema; a token stays out of the answer."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    folders[1].rename(state / "archive")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")} | {
        "PYTHONPATH": str(ROOT),
        "INFERDECK_RING_DIR": str(folders[0]),
        "INFERDECK_STATE_DIR": str(state),
        "INFERDECK_EXPORTER_API_TOKEN": "t" * 20,
    }
    for status, *arguments in (
        (0, MINE),
        (1, "absent-0123456789abcd", "--since", "3h"),
        (1, MINE, "--endpoints", f"{exporter()},http://127.0.0.1:1"),
    ):
        argv = [sys.executable, "-P", "-m", "inferdeck", "trace", *map(str, arguments), "--json"]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert status == done.returncode, done.stderr
        validate("trace", json.loads(done.stdout))
        assert "tttt" not in done.stdout
