"""Tests of alerts/write.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from alerts.write import differences, main, untracked, write

RULE = "alerts/rules/event_loop_blocked.yml"


@pytest.fixture
def current(checkout: Path) -> Path:
    """A checkout whose generated files are current."""
    write(checkout)
    return checkout


def test_writing_twice_changes_nothing(current: Path) -> None:
    """The second run finds nothing to do."""
    assert [] == write(current)
    assert "" == differences(current)
    assert [] == untracked(current)


def test_a_hand_edited_file_is_found_with_a_diff(current: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change by hand fails the comparison, shows itself, and is undone by writing."""
    path = current / RULE
    path.write_text(path.read_text().replace("for: 15s", "for: 5m"))

    assert 1 == main(["--check", "--root", str(current)])
    shown = capsys.readouterr()
    assert "-        for: 5m\n+        for: 15s\n" in shown.out
    assert "run `python -m alerts`" in shown.err
    assert [RULE] == write(current)
    assert 0 == main(["--check", "--root", str(current)])


def test_comparing_changes_nothing(current: Path) -> None:
    """A check never mends what it finds."""
    (current / RULE).write_text("groups: []\n")

    assert 1 == main(["--check", "--root", str(current)])
    assert "groups: []\n" == (current / RULE).read_text()


def test_a_missing_file_is_found(current: Path) -> None:
    """A deleted rule is a difference."""
    (current / RULE).unlink()

    assert f"+++ {RULE} (from the catalogue)" in differences(current)


def test_a_leftover_is_found_and_removed(current: Path) -> None:
    """A rule whose catalogue file is gone would go on firing: it is a difference, and writing removes it."""
    leftover = current / "alerts/rules/old_alert.yml"
    leftover.write_text("groups: []\n")

    assert "--- alerts/rules/old_alert.yml" in differences(current)
    assert ["alerts/rules/old_alert.yml"] == write(current)
    assert not leftover.exists()


def test_a_generated_file_that_git_does_not_track_fails_the_check(
    current: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Comparing an ignored file could never fail on a clean clone, so tracking is asserted first."""
    command = ["git", "rm", "-q", "--cached", "-f", RULE]
    subprocess.run(command, cwd=current, check=True)

    assert [RULE] == untracked(current)
    assert 1 == main(["--check", "--root", str(current)])
    assert f"not tracked by git: {RULE}" in capsys.readouterr().err


def test_without_git_the_comparison_still_runs(current: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unpacked archive is no checkout: that is said, and what can be compared is."""
    (current / ".git").rename(current / "no-git")

    assert untracked(current) is None
    assert 0 == main(["--check", "--root", str(current)])
    assert "no git checkout" in capsys.readouterr().err


def test_a_broken_catalogue_writes_nothing(current: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One broken file stops the whole run, with its line, and leaves what was there."""
    before = (current / RULE).read_text()
    path = current / "alerts/catalogue/event_loop_blocked.yaml"
    path.write_text(path.read_text().replace("for: 15s", "for: 15 s"))

    assert 2 == main(["--root", str(current)])
    assert "event_loop_blocked.yaml:" in capsys.readouterr().err
    assert before == (current / RULE).read_text()
