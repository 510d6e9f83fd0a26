"""Look-up asks one question, finds the right folder, and never reads a query as anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.lone_folder import SeveralFoldersError
from exporters.trace_view import TraceView
from inferdeck.errors import CannotRun
from inferdeck.look_up import Query, explained, look_up, look_up_elsewhere, parse_duration, ring_folder
from inferdeck.settings import load_settings
from inferdeck.stack.state import StackState, write_state


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400), ("1.5m", 90)])
def test_durations_are_read(text: str, seconds: float) -> None:
    """The units that Prometheus users know."""
    assert seconds == parse_duration(text)


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(max_size=12))
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    """A duration or a clear error, nothing else."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?[smhd]?", text.strip()):
        assert parse_duration(text) >= 0
        return

    with pytest.raises(CannotRun) as caught:
        parse_duration(text)

    assert "\n" not in str(caught.value)


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(max_size=200))
def test_any_session_id_is_safe_to_ask_for(text: str) -> None:
    """Quotes, newlines, surrogates and markup find nothing and break nothing."""
    assert [] == look_up(Query(session=text), Path(__file__).parent)["traces"]


def test_a_missing_folder_is_a_clear_line(tmp_path: Path) -> None:
    """No rows were ever written here."""
    with pytest.raises(CannotRun, match="inferdeck up"):
        look_up(Query(slow=1), tmp_path / "none")


def test_the_folder_is_the_set_one_then_the_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting wins; without one the record of the stack tells."""
    monkeypatch.delenv("INFERDECK_RING_DIR", raising=False)
    write_state(StackState(str(tmp_path), "/rows/of/the/stack", 0.0))

    assert Path("/set") == ring_folder(load_settings(state_dir=tmp_path, ring_dir=Path("/set")))
    assert Path("/rows/of/the/stack") == ring_folder(load_settings(state_dir=tmp_path))


def test_without_a_stack_the_only_service_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It records below the recorder's default folder under a name of its own; of several none is guessed at."""
    monkeypatch.delenv("INFERDECK_RING_DIR", raising=False)
    found: list[Path] = []

    def search() -> Path | None:
        if len(found) > 1:
            raise SeveralFoldersError("several services record below /x (a, b): set INFERDECK_RING_DIR to one")
        return found[0] if found else None

    settings = load_settings(state_dir=tmp_path)
    none = ring_folder(settings, search)
    found.append(Path("/rows/reviews"))
    one = ring_folder(settings, search)
    found.append(Path("/rows/others"))

    assert (settings.ring_path, Path("/rows/reviews")) == (none, one)
    with pytest.raises(CannotRun, match="INFERDECK_RING_DIR"):
        ring_folder(settings, search)


@pytest.mark.parametrize(
    ("outcome", "hint"),
    [("never_ended", "alert ServiceDown, runbooks/ServiceDown.md"), ("in_flight", ""), ("of_a_newer_exporter", "")],
)
def test_the_page_to_read_on_is_that_of_the_cause(outcome: str, hint: str) -> None:
    """Alert and page come from the runbook of the slug that the explanation names."""
    view = TraceView("0" * 32, "s", "", 1.0, "unfinished", "model.forward", outcome=outcome)

    assert [hint] == [one["hint"] for one in explained([view], None)]


def test_the_question_is_part_of_the_answer() -> None:
    """Only what was asked is told back."""
    assert {"slow": 5, "since_s": 60.0} == Query(slow=5, since_s=60.0).to_json()
    assert {"trace_id": "ab"} == Query(trace="ab").to_json()


@pytest.mark.parametrize("text", ["zz", "", "0" * 31, "0" * 33, "g" * 32, "0" * 32 + "\n"])
def test_what_is_no_trace_id_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    """Instead of "not found", here and at exporters elsewhere; digits of any case are one."""
    with pytest.raises(CannotRun, match="32 hexadecimal digits"):
        look_up(Query(trace=text), tmp_path)
    with pytest.raises(CannotRun, match="32 hexadecimal digits"):
        look_up_elsewhere(Query(trace=text), "http://127.0.0.1:1")
    assert [] == look_up(Query(trace="AB" * 16), tmp_path)["traces"]
