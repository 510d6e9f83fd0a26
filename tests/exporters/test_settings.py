from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from exporters.keep import KeepRules
from exporters.labels import KEPT_REASONS
from exporters.settings import ExporterSettings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field by its prefix, the two folders by the product's names, nested values as JSON."""
    for name, value in {
        "INFERDECK_RING_DIR": "/r",
        "INFERDECK_STATE_DIR": "/s",
        "INFERDECK_EXPORTER_PORT": "0",
        "INFERDECK_EXPORTER_KEEP_SHARE": "0.5",
        "INFERDECK_EXPORTER_KEEP_SLOW_SECONDS": '{"short": 0.1}',
        "INFERDECK_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
    }.items():
        monkeypatch.setenv(name, value)
    settings = ExporterSettings()
    assert (settings.ring_dir, settings.state_dir, settings.port) == (Path("/r"), Path("/s"), 0)
    assert settings.keep_rules().share == 0.5
    assert settings.keep_rules().slow_seconds == {"short": 0.1, "medium": 0.8, "long": 1.5, "unknown": 1.5}
    assert settings.otlp_endpoint == "http://127.0.0.1:4318"


def test_defaults_are_local_and_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback, port 9464, spans off; an empty endpoint is none."""
    for name in ("INFERDECK_RING_DIR", "INFERDECK_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    settings = ExporterSettings()
    assert (settings.host, settings.port, settings.otlp_endpoint) == ("127.0.0.1", 9464, None)
    monkeypatch.setenv("INFERDECK_EXPORTER_OTLP_ENDPOINT", "")
    assert ExporterSettings().otlp_endpoint is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "example.org"])
def test_a_port_that_others_reach_needs_a_token(host: str) -> None:
    """Session ids are personal data: no token, no start."""
    with pytest.raises(ValidationError, match="API_TOKEN"):
        ExporterSettings(host=host)
    with pytest.raises(ValidationError, match="API_TOKEN"):
        ExporterSettings(host=host, api_token="")
    assert not ExporterSettings(host=host, api_token="t").loopback  # noqa: S106


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.8.8.8", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    """Only this machine reaches it."""
    assert ExporterSettings(host=host).loopback


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", 70000),
        ("keep_share", 1.5),
        ("tick_seconds", 0),
        ("otlp_endpoint", "localhost:4318"),
        ("keep_slow_seconds", {"tiny": 1}),
        ("keep_slow_seconds", {"short": float("nan")}),
        ("keep_drift", 2),
    ],
)
def test_bad_values_are_refused(field: str, value: object) -> None:
    """The message names the field."""
    with pytest.raises(ValidationError, match=field):
        ExporterSettings(**{field: value})  # type: ignore[arg-type]


def test_every_rule_that_keeps_is_a_setting() -> None:
    """Each reason of telemetry_traces_kept_total can be switched off by the environment alone."""
    off = ExporterSettings(
        keep_share=0,
        keep_first=0,
        keep_upstream=False,
        keep_low_confidence=0,
        keep_slow_seconds=dict.fromkeys(("short", "medium", "long", "unknown"), 999_999),
        keep_errors=False,
        keep_degraded=False,
        keep_unfinished=False,
        keep_low_quality=False,
        keep_canary_difference=False,
        keep_drift=0,
    )
    assert len(off.model_fields_set) == len(KEPT_REASONS)
    assert off.keep_rules() == KeepRules(
        share=0,
        slow_seconds=dict.fromkeys(("short", "medium", "long", "unknown"), 999_999),
        low_confidence=0,
        first=0,
        upstream=False,
        drift_share=0,
        canary_difference=False,
        errors=False,
        degraded=False,
        low_quality=False,
        unfinished=False,
    )


def test_secrets_are_not_shown() -> None:
    """Neither token nor headers appear when settings are printed."""
    settings = ExporterSettings(api_token="topsecret", otlp_headers="authorization=topsecret")  # noqa: S106
    assert "topsecret" not in f"{settings!r} {settings.model_dump()}"
