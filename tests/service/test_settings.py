"""Settings out of YAML and environment, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import ENV_PREFIX, PROFILES, Settings, SettingsError, load_settings, unknown_variables

CONFIG = Path(__file__).resolve().parents[2] / "service" / "config"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"{ENV_PREFIX}{name.upper()}", raising=False)
    monkeypatch.delenv("INFERDECK_PROFILE", raising=False)


def test_base_holds_every_setting_and_profiles_only_what_differs() -> None:
    """One file shows all that can be set."""
    base = yaml.safe_load((CONFIG / "base.yaml").read_text(encoding="utf-8"))
    assert set(base) | {"profile"} == set(Settings.model_fields)
    for profile in PROFILES:
        differing = yaml.safe_load((CONFIG / f"{profile}.yaml").read_text(encoding="utf-8"))
        assert all(base[name] != value for name, value in differing.items() if name != "log_level")


@pytest.mark.parametrize("profile", PROFILES)
def test_profile_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """Each profile loads and says which it is; the service listens on the loopback alone."""
    monkeypatch.setenv("INFERDECK_PROFILE", profile)
    settings = load_settings()
    assert settings.profile == profile
    assert (settings.host, settings.admin_host) == ("127.0.0.1", "127.0.0.1")


def test_production_keeps_a_gib_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row B11: usable memory is the total less one GiB and other processes."""
    monkeypatch.setenv("INFERDECK_PROFILE", "prod")
    assert load_settings().memory_reserve_bytes == 1024**3


def test_environment_wins_over_files_and_arguments_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is arguments, environment, profile, base."""
    monkeypatch.setenv("INFERDECK_SERVICE_PORT", "1234")
    monkeypatch.setenv("INFERDECK_SERVICE_WORKERS", "3")
    settings = load_settings(workers=2)
    assert (settings.port, settings.workers) == (1234, 2)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", ()),
        ("a.py:wrap", ("a.py:wrap",)),
        ("a.py:wrap, pkg.mod:wrap", ("a.py:wrap", "pkg.mod:wrap")),
        ('["a.py:wrap", "b.py:wrap"]', ("a.py:wrap", "b.py:wrap")),
    ],
)
def test_middleware_is_a_list_in_either_spelling(
    monkeypatch: pytest.MonkeyPatch, value: str, names: tuple[str, ...]
) -> None:
    """Parted by commas, or as JSON."""
    monkeypatch.setenv("INFERDECK_SERVICE_MIDDLEWARE", value)
    assert load_settings().middleware == names


@pytest.mark.parametrize(("value", "names"), [("", ()), ("fold_width, drop_markup", ("fold_width", "drop_markup"))])
def test_cleaning_steps_are_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, value: str, names: tuple[str, ...]
) -> None:
    """Another configuration, with another fingerprint."""
    usual = load_settings().fingerprint
    monkeypatch.setenv("INFERDECK_SERVICE_CLEANING_WITHOUT", value)
    assert load_settings().cleaning_without == names
    assert (load_settings().fingerprint == usual) == (names == ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLEANING_WITHOUT", "fold_widths"),
        ("PORT", "70000"),
        ("PORT", "http"),
        ("WORKERS", "0"),
        ("DEADLINE_SECONDS", "0"),
        ("DEADLINE_SECONDS", "nan"),
        ("RECEIVE_TIMEOUT_SECONDS", "inf"),
        ("LOG_LEVEL", "loud"),
        ("BODY_LIMIT_BYTES", "-1"),
    ],
)
def test_value_that_makes_no_sense_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The message names the variable to mend."""
    monkeypatch.setenv(f"INFERDECK_SERVICE_{name}", value)
    with pytest.raises(SettingsError, match=f"^INFERDECK_SERVICE_{name}: .+") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped profile must not become another one."""
    monkeypatch.setenv("INFERDECK_PROFILE", "produciton")
    with pytest.raises(SettingsError, match="must be one of dev, prod"):
        load_settings()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prot: 8080\nport: 1\n", "base.yaml has unknown settings: prot"),
        ("profile: dev\n", "base.yaml has unknown settings: profile"),
        ("- port\n", "base.yaml must hold names and values"),
        ("port: [\n", "base.yaml cannot be read"),
        ("", "base.yaml must hold names and values"),
    ],
)
def test_yaml_that_says_something_else_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """Unknown keys, lists, broken and empty files get a line that names the file."""
    (tmp_path / "base.yaml").write_text(content)
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings(config_dir=tmp_path)
    assert "\n" not in str(caught.value)


def test_setting_that_is_in_no_file_is_missing(tmp_path: Path) -> None:
    """A default in the code would be a second place for the truth."""
    base = yaml.safe_load((CONFIG / "base.yaml").read_text(encoding="utf-8"))
    del base["port"]
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    (tmp_path / "dev.yaml").write_text("workers: 2\n")
    with pytest.raises(SettingsError, match="INFERDECK_SERVICE_PORT: Field required"):
        load_settings(config_dir=tmp_path)


def test_fingerprint_follows_what_matters() -> None:
    """Ports differ between twins, deadlines do not."""
    one, twin = load_settings(port=1), load_settings(port=2, admin_port=3)
    assert one.fingerprint == twin.fingerprint
    assert one.fingerprint != load_settings(deadline_seconds=2).fingerprint


def test_misspelt_variables_are_told() -> None:
    """A variable that sets nothing is named; those that do, and others' variables, are not."""
    environment = {"INFERDECK_SERVICE_PROT": "1", "INFERDECK_SERVICE_PORT": "1", "INFERDECK_RING_DIR": "x", "PATH": "y"}
    assert unknown_variables(environment) == ["INFERDECK_SERVICE_PROT"]


@pytest.mark.parametrize(
    ("told", "batching"),
    [
        ({}, False),
        ({"backend": "triton"}, True),
        ({"backend": "triton", "scheduler_batching": False}, False),
        ({"scheduler_batching": True}, True),
    ],
)
def test_texts_share_calls_where_the_model_is_elsewhere(told: dict[str, Any], batching: bool) -> None:
    """Unless told: in process direct calls win, through Triton calls of eight do (`inferdeck bench serve`)."""
    assert load_settings(**told).batching is batching
