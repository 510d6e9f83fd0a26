from __future__ import annotations

import stat
from pathlib import Path

import pytest

from probes.control import CONTROL_NAME, read_control, write_control

NOW = 1_800_000_000_000_000_000


def test_a_control_page_is_read_until_it_expires(tmp_path: Path) -> None:
    """At its last nanosecond it is in force, then it is neutral."""
    write_control(tmp_path, {"keep": 0.01}, ttl_s=30, now_ns=NOW)

    assert read_control(tmp_path, NOW + 30 * 10**9 - 1)["keep"] == 0.01
    assert read_control(tmp_path, NOW + 30 * 10**9) == {}


def test_a_control_page_from_the_future_is_neutral(tmp_path: Path) -> None:
    """A clock that was set back must not keep an old order in force for hours."""
    write_control(tmp_path, {"keep": 0.01}, ttl_s=30, now_ns=NOW + 3600 * 10**9)

    assert read_control(tmp_path, NOW) == {}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"{}", b'{"written_unix_ns": "x"}', b"\xff", b" " * 70_000]
)
def test_a_damaged_control_page_is_neutral(tmp_path: Path, body: bytes) -> None:
    """No page can make a service fail."""
    (tmp_path / CONTROL_NAME).write_bytes(body)

    assert read_control(tmp_path, NOW) == {}


def test_a_missing_folder_is_neutral(tmp_path: Path) -> None:
    """A service without an exporter runs as usual."""
    assert read_control(tmp_path / "none") == {}


def test_a_control_page_is_private_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """0600, and no temporary file."""
    write_control(tmp_path, {}, ttl_s=1)

    assert [CONTROL_NAME] == [path.name for path in tmp_path.iterdir()]
    assert stat.S_IMODE((tmp_path / CONTROL_NAME).stat().st_mode) == 0o600


def test_a_page_that_json_or_the_bound_cannot_hold_is_refused(tmp_path: Path) -> None:
    """The writer hears of it; the page in force stays."""
    write_control(tmp_path, {"keep": 1}, ttl_s=30, now_ns=NOW)
    for values in ({"x": "y" * 70_000}, {"x": float("nan")}):
        with pytest.raises(ValueError, match=r"65536|JSON"):
            write_control(tmp_path, values, ttl_s=30, now_ns=NOW)

    assert read_control(tmp_path, NOW)["keep"] == 1
