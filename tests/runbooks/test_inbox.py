"""The inbox: once each, bounded, and still there after a restart."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from runbooks.inbox import Inbox, InboxFullError
from runbooks.payloads import Notification, parse_payload


def notification(
    *names: str, status: str = "firing", start: str = "2026-11-30T08:02:30Z", group: str = "g"
) -> Notification:
    """Return a notification with one alert per name."""
    alerts: list[dict[str, Any]] = [
        {"status": status, "labels": {"alertname": name, "n": str(n)}, "startsAt": start, "fingerprint": f"{name}{n}"}
        for n, name in enumerate(names)
    ]
    return parse_payload({"version": "4", "status": status, "alerts": alerts, "groupKey": group})


def test_a_firing_alert_becomes_one_incident_however_often_it_is_sent(tmp_path: Path) -> None:
    """The same fingerprint, start and status is taken once; a new start is a new incident."""
    inbox = Inbox(tmp_path / "triage")

    assert 1 == len(inbox.accept(notification("A")))
    assert [] == inbox.accept(notification("A"))
    assert 1 == len(inbox.accept(notification("A", start="2026-11-30T09:00:00Z")))
    assert 2 == len(inbox)


def test_many_alerts_of_one_name_are_one_incident(tmp_path: Path) -> None:
    """A storm of 500 alerts makes one triage, not 500."""
    taken = Inbox(tmp_path).accept(notification(*["A"] * 500))

    assert [(500, "A")] == [(incident.alerts, incident.alert) for incident in taken]


def test_resolved_and_meta_alerts_make_no_incident(tmp_path: Path) -> None:
    """What is over, and what is about alerting itself, is answered and dropped."""
    inbox = Inbox(tmp_path)

    assert [] == inbox.accept(notification("A", status="resolved"))
    assert [] == inbox.accept(notification("Watchdog"))


def test_a_resolved_alert_that_comes_before_its_firing_does_no_harm(tmp_path: Path) -> None:
    """Out of order, the firing one is still taken."""
    inbox = Inbox(tmp_path)
    inbox.accept(notification("A", status="resolved"))

    assert 1 == len(inbox.accept(notification("A")))


def test_what_waits_survives_a_restart_and_what_was_taken_is_not_taken_again(tmp_path: Path) -> None:
    """A second inbox over the same folder finds the waiting incident, and knows the finished one."""
    first = Inbox(tmp_path)
    first.accept(notification("A"))
    first.accept(notification("B"))
    first.done(next(one for one in [first.oldest(0)] if one))

    second = Inbox(tmp_path)

    assert ["B"] == [second.oldest(0).alert]  # type: ignore[union-attr]
    assert [] == second.accept(notification("A")) + second.accept(notification("B"))


def test_a_crash_between_incident_and_keys_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Without the list of keys the waiting incident itself tells that its alert was taken."""
    Inbox(tmp_path).accept(notification("A"))
    (tmp_path / "known.json").unlink()

    again = Inbox(tmp_path)

    assert [] == again.accept(notification("A"))
    assert 1 == len(again)


def test_a_damaged_file_costs_that_file(tmp_path: Path) -> None:
    """Half a file, a foreign one and damaged keys are left out; the others are taken up."""
    Inbox(tmp_path).accept(notification("A"))
    (tmp_path / "00000000001-half.incident").write_text("{", encoding="utf-8")
    (tmp_path / "00000000002-foreign.incident").write_text('{"keys": []}', encoding="utf-8")
    (tmp_path / "known.json").write_text("7", encoding="utf-8")

    assert 1 == len(Inbox(tmp_path))


def test_the_inbox_is_bounded_and_refuses_whole_notifications(tmp_path: Path) -> None:
    """What does not fit is refused as a whole, so that it can be sent again, and is taken once there is room."""
    inbox = Inbox(tmp_path, most=2)
    inbox.accept(notification("A"))

    with pytest.raises(InboxFullError):
        inbox.accept(notification("B", "C"))
    assert 1 == len(inbox)
    inbox.done(inbox.oldest(0))  # type: ignore[arg-type]
    assert 2 == len(inbox.accept(notification("B", "C")))


def test_files_are_private(tmp_path: Path) -> None:
    """Folder 0700, files 0600."""
    folder = tmp_path / "triage"
    Inbox(folder).accept(notification("A"))

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_without_a_folder_incidents_wait_in_memory_and_it_is_counted(tmp_path: Path) -> None:
    """A folder that cannot be made costs durability, never the incident."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    inbox = Inbox(tmp_path / "file" / "triage")

    assert 1 == len(inbox.accept(notification("A")))
    assert inbox.write_errors > 0
    assert inbox.oldest(0) is not None


def test_names_of_alerts_never_become_paths(tmp_path: Path) -> None:
    """A name like ../../x stays inside the folder."""
    Inbox(tmp_path / "triage").accept(notification("../../x", "a/b\n", "x" * 1000))

    names = {path.name for path in (tmp_path / "triage").iterdir()}
    assert {".incident", ".json"} == {Path(name).suffix for name in names}
    assert ["triage"] == [path.name for path in tmp_path.iterdir()]


def test_keys_are_bounded(tmp_path: Path) -> None:
    """Of many alerts only the newest 5,000 keys stay known."""
    inbox = Inbox(tmp_path, most=100)
    for batch in range(6):
        inbox.accept(notification(*["A"] * 1000, start=f"2026-11-30T0{batch}:00:00Z"))

    assert 5000 == len(json.loads((tmp_path / "known.json").read_text(encoding="utf-8")))
