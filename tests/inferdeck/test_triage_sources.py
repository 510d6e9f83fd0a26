"""Where triage and doctor look: the stack, or a service without our rows by a mapping; slips are told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.doctor_mapping import examine_mapping
from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings, load_settings
from inferdeck.triage_command import open_sources
from runbooks.mapping.source import MappedSource

URL = "http://127.0.0.1:9"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackSettings:
    """Return settings of an empty state folder."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("INFERDECK_TRIAGE_MAPPING", raising=False)
    return load_settings()


def test_without_a_mapping_the_stack_is_asked(settings: StackSettings) -> None:
    """Rows and Prometheus, as ever."""
    sources = open_sources(settings, None, URL, None)

    assert (None, True) == (sources.mapping, sources.rows is not None)


def test_a_mapping_comes_from_the_option_or_the_variable(
    settings: StackSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option wins; a service that is read by its own metrics has no rows."""
    monkeypatch.setenv("INFERDECK_TRIAGE_MAPPING", "triton")
    monkeypatch.setenv("INFERDECK_TRIAGE_JOB", "models")
    set_by_variable = open_sources(settings, None, URL, None)
    set_by_option = open_sources(settings, "fastapi-instrumentator", URL, "shop")

    for sources, name, job in (
        (set_by_variable, "triton", "models"),
        (set_by_option, "fastapi-instrumentator", "shop"),
    ):
        assert isinstance(sources.prometheus, MappedSource)
        assert (name, job, None) == (sources.prometheus.mapping.name, sources.prometheus.job, sources.rows)


@pytest.mark.parametrize(
    ("mapping", "url", "job", "said"),
    [
        ("fastapi", URL, None, "no mapping 'fastapi': give a file, or one of the shipped ones"),
        (None, URL, "shop", "--job says nothing without a mapping; add --mapping NAME"),
        ("triton", "127.0.0.1:9090", None, "is no address of Prometheus; give http://HOST:PORT"),
    ],
)
def test_a_slip_is_one_line_with_its_mend(
    settings: StackSettings, mapping: str | None, url: str, job: str | None, said: str
) -> None:
    """Before anything is asked."""
    with pytest.raises(CannotRun, match=said):
        open_sources(settings, mapping, url, job)


def test_doctor_says_that_prometheus_is_not_there(settings: StackSettings) -> None:
    """One failed check with the address, and no traceback."""
    (check,) = examine_mapping(settings, "triton", URL, None)

    assert ("prometheus", "fail") == (check.name, check.state)
    assert "does not answer" in check.detail
