from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes import Recorder, RecorderSettings
from probes.layout import FORMAT_VERSION, FRAME, plan_layout
from probes.plan import FIXED_INDEX, StageSpec
from probes.reader import NotARing, RingFile, UnknownVersion, list_rings
from probes.ringfile import open_ring
from probes.settings import Identity
from probes.writer import RingWriter

SMALL = RecorderSettings(ring_rows=16, row_bytes=1024, open_slots=4)
TEXTS = st.text(max_size=80)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.integers(-(2**63) + 1, 2**63 - 1) | st.floats() | st.booleans() | TEXTS,
    max_size=3,
)


def writer_in(folder: Path, sizes: RecorderSettings = SMALL) -> tuple[Any, RingWriter]:
    """Return a new ring of that folder and its writer."""
    ring = open_ring(folder, "test", Identity(host="h"), sizes, lambda _: None)
    return ring, ring.writer


def put(writer: RingWriter, value: int, session_hash: int = 7) -> int:
    """Commit a row whose tokens are *value*."""
    row = writer.plan.template.copy()
    row[FIXED_INDEX["tokens"]] = value
    row[FIXED_INDEX["session_hash"]] = session_hash
    return writer.commit(row, writer.scratch)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 40))
def test_whatever_the_bursts_each_row_is_read_once_or_counted_as_lost(
    tmp_path_factory: pytest.TempPathFactory, bursts: list[int], limit: int
) -> None:
    """A reader that comes now and then gets the rows in order, and rows read and lost add up to rows written."""
    ring, writer = writer_in(tmp_path_factory.mktemp("rings", numbered=True) / "r")
    read: list[int] = []
    cursor = lost = 0
    with RingFile(ring.path) as reader:
        for burst in bursts:
            for _ in range(burst * burst):
                put(writer, writer.head)
            assert writer.head == reader.head()
            batch = reader.read(cursor, limit)
            assert [int(seq) for seq in batch.rows["seq"]] == [int(tokens) for tokens in batch.rows["tokens"]]
            read += batch.rows["seq"].tolist()
            lost += batch.lost
            assert batch.torn == 0
            cursor = batch.cursor
    ring.close()

    assert sorted(set(read)) == read
    assert len(read) + lost == cursor


@settings(max_examples=40, deadline=None)
@given(st.lists(ATTRIBUTES, max_size=6))
def test_attributes_of_any_kind_come_back_and_older_rows_are_absent_in_newer_columns(
    tmp_path_factory: pytest.TempPathFactory, requests: list[dict[str, Any]]
) -> None:
    """The schema grows while rows are written; every row reads in the newest revision."""
    folder = tmp_path_factory.mktemp("rings", numbered=True) / "r"
    recorder = Recorder.open(folder, "test", settings=RecorderSettings(ring_rows=16, sensors=False))
    kinds: dict[str, type] = {}
    scope = {"headers": [], "method": "GET"}
    for attributes in requests:
        begun = recorder.begin(scope)
        assert begun is not None
        with begun[1].stage("s", **attributes):
            pass
        recorder.finish(begun, scope, 200, False)
        for name, value in attributes.items():
            kinds.setdefault(name, type(value))
    with RingFile(recorder.path or "") as reader:
        batch, strings = reader.read(), reader.strings()
    recorder.close()
    assert len(requests) == len(batch.rows)
    for row, attributes in zip(batch.rows, requests, strict=True):
        for name, kind in kinds.items():
            given_value: Any = attributes.get(name)
            stored: Any = row[f"s/{name}"]
            if type(given_value) is not kind:
                continue
            if kind is str:
                text = strings[stored].encode()
                assert text == str(given_value).encode("utf-8", "replace")[: len(text)]
            else:
                assert stored == given_value or str(stored) == str(given_value) == "nan"


def test_a_row_of_an_absent_attribute_is_absent(tmp_path: Path) -> None:
    """An older row has NaN, -2**63, 255 or id 0 in the columns that came after it."""
    ring, writer = writer_in(tmp_path / "r")
    put(writer, 1)
    writer.plan.stage("late", {"i": 1, "f": 1.5, "b": True, "s": "x"})
    with RingFile(ring.path) as reader:
        row = reader.read().rows[0]
    ring.close()

    assert (2**64 - 1, 0, -(2**63), 255, 0) == (
        row["late/start_ns"], row["late/duration_ns"], row["late/i"], row["late/b"], row["late/s"],
    )  # fmt: skip
    assert row["late/f"] != row["late/f"]
    assert row["tokens"] == 1


