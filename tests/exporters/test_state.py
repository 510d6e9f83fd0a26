from __future__ import annotations

import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.state import RingState, State, StateUnreadableError, load_state, save_state
from exporters.totals import Totals


def some_state() -> State:
    """A state with something in each part."""
    state = State()
    state.totals.add("model_requests_total", ("/v1/sentiment", "ok"), 41)
    seen = Totals()
    seen.add("runtime_process_cpu_seconds_total", (), 1_500_000_000)
    state.rings["a.ring"] = RingState(cursor=41, seen=seen)
    state.rings["b.ring"] = RingState(cursor=7, finished=True, died_unix_ns=5)
    return state


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Cursors and totals come back together, from a file that only we can read."""
    save_state(tmp_path / "s", some_state(), flush=True)
    assert some_state() == load_state(tmp_path / "s")
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_no_file_is_no_state(tmp_path: Path) -> None:
    """A first start is told from a damaged file."""
    assert load_state(tmp_path / "s") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(place=st.floats(0, 0.999), byte=st.integers(1, 255))
def test_a_changed_byte_is_noticed(tmp_path: Path, place: float, byte: int) -> None:
    """One wrong byte anywhere makes the file unreadable rather than wrong."""
    path = tmp_path / "s"
    save_state(path, some_state())
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= byte
    path.write_bytes(raw)
    with pytest.raises(StateUnreadableError, match="damaged"):
        load_state(path)


@pytest.mark.parametrize("raw", [b"", b"\n", b"{}", b"00000000\n", b"a3f5\n{}", b"\xff" * 40])
def test_foreign_contents_are_unreadable(tmp_path: Path, raw: bytes) -> None:
    """Empty, foreign or cut files say so in one line."""
    (tmp_path / "s").write_bytes(raw)
    with pytest.raises(StateUnreadableError) as caught:
        load_state(tmp_path / "s")
    assert "\n" not in str(caught.value)


def test_another_version_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of a later exporter is not guessed at."""
    import zlib

    body = b'{"version":99,"totals":{},"rings":{}}'
    (tmp_path / "s").write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    with pytest.raises(StateUnreadableError, match="version 99"):
        load_state(tmp_path / "s")


def test_a_failed_rename_leaves_the_old_state(tmp_path: Path) -> None:
    """When writing fails at its last step, the old file is whole and no leftover takes space."""
    path = tmp_path / "s"
    save_state(path, State())

    def fails(_old: Any, _new: Any) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space left"):
        save_state(path, some_state(), replace=fails)
    assert State() == load_state(path)
    assert [found.name for found in tmp_path.iterdir()] == ["s"]


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    """A file size limit stands in for a full disk: the write itself fails half-way."""
    path = tmp_path / "s"
    save_state(path, some_state())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save_state(path, State())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert some_state() == load_state(path)
