"""Version and commit of the build."""

from __future__ import annotations

import re
from pathlib import Path

from service.identity import commit, version


def test_commit_is_what_the_build_wrote(tmp_path: Path) -> None:
    """The environment wins; what is no commit does not count."""
    assert commit({"INFERDECK_COMMIT": "0123456789abcdef0123"}, tmp_path) == "0123456789ab"
    assert commit({"INFERDECK_COMMIT": "<script>"}, tmp_path) == "unknown"


def test_commit_of_a_checkout_is_asked_of_git() -> None:
    """In a checkout git knows; elsewhere nobody does."""
    assert re.fullmatch(r"[0-9a-f]{12}|unknown", commit({}))


def test_commit_without_checkout_is_unknown(tmp_path: Path) -> None:
    """Unknown is said, not guessed."""
    assert commit({}, tmp_path) == "unknown"
    (tmp_path / ".git").mkdir()
    assert commit({}, tmp_path) == "unknown"


def test_version_of_what_is_not_installed_is_unknown() -> None:
    """A package's version comes from its metadata."""
    assert version("no-such-distribution-x") == "unknown"
    assert version("fastapi")[0].isdigit()