def test_the_head_is_found_at_every_fill_level(tmp_path: Path) -> None:
    """Empty, half full, exactly full, and in later laps."""
    ring, writer = writer_in(tmp_path / "r")
    heads = []
    with RingFile(ring.path) as reader:
        for _ in range(40):
            heads.append(reader.head())
            put(writer, 0)
    ring.close()

    assert list(range(40)) == heads


def test_a_cursor_before_the_oldest_row_counts_what_it_missed(tmp_path: Path) -> None:
    """40 rows through a ring of 16: 24 are lost to a reader that comes late, none to one that asks from there on."""
    ring, writer = writer_in(tmp_path / "r")
    for value in range(40):
        put(writer, value)
    with RingFile(ring.path) as reader:
        late, beyond = reader.read(0), reader.read(1000)
    ring.close()

    assert (24, 16, 40) == (late.lost, len(late.rows), late.cursor)
    assert (0, 0, 40) == (beyond.lost, len(beyond.rows), beyond.cursor)


def test_rows_of_a_session_are_found_by_their_hash(tmp_path: Path) -> None:
    """Only its own rows, in order, also after they wrapped around."""
    ring, writer = writer_in(tmp_path / "r")
    for value in range(40):
        put(writer, value, session_hash=2**64 - 1 if value % 5 == 0 else 3)
    with RingFile(ring.path) as reader:
        found, none = reader.find_hash(2**64 - 1), reader.find_hash(4)
    ring.close()

    assert [25, 30, 35] == found["tokens"].tolist()
    assert len(none) == 0


@pytest.mark.parametrize("place", ["crc", "body", "length", "revision", "word"])
def test_a_damaged_row_is_counted_as_torn_and_the_others_are_read(tmp_path: Path, place: str) -> None:
    """One bit in any part of a row costs that row alone."""
    ring, writer = writer_in(tmp_path / "r")
    for value in range(10):
        put(writer, value)
    offset = {"word": 3, "crc": 8, "revision": 12, "length": 14, "body": FRAME.size + 30}[place]
    at = writer.layout.ring + 4 * writer.layout.row_bytes + offset
    writer.buffer[at] ^= 0x10
    with RingFile(ring.path) as reader:
        batch = reader.read()
    ring.close()

    assert ([0, 1, 2, 3, 5, 6, 7, 8, 9], 1, 0) == (batch.rows["tokens"].tolist(), batch.torn, batch.lost)


def test_a_row_whose_commit_word_was_never_written_does_not_exist(tmp_path: Path) -> None:
    """A writer killed just before its last store has written nothing."""
    ring, writer = writer_in(tmp_path / "r")
    for value in range(20):
        put(writer, value)
    at = writer.layout.ring + 4 * writer.layout.row_bytes
    writer.buffer[at + 8 : at + 200] = os.urandom(192)  # row 20 begins to overwrite row 4: all but its word
    with RingFile(ring.path) as reader:
        batch = reader.read(4)
    ring.close()

    assert (list(range(5, 20)), 20) == (batch.rows["tokens"].tolist(), batch.cursor)
    assert batch.torn == 1


