"""The file of secrets beside the compose file."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from inferdeck.errors import CannotRun
from inferdeck.stack.compose.env_file import SECRETS, complete_env_file, read_env_file
from inferdeck.version import ROOT


def test_missing_secrets_are_made_once_and_kept(tmp_path: Path) -> None:
    """A second call finds all of them and changes nothing; nobody else may read the file."""
    path = tmp_path / ".env"
    numbers = count()
    first = complete_env_file(path, lambda: f"made-{next(numbers)}")
    text = path.read_text()
    second = complete_env_file(path, lambda: f"made-{next(numbers)}")

    assert dict(zip(SECRETS, ("made-0", "made-1", "made-2"), strict=True)) == dict(first) == dict(second)
    assert text == path.read_text()
    assert 0o600 == path.stat().st_mode & 0o777


def test_made_secrets_are_long_and_differ(tmp_path: Path) -> None:
    """192 random bits each."""
    made = complete_env_file(tmp_path / ".env")

    assert [32, 32, 32] == [len(made[name]) for name in SECRETS]
    assert 3 == len({made[name] for name in SECRETS})


def test_what_the_user_wrote_stays(tmp_path: Path) -> None:
    """Remarks, other variables and secrets of their own are kept; an open file is closed."""
    path = tmp_path / ".env"
    path.write_text(
        "# mine\nGRAFANA_ADMIN_PASSWORD='chosen'\nexport INFERDECK_NOTIFIER=alertmanager\nPROMETHEUS_IMAGE=a:1\n"
    )
    path.chmod(0o644)
    known = complete_env_file(path, lambda: "made")

    assert path.read_text().startswith("# mine\nGRAFANA_ADMIN_PASSWORD='chosen'\n")
    assert ("chosen", "made", "alertmanager") == (
        known["GRAFANA_ADMIN_PASSWORD"],
        known["INFERDECK_TRIAGE_TOKEN"],
        known["INFERDECK_NOTIFIER"],
    )
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_whole_file_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    """Also when nothing is missing in it."""
    path = tmp_path / ".env"
    path.write_text("".join(f"{name}=mine\n" for name in SECRETS))
    path.chmod(0o644)
    complete_env_file(path)

    assert 0o600 == path.stat().st_mode & 0o777


def test_the_example_becomes_a_whole_file(tmp_path: Path) -> None:
    """A copy of .env.example has each secret once, filled in."""
    path = tmp_path / ".env"
    path.write_text((ROOT / ".env.example").read_text())
    complete_env_file(path, lambda: "made")
    lines = path.read_text().splitlines()

    assert [1, 1, 1] == [sum(line.startswith(f"{name}=") for line in lines) for name in SECRETS]
    assert ["made"] * 3 == [read_env_file(path)[name] for name in SECRETS]


def test_what_cannot_be_read_or_written_is_said_with_its_name(tmp_path: Path) -> None:
    """A folder in its place, and a folder that is not there."""
    with pytest.raises(CannotRun, match=f"cannot read {tmp_path}"):
        read_env_file(tmp_path)
    with pytest.raises(CannotRun, match="cannot write"):
        complete_env_file(tmp_path / "missing" / ".env")
