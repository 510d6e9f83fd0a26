"""Programs are read without being run, and loaded under a name that tells nothing."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from inferdeck.drill.program import Armed, failures_folder, known_programs, load_module, read_program
from inferdeck.errors import CannotRun


def write(folder: Path, text: str, name: str = "p.py") -> Path:
    """Write a program."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_reading_does_not_run_a_program(tmp_path: Path) -> None:
    """Hooks, slug and sentence come from the text; nothing in it is executed."""
    path = write(
        tmp_path,
        '"""A sentence.\n\nMore."""\nSLUG = "service_down"\nraise SystemExit(3)\n'
        "def wrap(app, armed): ...\ntwin_wrap = wrap\n",
    )

    program = read_program(path)

    assert ("service_down", "A sentence.") == (program.slug, program.sentence)
    assert {"wrap", "twin_wrap"} == program.hooks
    assert not program.is_script


def test_a_file_without_hooks_is_a_script(tmp_path: Path) -> None:
    """Neither wrap nor cause: it is run as it is, and --expect says what for."""
    program = read_program(write(tmp_path, "import time\n"), expect="event_loop_blocked")

    assert program.is_script
    assert "event_loop_blocked" == program.slug


def test_expect_wins_over_the_files_slug(tmp_path: Path) -> None:
    """The one who calls knows better."""
    assert "b" == read_program(write(tmp_path, 'SLUG = "a"\n'), expect="b").slug


@pytest.mark.parametrize("text", ["", "SIMULATED = True\n"])
def test_a_program_says_that_part_of_it_is_played(tmp_path: Path, text: str) -> None:
    """Its runs are then scored apart from those of real causes."""
    assert bool(text) == read_program(write(tmp_path, f'SLUG = "pod_pending"\n{text}')).simulated


@pytest.mark.parametrize(("text", "workers"), [("", 1), ("WORKERS = 3\n", 3)])
def test_a_program_says_how_many_workers_it_needs(tmp_path: Path, text: str, workers: int) -> None:
    """One by default."""
    assert workers == read_program(write(tmp_path, f'SLUG = "a"\n{text}')).workers


@pytest.mark.parametrize(
    ("text", "name", "word"),
    [
        ('SLUG = "a"\nWORKERS = 0\n', "p.py", "WORKERS = 2"),
        ('SLUG = "a"\nSETTINGS = {"batch_size": 16}\n', "p.py", "SETTINGS = "),
        ('SLUG = "a"\nSETTINGS = settings()\n', "p.py", "SETTINGS = "),
        ('SLUG = "a"\nWORKERS = True\n', "p.py", "WORKERS = 2"),
        ('SLUG = "a"\nWORKERS = cores()\n', "p.py", "WORKERS = 2"),
        ("x = 1\n", "p.py", "--expect"),
        ("SLUG = compute()\n", "p.py", "--expect"),
        ("def wrap(:\n", "p.py", "line 1"),
        ("echo\n", "p.sh", "chmod"),
    ],
)
def test_an_unusable_program_is_refused_with_the_mend(tmp_path: Path, text: str, name: str, word: str) -> None:
    """What is wrong and what to do are in one line."""
    with pytest.raises(CannotRun) as caught:
        read_program(write(tmp_path, text, name))

    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_program_is_refused(tmp_path: Path) -> None:
    """A path that is not there is a clear line."""
    with pytest.raises(CannotRun, match="cannot read"):
        read_program(tmp_path / "none.py")


def test_stack_traces_do_not_tell_the_programs_name(tmp_path: Path) -> None:
    """Triage sees stacks of a blocked loop; they must not carry the answer in a file's name."""
    path = write(tmp_path, "def wrap(app, armed):\n    raise ValueError('x')\n", "event_loop_blocked.py")

    module = load_module(path)
    with pytest.raises(ValueError, match="x") as caught:
        module.wrap(None, None)

    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "program.py" == frames[-1]
    assert not any("event_loop_blocked" in name for name in frames[1:])


def test_a_program_may_have_helpers_beside_it(tmp_path: Path) -> None:
    """The program's folder is on the import path."""
    write(tmp_path, "VALUE = 7\n", "drill_helper_beside.py")

    assert 7 == load_module(write(tmp_path, "from drill_helper_beside import VALUE\n")).VALUE


def test_a_program_that_fails_while_loading_is_a_clear_line(tmp_path: Path) -> None:
    """Its own error is told, not a traceback."""
    with pytest.raises(CannotRun, match="ZeroDivisionError"):
        load_module(write(tmp_path, "1 / 0\n"))


def test_armed_looks_at_its_flag_every_50_ms_at_most(tmp_path: Path) -> None:
    """A request never pays for more than one look in 50 ms, and the answer is at most that old."""
    flag, now = tmp_path / "armed", [0.0]
    armed = Armed(flag, lambda: now[0])
    assert not armed()
    flag.touch()

    now[0] = 0.049
    assert not armed()
    now[0] = 0.051
    assert armed()

    flag.unlink()
    now[0] = 0.2
    assert not armed()


def test_outside_a_checkout_the_programs_are_missing(tmp_path: Path) -> None:
    """Tests are never shipped: the wheel says so."""
    with pytest.raises(CannotRun, match="--program"):
        failures_folder(tmp_path)


def test_every_program_of_the_checkout_names_its_file() -> None:
    """The slug is the file's name, and each has a twin and a sentence."""
    folder = failures_folder()

    for slug in known_programs(folder):
        program = read_program(folder / f"{slug}.py")
        assert slug == program.slug
        assert program.sentence
        # a failure of wrap and cause may have a twin of one of them
        assert program.hooks & {"twin_wrap", "twin_cause"}


def test_hooks_may_come_from_a_helper_beside_the_program(tmp_path: Path) -> None:
    """Imported by name, they are the program's own; the rest of what it imports is none."""
    program = read_program(write(tmp_path, 'from _card import prepare, usual, show\nSLUG = "gpu_lost"\ncause = show\n'))

    assert {"prepare", "usual", "cause"} == program.hooks
