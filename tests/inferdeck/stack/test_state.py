"""One stack for each state folder, and a record of it that survives."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from inferdeck.errors import CannotRun
from inferdeck.stack.process import start, stop
from inferdeck.stack.state import PartState, StackState, make_private_folder, only_stack, read_state, write_state


def state_in(folder: Path) -> StackState:
    """Return a state with one part that was left out."""
    part = PartState("prometheus", 1, "http://x", "http://x/y", left_out="not found")
    return StackState(str(folder), "/rows", 12.5, parts=[part])


def test_a_state_is_read_back_as_written(tmp_path: Path) -> None:
    """Parts, processes and phase survive the file, which is private."""
    state = state_in(tmp_path)
    record, child = start("p", (sys.executable, "-c", "import time; time.sleep(30)"), log=tmp_path / "l.log")
    state.parts.append(PartState("service", 2, "u", "h", record=record))
    state.supervisor = record

    write_state(state)

    path = tmp_path / "run" / "stack.json"
    assert state == read_state(tmp_path)
    assert ["service"] == [part.name for part in state.live_parts()]
    assert 0o600 == path.stat().st_mode & 0o777
    assert 0o700 == path.parent.stat().st_mode & 0o777
    stop(record, grace_seconds=5, reap=child.poll)
    assert [] == state.live_parts()


def test_nothing_written_is_no_state(tmp_path: Path) -> None:
    """A folder without a record has no stack."""
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1, "parts": [{}]}'])
def test_a_damaged_record_is_a_clear_line(tmp_path: Path, text: str) -> None:
    """Half a file or a foreign one tells which file it is."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stack.json").write_text(text)

    with pytest.raises(CannotRun, match=r"stack\.json cannot be read"):
        read_state(tmp_path)


def test_a_second_stack_is_refused_while_the_first_holds_the_folder(tmp_path: Path) -> None:
    """One line, with the mend; the folder is free again afterwards."""
    with only_stack(tmp_path):
        with pytest.raises(CannotRun, match="already runs") as caught, only_stack(tmp_path):
            pass
        assert "inferdeck down" in str(caught.value)

    with only_stack(tmp_path):
        pass


def test_parts_of_a_killed_supervisor_are_not_forgotten(tmp_path: Path) -> None:
    """The lock has gone with its holder, the parts have not: a new stack waits for `down`."""
    record, child = start("p", (sys.executable, "-c", "import time; time.sleep(30)"), log=tmp_path / "l.log")
    state = state_in(tmp_path)
    state.parts.append(PartState("service", 2, "u", "h", record=record))
    write_state(state)

    with pytest.raises(CannotRun, match=r"still run from .*: service"), only_stack(tmp_path):
        pass

    stop(record, grace_seconds=5, reap=child.poll)
    with only_stack(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_a_clear_line(tmp_path: Path) -> None:
    """A file where the folder should be, as on a full or read-only disk."""
    (tmp_path / "file").write_text("")

    with pytest.raises(CannotRun, match="INFERDECK_STATE_DIR"):
        make_private_folder(tmp_path / "file" / "state")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_clear_line(tmp_path: Path) -> None:
    """Another owner's or a read-only folder is told before anything starts."""
    folder = tmp_path / "ro"
    folder.mkdir(mode=0o500)

    with pytest.raises(CannotRun, match="cannot write"):
        make_private_folder(folder)


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750])
def test_an_open_folder_of_ours_is_closed(tmp_path: Path, mode: int) -> None:
    """`mkdir state` leaves it readable by all; reports and logs name sessions."""
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(mode)
    (folder / "reports").mkdir()

    make_private_folder(folder)

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Its owner could read and swap what is in it; it stays as it is."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)

    with pytest.raises(CannotRun, match=f"belongs to user {os.geteuid()}; take another folder"):
        make_private_folder(folder, uid=os.geteuid() + 1)

    assert 0o755 == stat.S_IMODE(folder.stat().st_mode)


def test_a_folder_that_others_need_is_refused_and_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared one, the working folder, and what is above it: closing one would lock others out."""
    shared, above = tmp_path / "shared", tmp_path / "above"
    shared.mkdir()
    shared.chmod(0o1777)
    (above / "work").mkdir(parents=True)
    above.chmod(0o755)
    (above / "work").chmod(0o755)
    monkeypatch.chdir(above / "work")

    for folder in (shared, above, above / "work"):
        before = folder.stat().st_mode
        with pytest.raises(CannotRun, match="INFERDECK_STATE_DIR"):
            make_private_folder(folder)
        assert before == folder.stat().st_mode


def test_the_record_is_json_of_a_known_format(tmp_path: Path) -> None:
    """Tools may read it."""
    write_state(state_in(tmp_path))

    assert 1 == json.loads((tmp_path / "run" / "stack.json").read_text())["format"]