def damage(path: Path, what: str) -> None:
    """Make a ring file into something else."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if what == "empty":
            file.truncate(0)
        elif what == "short":
            file.truncate(10)
        elif what == "truncated":
            file.truncate(size - 1)
        elif what == "zeroed":
            file.write(bytes(size))
        elif what == "foreign":
            file.write(b"\x7fELF" + bytes(100))
        elif what == "version":
            file.seek(8)
            file.write(struct.pack("<H", FORMAT_VERSION + 1))
        elif what == "header":
            file.seek(40)
            file.write(b"\xff")
        elif what == "journal":
            file.seek(plan_layout(1024, 16, 4).schema)
            file.write(bytes(64))


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("empty", NotARing, "too few"),
        ("short", NotARing, "too few"),
        ("truncated", NotARing, "truncated"),
        ("zeroed", NotARing, "magic"),
        ("foreign", NotARing, "magic"),
        ("version", UnknownVersion, "version 2"),
        ("header", NotARing, "damaged"),
        ("journal", NotARing, "no columns"),
    ],
)
def test_what_is_no_ring_is_said_to_be_none(tmp_path: Path, what: str, error: type[Exception], words: str) -> None:
    """A clear exception that names the file; no crash, no endless loop."""
    ring, _ = writer_in(tmp_path / "r")
    ring.close()
    damage(ring.path, what)

    with pytest.raises(error, match=words) as caught:
        RingFile(ring.path)
    assert str(ring.path) in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_damage_makes_a_reader_crash_or_give_a_false_row(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Random bytes anywhere: the reader raises its own errors, or gives rows that were written."""
    folder = tmp_path_factory.mktemp("rings", numbered=True)
    ring, writer = writer_in(folder / "r")
    for value in range(20):
        put(writer, value)
    total = writer.layout.total
    ring.close()
    copy = folder / "copy.ring"
    shutil.copy(ring.path, copy)
    with copy.open("r+b") as file:
        for _ in range(data.draw(st.integers(1, 4))):
            file.seek(data.draw(st.integers(0, 4200) | st.integers(0, total - 64)))
            file.write(data.draw(st.binary(min_size=1, max_size=64)))
    try:
        with RingFile(copy) as reader:
            rows = reader.read().rows
            reader.strings(), reader.status(), reader.open_slots(), reader.find_hash(7)
    except (NotARing, UnknownVersion):
        return
    assert rows["tokens"].tolist() == rows["seq"].tolist()
    assert set(rows["session_hash"].tolist()) <= {7}


def test_a_file_truncated_under_a_reader_is_an_error_of_its_own(tmp_path: Path) -> None:
    """pread, not a mapping: no SIGBUS."""
    ring, writer = writer_in(tmp_path / "r")
    put(writer, 1)
    with RingFile(ring.path) as reader:
        ring.close()
        os.truncate(ring.path, 4096)
        with pytest.raises(NotARing, match="truncated"):
            reader.read()


def test_open_slots_tell_what_runs_and_the_last_stage(tmp_path: Path) -> None:
    """In order of start; a committed request is gone; what exceeds the table is counted and written all the same."""
    ring, writer = writer_in(tmp_path / "r")
    recorder = Recorder(tmp_path / "other", "x")
    recorder.close()
    from probes.intake import Intake

    intake = Intake(ring)
    scope = {"headers": [(b"x-session-id", b"session-%010d" % 1)], "method": "POST"}
    records = [intake.begin(scope) for _ in range(6)]
    with records[1].stage("tokenizer"):
        pass
    for index in (0, 5):
        intake.finish(records[index], scope, 200, False)
    with RingFile(ring.path) as reader:
        slots, names, rows = reader.open_slots(), reader.header.stage_names, reader.read().rows
    ring.close()

    assert [2, 3, 4] == slots["seq"].tolist()
    assert ["tokenizer", "", ""] == [names[number] for number in slots["stage"]]
    assert {b"session-0000000001"} == set(slots["session"].tolist())
    assert (2, 2) == (writer.open_overflow, len(rows))


RACER = """
import sys, time
from probes.plan import FIXED_INDEX
from probes.ringfile import open_ring
from probes.settings import Identity, RecorderSettings
from pathlib import Path
ring = open_ring(Path(sys.argv[1]), "racer", Identity(), RecorderSettings(ring_rows=16, open_slots=4), lambda _: None)
writer, tokens = ring.writer, FIXED_INDEX["tokens"]
print(ring.path, flush=True)
end = time.monotonic() + 1.0
while time.monotonic() < end:
    row = writer.plan.template.copy()
    ids = (writer.head,) * 6 + (b"%032d" % writer.head, 0, 0, 0, 0)
    row[1:12] = ids
    row[tokens] = writer.head
    writer.commit(row, writer.begin(ids))
print(writer.head, flush=True)
sys.stdin.read()
"""


