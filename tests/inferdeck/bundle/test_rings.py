"""Copies of rings: only the window, no session ids, and readers find in them what they find in the original."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from exporters.archive.blocks import Part
from exporters.rows import load_rows
from inferdeck.bundle.redact import Redactor
from inferdeck.bundle.rings import copy_window
from inferdeck.drill.evidence import hold_alive
from probes.reader import RingFile
from probes.schema import Column, compile_revision
from tests.inferdeck.bundle.conftest import ME, YOU, Fly


def test_a_copy_reads_as_the_original_without_session_ids(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """Same numbers, texts, stages, open requests; the id is the hash; the folder's key stays behind."""
    fly()
    original = load_rows(ring_dir)

    copies = copy_window(ring_dir, tmp_path / "copy", 0, Redactor())

    with hold_alive(tmp_path / "copy", copies.alive):
        copy = load_rows(tmp_path / "copy")
    assert (30, 0, []) == (copies.rows, copies.left_out, copies.unreadable)
    for name in ("start_unix_ns", "duration_ns", "trace_lo", "tokens", "session_hash", "route", "worker", "build"):
        assert np.array_equal(original[name], copy[name]), name
    assert original.stages == copy.stages
    assert [f"{number:016x}" for number in original["session_hash"]] == copy["session"].tolist()
    assert [(one.trace_id, one.stage, one.alive) for one in original.open] == [
        (one.trace_id, one.stage, one.alive) for one in copy.open
    ]
    assert [path.name for path in ring_dir.glob("*.ring")] == [path.name for path in (tmp_path / "copy").iterdir()]


def test_nothing_of_a_person_is_left_in_a_copy(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """Ids go wherever they stand: rows, open slots, status page; addresses go from labels."""
    fly()
    copy_window(ring_dir, tmp_path / "copy", 0, Redactor())

    (path,) = (tmp_path / "copy").iterdir()
    raw = path.read_bytes()
    assert [] == [word for word in (ME, YOU, "who@example.org") if word.encode() in raw]
    assert 0o600 == path.stat().st_mode & 0o777
    with RingFile(path) as ring:
        assert "saw " in (ring.status() or {})["note"]


def test_only_the_window_is_copied(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """Rows that ended before it stay; an older worker's file has no rows but is there."""
    fly(ago_seconds=3600)
    fly(rows=7, ago_seconds=30)

    copies = copy_window(ring_dir, tmp_path / "copy", time.time_ns() - 10**9 * 900, Redactor())

    assert (7, 2) == (copies.rows, len(copies.alive))
    assert 7 == len(load_rows(tmp_path / "copy"))


def test_a_ring_that_has_wrapped_keeps_its_latest_rows(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """What the bundle may not hold is counted, oldest first."""
    fly(rows=300, ring_rows=64)

    copies = copy_window(ring_dir, tmp_path / "copy", 0, Redactor(), most=20)

    assert (20, 44) == (copies.rows, copies.left_out)
    assert list(range(280, 300)) == load_rows(tmp_path / "copy")["tokens"].tolist()


def test_what_the_rings_have_overwritten_comes_from_the_archive(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """In order, each row once; a ring file that is gone is written from the archive alone."""
    fly(rows=40, ring_rows=64)
    (path,) = ring_dir.glob("*.ring")
    with RingFile(path) as ring:
        rows = ring.read(0, 100).rows
        header, strings = ring.header, ring.strings()
    parts = [Part(path.name, header, strings, rows[10:], 40), Part("0-gone.ring", header, strings, rows[:5], 5)]
    fly(rows=3)
    (live,) = (other for other in ring_dir.glob("*.ring") if other != path)
    # what the ring still holds and the archive has as well
    parts.append(Part(live.name, header, strings, rows[:8], 8))

    copies = copy_window(ring_dir, tmp_path / "copy", 0, Redactor(), archived=iter(parts))

    assert (40 + 5 + 8, 0) == (copies.rows, copies.left_out)
    assert (False, True) == (copies.alive["0-gone.ring"], copies.alive[path.name])
    with RingFile(tmp_path / "copy" / path.name) as ring:
        assert list(range(40)) == ring.read(0, 100).rows["tokens"].tolist()
    with RingFile(tmp_path / "copy" / "0-gone.ring") as ring:
        assert [0, 1, 2, 3, 4] == ring.read(0, 100).rows["tokens"].tolist()


def test_older_rows_without_a_later_column_have_it_absent(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """A row archived before a stage was known joins those after it."""
    fly(rows=4)
    (path,) = ring_dir.glob("*.ring")
    with RingFile(path) as ring:
        rows, header, strings = ring.read(0, 100).rows, ring.header, ring.strings()
    fixed = [name for name in rows.dtype.names or () if "/" not in name]
    early = np.zeros(2, compile_revision([Column(name, header.columns[name]) for name in fixed]).dtype)
    for name in fixed:
        early[name] = rows[name][:2]
    # numbers that the ring does not hold
    early["seq"] = [100, 101]

    copy_window(ring_dir, tmp_path / "copy", 0, Redactor(), archived=[Part(path.name, header, strings, early, 102)])

    assert 6 == len(load_rows(tmp_path / "copy"))
    assert np.isnan(load_rows(tmp_path / "copy").stage("model.forward")[0]).all()


def test_a_damaged_file_costs_that_file(fly: Fly, ring_dir: Path, tmp_path: Path) -> None:
    """It is named and the others are copied."""
    fly()
    (ring_dir / "x.ring").write_bytes(b"no ring")

    copies = copy_window(ring_dir, tmp_path / "copy", 0, Redactor())

    assert (30, ["x.ring"]) == (copies.rows, copies.unreadable)
