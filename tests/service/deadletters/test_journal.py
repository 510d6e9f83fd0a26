"""Lines on disk: bounded, private, whole, and never waited for."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from service.deadletters.journal import Journal


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return all lines in the folder, oldest file first."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_documents_are_written_in_order_and_privately(tmp_path: Path) -> None:
    """Folder 0700, files 0600; nothing is made before there is something to write."""
    folder = tmp_path / "letters"
    journal = Journal(folder, "letters")
    assert not folder.exists()
    for number in range(3):
        assert journal.put(lambda number=number: {"n": number})  # type: ignore[misc]
    assert journal.put(lambda: None)
    journal.close()

    assert [{"n": 0}, {"n": 1}, {"n": 2}] == lines(folder)
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert [0o600] == [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()]


def test_a_writer_that_is_slow_makes_nobody_wait(tmp_path: Path) -> None:
    """One more than there is room for is not taken."""
    gate, entered = threading.Event(), threading.Event()

    def slow() -> dict[str, int]:
        entered.set()
        gate.wait(10)
        return {"n": 0}

    journal = Journal(tmp_path, "letters", places=2)
    assert journal.put(slow)
    assert entered.wait(10)
    taken = [journal.put(lambda: {"n": 1}) for _ in range(4)]
    gate.set()
    journal.close()

    assert [True, True, False, False] == taken
    assert [{"n": 0}, {"n": 1}, {"n": 1}] == lines(tmp_path)


def test_the_oldest_files_go_when_the_bound_is_reached(tmp_path: Path) -> None:
    """Other journals' files in the folder are left alone."""
    (tmp_path / "audit-1.jsonl").write_text("x" * 5000)
    clock = count(1)
    journal = Journal(tmp_path, "letters", file_bytes=300, total_bytes=1000, clock=lambda: next(clock))
    for number in range(100):
        journal.put(lambda number=number: {"n": number, "fill": "x" * 50})  # type: ignore[misc]
    journal.close()

    files = sorted(tmp_path.glob("letters-*"))
    kept = [json.loads(line)["n"] for path in files for line in path.read_text().splitlines()]
    assert list(range(kept[0], 100)) == kept
    assert sum(path.stat().st_size for path in tmp_path.glob("letters-*")) <= 1000
    assert (tmp_path / "audit-1.jsonl").exists()


def test_a_file_that_somebody_removed_is_begun_anew(tmp_path: Path) -> None:
    """A purge loses what was there and nothing that comes."""
    journal = Journal(tmp_path, "letters")
    written = threading.Event()
    journal.put(lambda: {"n": 1})
    journal.put(written.set)
    assert written.wait(10)
    for path in tmp_path.iterdir():
        path.unlink()
    journal.put(lambda: {"n": 2})
    journal.close()

    assert [{"n": 2}] == lines(tmp_path)


def test_what_could_not_be_written_is_told_by_the_next_line(tmp_path: Path) -> None:
    """A folder that cannot be made stands for a disk that takes nothing."""
    folder = tmp_path / "letters"
    folder.write_text("in the way")
    journal, tried = Journal(folder, "letters"), threading.Event()
    journal.put(lambda: {"n": 1})
    journal.put(lambda: {"n": 2})
    journal.put(tried.set)
    assert tried.wait(10)
    assert 2 == journal.lost
    folder.unlink()
    journal.put(lambda: {"n": 3})
    journal.close()

    assert [{"lost": 2}, {"n": 3}] == lines(folder)


def test_a_document_that_cannot_be_made_costs_itself_alone(tmp_path: Path) -> None:
    """The thread goes on."""
    journal = Journal(tmp_path, "letters")
    journal.put(lambda: {"n": 1 / 0})
    journal.put(lambda: {"n": 1})
    journal.close()

    assert [{"lost": 1}, {"n": 1}] == lines(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits of this kind are Linux's")
def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """The kernel refuses the middle of a line: what is written stays whole, and the service's thread goes on."""
    program = """
import resource, signal, sys
from pathlib import Path
from service.deadletters.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
journal = Journal(Path(sys.argv[1]), "letters")
for number in range(10):
    journal.put(lambda number=number: {"n": number, "fill": "x" * 50})
journal.close()
print(journal.lost)
"""
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)

    kept = [line for line in lines(tmp_path) if "n" in line]
    assert [0, 1, 2] == [line["n"] for line in kept]
    assert 7 == int(done.stdout)
