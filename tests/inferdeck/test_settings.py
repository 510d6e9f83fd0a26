"""Settings come from YAML and the environment, and a wrong one is a clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.errors import CannotRun
from inferdeck.settings import load_settings, stack_ring_dir


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the developer's own settings away."""
    import os

    for name in [name for name in os.environ if name.startswith("INFERDECK_")]:
        monkeypatch.delenv(name)


def test_the_defaults_are_those_of_the_architecture() -> None:
    """Ports, bind address and folders as docs/architecture.md says."""
    settings = load_settings()

    assert {
        "service_port": 8080,
        "admin_port": 8081,
        "exporter_port": 9464,
        "triage_port": 9465,
        "prometheus_port": 19090,
        "alertmanager_port": 19093,
        "jaeger_port": 16686,
        "jaeger_otlp_port": 14318,
    } == settings.ports
    assert "127.0.0.1" == settings.host
    assert Path.cwd() / ".inferdeck" == settings.state_path
    assert Path.cwd() / "build" / "model" == settings.model_path


def test_the_environment_wins_over_the_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The profile prod differs from base, the environment from both."""
    monkeypatch.setenv("INFERDECK_PROFILE", "prod")
    monkeypatch.setenv("INFERDECK_STACK_SERVICE_PORT", "18080")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INFERDECK_RING_DIR", str(tmp_path / "rows"))

    settings = load_settings()

    assert (18080, 2, "15d") == (settings.service_port, settings.service_workers, settings.retention)
    assert (tmp_path / "state", tmp_path / "rows") == (settings.state_path, settings.ring_path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("INFERDECK_STACK_SERVICE_PORT", "70000"),
        ("INFERDECK_STACK_SERVICE_PORT", "http"),
        ("INFERDECK_STACK_RETENTION", "forever"),
        ("INFERDECK_STACK_SCRAPE_INTERVAL_SECONDS", "60"),
    ],
)
def test_a_wrong_value_names_its_variable(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    """One line that tells which variable to mend."""
    monkeypatch.setenv(variable, value)

    with pytest.raises(CannotRun) as caught:
        load_settings()

    assert variable in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known ones are listed."""
    monkeypatch.setenv("INFERDECK_PROFILE", "staging")

    with pytest.raises(CannotRun, match="dev, prod"):
        load_settings()


def test_two_stacks_never_share_a_folder_of_rows(tmp_path: Path) -> None:
    """The folder's name depends on the state folder; without a tmpfs rows lie below the state folder."""
    one = stack_ring_dir(Path("/a/.inferdeck"), tmp_path, uid=7)

    assert tmp_path / "inferdeck-7" == one.parent
    assert one != stack_ring_dir(Path("/b/.inferdeck"), tmp_path, uid=7)
    assert Path("/a/rows") == stack_ring_dir(Path("/a"), tmp_path / "none", uid=7)
