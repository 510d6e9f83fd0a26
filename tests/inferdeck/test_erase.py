"""A session is taken out of all that is kept, and what was not reached is told."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.archive.blocks import Part
from exporters.archive.keys import remember_key
from exporters.archive.sealing import write_segment
from exporters.lookup import find_session
from inferdeck.erase import erase, run_erase, subject_of
from inferdeck.erase_files import erased, in_log, words_of
from inferdeck.errors import CannotRun
from inferdeck.rekey import run_rekey
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from probes import RecorderSettings
from probes.folder import session_hash
from probes.plan import FIXED_INDEX
from probes.reader import RingFile
from probes.ringfile import OwnedRing, open_ring
from probes.session_key import read_keys
from probes.settings import Identity
from runbooks.store import ReportStore

ME = "abcdefghijklmnop1234"
STAMP = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}


def flight(folder: Path, session: str = ME) -> OwnedRing:
    """Return a ring with one row of that session."""
    ring = open_ring(folder, "s", Identity(host="h"), RecorderSettings(ring_rows=64, open_slots=4), lambda _: None)
    row = ring.writer.plan.template.copy()
    row[FIXED_INDEX["session"]] = session.encode()
    row[FIXED_INDEX["session_hash"]] = session_hash(ring.key, session.encode())
    ring.writer.commit(row, ring.writer.scratch)
    return ring


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A folder of rows: one living worker, one dead."""
    return tmp_path / "rows"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with a report, a log and evidence of a drill that speak of ME."""
    state = tmp_path / "state"
    digest = hashlib.sha256(ME.encode()).hexdigest()[:8]
    ReportStore(state / "reports").save({"session_id": ME, "summary": f"worst: {ME}", "other": f"sha256:{digest}"})
    (state / "logs").mkdir()
    (state / "logs" / "service.log").write_text(f"a {ME} b\nsession={ME}\n")
    (state / "triage").mkdir()
    (state / "triage" / "1.incident").write_text(json.dumps({"group_key": f"x:{ME}"}))
    flight(state / "drills" / "d" / "rings").close()
    (state / "drills" / "d" / "triage_told.json").write_text(json.dumps([ME]))
    return state


def everything(*folders: Path) -> bytes:
    """Return all bytes below these folders."""
    return b"".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


def test_every_place_is_reached_and_a_second_time_finds_nothing(rows: Path, state: Path) -> None:
    """Rows of living and dead, evidence, reports, incidents, logs; the output counts them."""
    living, dead = flight(rows), flight(rows)
    dead.close()
    subject = subject_of(ME, None, rows, state / "archive")

    first = erase(subject, rows, state)
    second = erase(subject, rows, state)

    assert ([], [], []) == (first.unreached, second.unreached, second.places)
    assert ["rows", "rows", "evidence of a drill", "report", "waiting incident", "log", "evidence of a drill"] == [
        one["place"] for one in first.places
    ]
    left = everything(rows, state)
    assert ME.encode() not in left
    assert hashlib.sha256(ME.encode()).hexdigest()[:8].encode() not in left
    living.close()


def test_what_is_not_reached_is_told_with_exit_1(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign file, a request in flight; the result has its shape."""
    for name in ("INFERDECK_STATE_DIR", "INFERDECK_RING_DIR"):
        monkeypatch.delenv(name, raising=False)
    ring = flight(rows)
    raw = session_hash(ring.key, ME.encode())
    ring.writer.begin((1, 2, 3, 0, 4, raw, ME.encode(), 0, 0, 0, 0))
    (rows / "damaged.ring").write_bytes(b"no ring")
    settings = load_settings(state_dir=tmp_path / "state", ring_dir=rows)

    outcome = run_erase(settings, ME, None)
    ring.close()
    (rows / "damaged.ring").unlink()
    after = run_erase(settings, ME, None)

    validate("erase", STAMP | outcome.payload)
    assert 1 == outcome.code
    reasons = sorted(one["reason"].split(":")[0] for one in outcome.payload["unreached"])
    assert ["1 requests in flight; run it again when they have ended", "NotARing"] == reasons
    assert (0, []) == (after.code, after.payload["unreached"])
    assert any("OTLP" in one for one in outcome.payload["beyond_reach"])


