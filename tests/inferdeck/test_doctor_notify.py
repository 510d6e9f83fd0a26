"""`doctor` says who would be told, and finds a setting with which triage would not start; it sends nothing."""

from __future__ import annotations

import os

import pytest

from inferdeck.doctor_notify import follow_ups


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the person who runs the tests counts."""
    for name in [name for name in os.environ if name.startswith("INFERDECK_")]:
        monkeypatch.delenv(name)


def test_nobody_is_told_unless_it_is_set_up() -> None:
    """That is no mistake, and said."""
    (found,) = follow_ups()

    assert ("absent", "nobody is told what triage finds") == (found.state, found.detail)


def test_who_is_told_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By channel, without any address."""
    monkeypatch.setenv("INFERDECK_NOTIFY_SLACK_URL", "https://hooks.example/hush")
    monkeypatch.setenv("INFERDECK_NOTIFY_FEISHU_URL", "https://open.example/hush")
    (found,) = follow_ups()

    assert ("ok", "triage tells what it finds by slack, feishu") == (found.state, found.detail)


def test_a_setting_with_which_triage_would_not_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its variable and without its value."""
    monkeypatch.setenv("INFERDECK_NOTIFY_SLACK_URL", "hush")
    (found,) = follow_ups()

    assert "fail" == found.state
    assert found.detail.startswith("INFERDECK_NOTIFY_SLACK_URL: must be an address")
    assert "hush" not in found.detail
