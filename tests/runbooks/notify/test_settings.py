"""Off unless set up, refused in one line when set up wrongly, and never repeating a value."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from exporters.serving import CannotStartError
from runbooks.notify.channels import channels_of, links_of
from runbooks.notify.notifier import notifier_of
from runbooks.notify.settings import NotifySettings, load_notify_settings
from runbooks.store import ReportStore

ALL = {
    "SLACK_URL": "https://hooks.example/hush",
    "DINGTALK_URL": "https://oapi.example/send?access_token=hush",
    "FEISHU_URL": "https://open.example/hook/hush",
    "WEBHOOK_URL": "https://x.example/hush",
    "EMAIL_TO": "a@example.org; b@example.org",
    "EMAIL_FROM": "c@example.org",
    "SMTP_HOST": "mail.example.org",
}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the person who runs the tests counts."""
    for name in ("SLACK", "DINGTALK", "FEISHU", "WEBHOOK", "GRAFANA"):
        monkeypatch.delenv(f"INFERDECK_NOTIFY_{name}_URL", raising=False)
    for name in ("INFERDECK_NOTIFY_EMAIL_TO", "INFERDECK_JAEGER_URL", "INFERDECK_RUNBOOK_URL", "INFERDECK_SERVICE"):
        monkeypatch.delenv(name, raising=False)


def test_without_settings_nothing_is_ever_sent(tmp_path: Path) -> None:
    """No channel, no thread."""
    assert [] == channels_of(NotifySettings())
    assert [] == notifier_of(NotifySettings(), ReportStore(tmp_path), "http://127.0.0.1:9465").delivery.workers


def test_each_channel_that_is_set_up_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """And shows no secret when it is printed."""
    for name, value in ALL.items():
        monkeypatch.setenv(f"INFERDECK_NOTIFY_{name}", value)
    settings = load_notify_settings()

    assert ["slack", "dingtalk", "feishu", "webhook", "email"] == [one.name for one in channels_of(settings)]
    assert ("a@example.org", "b@example.org") == settings.addresses
    assert "hush" not in repr(settings)


def test_the_placeholders_of_grafanas_variables_are_unset_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the same variables, and Grafana's must never be empty."""
    monkeypatch.setenv("INFERDECK_NOTIFY_SLACK_URL", "http://unset.invalid/")
    monkeypatch.setenv("INFERDECK_NOTIFY_EMAIL_TO", "nobody@unset.invalid")

    assert [] == channels_of(load_notify_settings())


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"SLACK_URL": "hooks.slack.com/hush"}, "INFERDECK_NOTIFY_SLACK_URL: must be an address that starts with"),
        ({"GRAFANA_URL": "http://me:hush@grafana.example"}, "INFERDECK_NOTIFY_GRAFANA_URL: must hold no password"),
        ({"SLACK_URL": "http://hooks.example:99999/hush"}, "INFERDECK_NOTIFY_SLACK_URL: must be an address that can"),
        ({"WEBHOOK_URL": "http://me:hush"}, "INFERDECK_NOTIFY_WEBHOOK_URL: must be an address that can be read"),
        ({"FEISHU_URL": "http://[hush/"}, "INFERDECK_NOTIFY_FEISHU_URL: must be an address that can be read"),
        ({"GRAFANA_URL": "http://grafana:hush/"}, "INFERDECK_NOTIFY_GRAFANA_URL: must be an address that can"),
        ({"GRAFANA_API_URL": "http://grafana:99999"}, "INFERDECK_NOTIFY_GRAFANA_API_URL: must be an address that can"),
        ({"MOST_TRIES": "0"}, "INFERDECK_NOTIFY_MOST_TRIES: "),
        ({"EMAIL_TO": "a@example.org"}, "INFERDECK_NOTIFY_SMTP_HOST and INFERDECK_NOTIFY_EMAIL_FROM"),
        ({"SMTP_USER": "me", "SMTP_STARTTLS": "false"}, "set INFERDECK_NOTIFY_SMTP_STARTTLS=true"),
    ],
)
def test_a_wrong_setting_is_one_line_without_its_value(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], said: str
) -> None:
    """With the variable, so that it can be mended."""
    for name, value in environ.items():
        monkeypatch.setenv(f"INFERDECK_NOTIFY_{name}", value)
    with pytest.raises(CannotStartError) as raised:
        load_notify_settings()

    assert said in str(raised.value)
    assert "hush" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_links_lead_to_this_service_unless_told_otherwise() -> None:
    """A service on all interfaces does not know its own address: it must be told."""
    own = links_of(NotifySettings(), "http://127.0.0.1:9465")
    told = links_of(NotifySettings(triage_url="http://triage.example/", runbook_url="http://wiki/"), "")

    assert ("http://127.0.0.1:9465/", "http://127.0.0.1:9465") == (own.runbooks, own.triage)
    assert ("http://wiki/", "http://triage.example/") == (told.runbooks, told.triage)
    assert "" == links_of(NotifySettings(), "").runbooks


def test_the_log_of_the_http_library_is_kept_from_writing_addresses(tmp_path: Path) -> None:
    """Its line for each request would hold the secret of a chat's webhook."""
    logging.getLogger("httpx").setLevel(logging.INFO)
    notifier_of(NotifySettings(), ReportStore(tmp_path), "")

    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