def test_a_foreign_id_is_erased_by_what_came_or_by_its_hash(rows: Path, tmp_path: Path) -> None:
    """Quotes, line breaks, 10 kB, bytes that are no UTF-8: only the hash was stored, and it goes."""
    for number, session in enumerate(["a\"b\n'; --", "x" * 10_000, "caf\udce9", "../../etc/passwd", " "]):
        folder = rows / str(number)
        ring = open_ring(folder, "s", Identity(host="h"), RecorderSettings(ring_rows=64, open_slots=4), lambda _: None)
        row = ring.writer.plan.template.copy()
        row[FIXED_INDEX["session_hash"]] = session_hash(ring.key, session.encode("utf-8", "surrogateescape"))
        ring.writer.commit(row, ring.writer.scratch)
        by_id = subject_of(session, None, folder, tmp_path / "none")
        by_hash = subject_of(None, f"{by_id.hashes[0]:016x}", folder, tmp_path / "none")

        assert by_id.hashes == by_hash.hashes
        assert ["rows"] == [one["place"] for one in erase(by_hash, folder, tmp_path / "state").places]
        assert [] == erase(by_id, folder, tmp_path / "state").places
        ring.close()


@pytest.mark.parametrize(
    ("session", "keyed", "word"),
    [
        (None, None, "whose traces"),
        ("a", "0" * 16, "whose traces"),
        (None, "xyz", "16 hexadecimal"),
        ("", None, "1 to"),
        ("x" * 70_000, None, "1 to"),
    ],
)
def test_a_question_that_names_nobody_is_refused(
    session: str | None, keyed: str | None, word: str, tmp_path: Path
) -> None:
    """One line."""
    with pytest.raises(CannotRun, match=word):
        subject_of(session, keyed, tmp_path, tmp_path)


def test_a_folder_that_cannot_be_listed_is_told(rows: Path, tmp_path: Path) -> None:
    """What is in it was not looked at; that must not read as "nothing there"."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "reports").touch()

    found = erase(subject_of(ME, None, rows, tmp_path / "none"), rows, tmp_path / "state")

    assert [("folder", str(tmp_path / "state" / "reports"))] == [(one["place"], one["path"]) for one in found.unreached]


def test_a_short_id_destroys_no_other_text(state: Path, rows: Path) -> None:
    """An id of one letter is not searched for inside words."""
    before = everything(state)

    assert [] == erase(subject_of("a", None, rows, state / "archive"), rows, state).places
    assert before == everything(state)


def test_the_archive_is_reached(rows: Path, tmp_path: Path) -> None:
    """Segments of the exporter are masked, by the id and by the hash alone; a damaged one is told."""
    folder = tmp_path / "state" / "archive"
    folder.mkdir(parents=True)
    ring = flight(rows)
    assert ring.path is not None
    with RingFile(ring.path) as reader:
        part = Part(ring.path.name, reader.header, reader.strings(), reader.read(0, 10).rows, 1)
    write_segment(folder, [part])
    by_id = subject_of(ME, None, rows, folder)
    by_hash = subject_of(None, f"{by_id.hashes[0]:016x}", rows, folder)

    first, second = erase(by_hash, rows, tmp_path / "state"), erase(by_id, rows, tmp_path / "state")
    (segment,) = folder.glob("*.npz")
    segment.write_bytes(b"damaged")
    third = erase(by_id, rows, tmp_path / "state")
    ring.close()

    assert ["rows", "archive"] == [one["place"] for one in first.places]
    assert ([], []) == (second.places, second.unreached)
    assert [str(segment)] == [one["path"] for one in third.unreached]


def test_the_archive_of_a_drill_is_reached_with_its_own_key(rows: Path, tmp_path: Path) -> None:
    """Its exporter archives as any other does; the rows and segments of each drill bear hashes of that drill's key."""
    state, run = tmp_path / "state", tmp_path / "state" / "drills" / "d" / "001"
    (run / "state" / "archive").mkdir(parents=True)
    foreign = "a\"b'; --, which is kept by its hash alone"
    for session in (ME, foreign):
        ring = flight(tmp_path / "gone", session)
        assert ring.path is not None
        with RingFile(ring.path) as reader:
            part = Part(ring.path.name, reader.header, reader.strings(), reader.read(0, 10).rows, 1)
        part.rows["session"][part.rows["session"] != ME.encode()] = b""
        write_segment(run / "state" / "archive", [part])
        ring.close()
    remember_key(run / "state" / "archive", tmp_path / "gone")
    (run / "state" / "triage").mkdir()
    (run / "state" / "triage" / "1.incident").write_text(json.dumps({"group_key": ME}))
    segments = sorted((run / "state" / "archive").glob("*.npz"))

    for session in (ME, foreign):
        found = erase(subject_of(session, None, rows, state / "archive"), rows, state)
        assert [1] == [one["count"] for one in found.places if one["path"].endswith("archive")]
        assert [] == found.unreached
        assert [] == erase(subject_of(session, None, rows, state / "archive"), rows, state).places
    assert ME not in (run / "state" / "triage" / "1.incident").read_text()
    segments[0].write_bytes(b"damaged")
    assert [str(segments[0])] == [
        one["path"] for one in erase(subject_of(ME, None, rows, state / "archive"), rows, state).unreached
    ]


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_without_the_words_is_untouched(value: object) -> None:
    """And with them, nothing of them is left in the values; a longer word that holds one is another word."""
    assert (value, 0) == erased(value, words_of("never-in-such-a-text-\0", []))
    changed, count = erased([value, f"x {ME}, y", ME, {"key": ME}], words_of(ME, []))
    assert (3, True) == (count, ME not in json.dumps(changed))
    mixed = "kTqXkzSeloyTnqQwHbRsUv"
    assert (mixed,) == words_of(mixed, []).logs
    assert ([f"x{ME}"], 0) == erased([f"x{ME}"], words_of(ME, []))