def test_a_reader_beside_a_racing_writer_never_sees_half_a_row(tmp_path: Path) -> None:
    """A ring of 16 rows overtakes the reader again and again: rows it gives are whole, rows it misses are counted."""
    racer = subprocess.Popen(
        [sys.executable, "-c", RACER, str(tmp_path / "r")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert racer.stdout is not None
    path = racer.stdout.readline().strip()
    read: list[int] = []
    cursor = missed = 0
    with RingFile(path) as reader:
        while reader.head() == 0:
            pass
        still = 0
        while still < 2:
            batch = reader.read(cursor)
            for row in batch.rows:
                assert row["seq"] == row["tokens"] == row["trace_hi"] == row["session_hash"] == int(row["session"])
            for slot in reader.open_slots():
                assert slot["trace_hi"] == slot["session_hash"] == int(slot["session"])
            read += batch.rows["seq"].tolist()
            missed += batch.lost + batch.torn
            still = still + 1 if batch.cursor == cursor else 0
            cursor = batch.cursor
            time.sleep(0.0002)
        head = int(racer.stdout.readline())
        batch = reader.read(cursor)
    racer.communicate("", timeout=30)
    read += batch.rows["seq"].tolist()

    assert head == batch.cursor == len(read) + missed + batch.lost
    assert sorted(set(read)) == read
    assert len(read) >= 16  # what the ring holds at the end, at least


def test_the_header_and_the_stages_are_told(tmp_path: Path) -> None:
    """Who wrote it, and the stages with their parents, those included that came after the file was opened."""
    ring, writer = writer_in(tmp_path / "r")
    with RingFile(ring.path) as reader:
        before = reader.header
        writer.plan._declare_all([StageSpec("inner", parent="outer"), StageSpec("outer")])
        writer.publish({"identity": {"model": "m2"}})
        after = reader.header
    ring.close()

    assert ("test", "h", os.getpid(), 0, "") == (before.service, before.host, before.pid, before.worker, before.model)
    assert ("outer", None, "m2") == (after.stages["inner"], after.stages["outer"], after.model)
    assert len(before.stage_names) + 2 == len(after.stage_names)


def test_the_status_page_is_read_as_written_or_not_at_all(tmp_path: Path) -> None:
    """None before the first one; a torn page is None, not garbage."""
    ring, writer = writer_in(tmp_path / "r")
    with RingFile(ring.path) as reader:
        before = reader.status()
        writer.write_status({"ready": True})
        written = reader.status()
        writer.buffer[writer.layout.status + 20] ^= 1
        torn = reader.status()
    ring.close()

    assert (None, {"ready": True}, None) == (before, written, torn)


def test_a_status_that_is_too_long_loses_its_oldest_episodes(tmp_path: Path) -> None:
    """The page is bounded; the newest blocked episodes stay."""
    ring, writer = writer_in(tmp_path / "r")
    episodes = [{"duration_ns": number, "stack": ["x" * 200] * 12} for number in range(40)]
    writer.write_status({"blocked": episodes})
    with RingFile(ring.path) as reader:
        status = reader.status()
    ring.close()

    assert status is not None
    assert status["blocked"] == episodes[-len(status["blocked"]) :]
    assert 10 < len(status["blocked"]) < 40


def test_rings_are_listed_and_the_owner_is_seen_to_live_and_die(tmp_path: Path) -> None:
    """Other files of the folder are no rings; a missing folder has none."""
    ring, _ = writer_in(tmp_path / "r")
    with RingFile(ring.path) as reader:
        alive = reader.owner_alive()
        ring.close()
        dead = reader.owner_alive()

    assert [ring.path] == list_rings(tmp_path / "r")
    assert [] == list_rings(tmp_path / "none")
    assert (True, False) == (alive, dead)


def test_the_reader_maps_nothing() -> None:
    """A mapping of a file that is truncated kills its process."""
    source = Path(__file__).resolve().parents[2] / "probes" / "reader.py"

    assert "mmap" not in source.read_text().replace("never a mapping", "")
    assert mmap.ALLOCATIONGRANULARITY >= 4096


def test_rows_are_read_by_their_numbers_as_far_as_they_are_still_held(tmp_path: Path) -> None:
    """Any numbers, in any order: overwritten ones and ones that are not written yet are left out."""
    ring, writer = writer_in(tmp_path / "r")
    for value in range(40):
        put(writer, value)
    with RingFile(ring.path) as reader:
        found, none = reader.rows_at([39, 2, 24, 30, 40, 30]), reader.rows_at([])
    ring.close()

    assert ([24, 30, 39], [24, 30, 39], 0) == (found["seq"].tolist(), found["tokens"].tolist(), len(none))


def test_more_texts_than_one_look_at_the_table_takes_are_all_read(tmp_path: Path) -> None:
    """The table is read piece by piece, across its pieces' ends, and again from where the last look ended."""
    ring, writer = writer_in(tmp_path / "r")
    words = [f"word-{number}" for number in range(200)]
    with RingFile(ring.path) as reader:
        before = len(reader.strings())
        for word in words:
            writer.strings.add(word)
        after = reader.strings()
    ring.close()

    assert words == after[before:]
