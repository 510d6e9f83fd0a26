"""The compiled core: it is loaded for its own sources alone, and does what the interpreted one does."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.core import CORE, CORE_NAME, HERE, SOURCES, binary_path, core_state, load_core, source_hash

SCRIPT = Path(__file__).with_name("core_script.py")
REQUESTS = 200


def compiled_only() -> None:
    """Skip where no compiled core is, unless it was to be there."""
    if CORE is None:
        if os.environ.get("CI") == "true" and os.environ.get("INFERDECK_CORE") != "interpreted":
            pytest.fail(f"the compiled core is {core_state()[0]}: python hatch_build.py")
        pytest.skip(f"the compiled core is {core_state()[0]}")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the core's sources."""
    for name in SOURCES:
        shutil.copy(HERE / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", SOURCES)
def test_an_edit_of_any_source_leaves_an_older_core_alone(sources: Path, name: str) -> None:
    """What was built from other sources is stale, and not loaded."""
    binary_path(sources).write_bytes(b"compiled")
    before = core_state(sources, {})
    with (sources / name).open("a") as file:
        file.write("\n")

    assert ("compiled", "stale") == (before[0], core_state(sources, {})[0])
    assert core_state(sources, {})[1] is None


def test_a_ring_that_is_closed_while_a_request_begins_is_an_error_and_no_crash(tmp_path: Path) -> None:
    """A finaliser that the collector runs inside `begin` may close the ring between its check and its first store."""
    script = SCRIPT.with_name("core_close_script.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, timeout=120, cwd=HERE.parent, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "refused" in done.stdout.splitlines()


def test_the_core_that_runs_can_be_chosen(sources: Path) -> None:
    """Nobody needs to delete anything to compare the two."""
    binary_path(sources).write_bytes(b"compiled")

    assert ("asked", None) == core_state(sources, {"INFERDECK_CORE": "interpreted"})
    assert ("compiled", binary_path(sources)) == core_state(sources, {"INFERDECK_CORE": ""})


def test_without_sources_or_compiled_file_there_is_none(sources: Path, tmp_path: Path) -> None:
    """That is no error."""
    assert "absent" == core_state(sources, {})[0]
    (sources / SOURCES[0]).unlink()
    assert "absent" == core_state(sources, {})[0]


def test_a_damaged_core_is_told_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The recorder is slower then, and not gone."""
    loaded = sys.modules.get("probes._core")
    damaged = tmp_path / binary_path().name
    damaged.write_bytes(b"\x7fELF is not enough")
    try:
        assert load_core(damaged) is None
    finally:
        if loaded is not None:
            sys.modules["probes._core"] = loaded
    assert "cannot be loaded" in caplog.text


def test_names_tell_sources_and_interpreter_apart() -> None:
    """Several interpreters may share a checkout."""
    assert source_hash() in binary_path().name
    assert binary_path().name.endswith(".so")


@given(st.integers(0, 1100), st.integers())
def test_rows_have_the_checksum_that_readers_compute(length: int, seed: int) -> None:
    """The compiled core computes CRC-32 itself, in pieces of 64 and of 16 bytes."""
    compiled_only()
    data = random.Random(seed).randbytes(length)
    assert zlib.crc32(data) == CORE.crc32(data)


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], dict[str, Any]]:
    """Return a function that makes random requests on one of the cores."""

    def run(core: str, seed: int) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp(core) / "rings"
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder), str(seed), str(REQUESTS)],
            env={**os.environ, "INFERDECK_CORE": core},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    return run


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_cores_write_the_same_rows(drive: Callable[[str, int], dict[str, Any]], seed: int) -> None:
    """Random requests, stages, values of every kind, headers and failures: same columns, rows, counts and answers."""
    compiled_only()
    plain, compiled = drive("interpreted", seed), drive("compiled", seed)

    assert ("interpreted", "compiled") == (plain.pop("core"), compiled.pop("core"))
    assert plain["columns"] == compiled["columns"]
    assert plain["rows"] == compiled["rows"]
    assert plain == compiled
    assert len(plain["rows"]) > REQUESTS / 2
    assert plain["torn"] == 0


def test_a_compiled_record_cannot_be_made_by_hand() -> None:
    """One without a body would take the process down when it is used."""
    compiled_only()
    with pytest.raises(TypeError, match="made by a recorder"):
        CORE.Record()
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(CORE.Stage())


def test_the_status_says_which_core_runs(recorder: Any) -> None:
    """Readers of a slow service want to know."""
    assert CORE_NAME == recorder.status()["core"]