@pytest.mark.parametrize("session", ["short", "a", "event_loop_blocked", "p95_seconds", "EventLoopBlocked"])
def test_an_id_that_is_a_word_of_ours_damages_no_report(session: str, rows: Path, tmp_path: Path) -> None:
    """Keys and names stay; its session fields and the digest of reports go."""
    digest = hashlib.sha256(session.encode()).hexdigest()[:8]
    report = {
        "verdict": {"failure": session, "text": f"the {session} class"},
        "p95_seconds": {session: 1.5},
        "alert": session,
        "session_id": session,
        "session": f"sha256:{digest}",
    }
    (tmp_path / "state" / "reports").mkdir(parents=True)
    path = tmp_path / "state" / "reports" / "r.json"
    path.write_text(json.dumps(report))

    found = run_erase(load_settings(state_dir=tmp_path / "state", ring_dir=rows), session, None)

    assert report | {"session_id": "(erased)", "session": "(erased)"} == json.loads(path.read_text())
    assert any("session fields alone" in one for one in found.payload["beyond_reach"])


def test_a_log_is_masked_in_place_while_it_is_written(tmp_path: Path) -> None:
    """Same file, same length; a writer's end stays the end; links are not followed."""
    path = tmp_path / "a.log"
    with path.open("a", buffering=1) as writer:
        writer.write(f"1 {ME}\n")
        assert 1 == in_log(path, words_of(ME, []))
        writer.write("2\n")

    assert f"1 {'x' * len(ME)}\n2\n" == path.read_text()
    (tmp_path / "link.log").symlink_to(path)
    with pytest.raises(OSError, match=os.strerror(40)):
        in_log(tmp_path / "link.log", words_of(ME, []))


def test_rows_of_the_stream_are_erased_by_their_own_key(rows: Path, state: Path) -> None:
    """Messages of the session that a stream of user queries took, beside its requests."""
    flight(rows).close()
    flight(rows / "stream").close()

    erasure = erase(subject_of(ME, None, rows, state / "archive"), rows, state)

    assert ([], True) == (erasure.unreached, "rows of the stream" in [place["place"] for place in erasure.places])
    assert ME.encode() not in everything(rows)


def held(one: OwnedRing) -> int:
    """Return how many rows of a worker bear the hash that its own key gives."""
    assert one.path is not None
    with RingFile(one.path) as ring:
        return len(ring.find_hash(session_hash(one.key, ME.encode())))


def test_rows_of_keys_that_were_rotated_away_are_erased_too(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command: each start hashes otherwise, each row is found by the id, and each is erased."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(state))
    rows = tmp_path / "rotated"
    settings = load_settings().model_copy(update={"state_dir": state, "ring_dir": rows})
    flights = []
    for _ in range(3):
        flights.append(flight(rows))
        outcome = run_rekey(settings)
        validate("rekey", STAMP | outcome.payload)
    assert 3 == len({one.key for one in flights}) == len(read_keys(rows))
    # The hand-made rows share a trace id, so that they are one trace.
    assert find_session(rows, ME)
    assert [1, 1, 1] == [held(one) for one in flights]

    done = {place["path"]: place["count"] for place in run_erase(settings, ME, None).payload["places"]}

    assert all(str(one.path) in done for one in flights)
    assert [] == find_session(rows, ME)
    assert [0, 0, 0] == [held(one) for one in flights]
    for one in flights:
        one.close()
