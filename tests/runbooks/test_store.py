"""Kept reports: private, whole, bounded, without personal data."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runbooks.redaction import redact
from runbooks.store import MOST_UNWRITTEN, ReportStore, StoreError

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def test_a_report_is_kept_listed_and_read_back(tmp_path: Path) -> None:
    """What is saved comes back by its id, with its own path in it."""
    store = ReportStore(tmp_path / "reports")
    kept = store.save({"alert": "A", "abstained": True}, NOW)

    assert [kept["id"]] == store.ids()
    assert {"alert": "A", "abstained": True, "id": kept["id"], "report": kept["report"]} == store.load(kept["id"])
    assert "A" == store.overview()[0]["alert"]


def test_files_are_private(tmp_path: Path) -> None:
    """Folder 0700, files 0600, nothing half-written left."""
    store = ReportStore(tmp_path / "reports")
    store.save({}, NOW)

    assert 0o700 == stat.S_IMODE((tmp_path / "reports").stat().st_mode)
    assert [0o600] == [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "reports").iterdir()]


def test_only_the_newest_are_kept_and_foreign_files_left_alone(tmp_path: Path) -> None:
    """The oldest reports go; a file of somebody else stays and is no report."""
    store = ReportStore(tmp_path, most=3)
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    ids = [store.save({"n": n}, NOW + timedelta(seconds=n))["id"] for n in range(5)]

    assert ids[:1:-1] == store.ids()
    assert (tmp_path / "notes.json").exists()


@pytest.mark.parametrize("report_id", ["", "..", "../x", "20261130T080000Z-zzzzzzzz", "/etc/passwd", "a" * 5000])
def test_an_id_never_leads_out_of_the_folder(tmp_path: Path, report_id: str) -> None:
    """Anything that is not an id of ours is simply not there."""
    assert ReportStore(tmp_path).load(report_id) is None


def test_a_damaged_report_is_left_out(tmp_path: Path) -> None:
    """Half a file is no report, and the others are still listed."""
    store = ReportStore(tmp_path)
    good = store.save({"alert": "A"}, NOW)
    (tmp_path / "20261130T090000Z-00000000.json").write_text("{", encoding="utf-8")

    assert [good["id"]] == [one["id"] for one in store.overview()]


def test_a_folder_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    """The error names the folder and the setting."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(StoreError, match="set INFERDECK_STATE_DIR"):
        ReportStore(tmp_path / "file" / "reports").save({})


def test_session_ids_and_secrets_do_not_reach_the_disk(tmp_path: Path) -> None:
    """Whatever holds them, they are not in the file; one session stays one in two reports."""
    secret = {"session_id": "abcdef0123456789", "deep": [{"session.id": "abcdef0123456789", "api_key": "k-123456"}]}
    text = {"detail": "sent Authorization: Bearer abcdefgh12345678 by anna@example.org"}
    store = ReportStore(tmp_path)
    kept = store.save(secret | text, NOW)
    written = Path(kept["report"]).read_text(encoding="utf-8")

    for leak in ("abcdef0123456789", "k-123456", "abcdefgh12345678", "anna@"):
        assert leak not in written
    first, second = json.loads(written)["session_id"], redact({"session": "abcdef0123456789"})["session"]
    assert first == second


def test_redaction_leaves_figures_and_names_alone() -> None:
    """Numbers, truth values, stages and slugs pass unchanged."""
    value = {
        "stage": {"sentiment.tokenizer": 0.5},
        "tokens": 12,
        "holds": True,
        "slug": "event_loop_blocked",
        "x": None,
    }

    assert value == redact(value)


def test_a_report_that_a_full_disk_refuses_is_shown_from_memory(tmp_path: Path) -> None:
    """Whoever is called finds it, without a path; later ones lie on the disk again, and memory stays bounded."""
    folder = tmp_path / "reports"
    folder.write_text("in the way")
    store = ReportStore(folder)
    for number in range(MOST_UNWRITTEN + 3):
        with pytest.raises(StoreError):
            store.save({"n": number, "alert": "DiskFull"}, NOW + timedelta(seconds=number))
    folder.unlink()
    later = store.save({"n": 99}, NOW + timedelta(hours=1))

    assert MOST_UNWRITTEN + 1 == len(store.ids())
    assert later["id"] == store.ids()[0]
    shown = store.load(store.ids()[1])
    assert shown is not None
    assert (MOST_UNWRITTEN + 2, None) == (shown["n"], shown["report"])
