"""Programs of silence: each has its turn, none at the time of another, and they are asked for like failures."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.drill.command import DrillRequest, choose_programs, drill
from inferdeck.drill.program import Program
from inferdeck.drill.silence import LEAST_SECONDS, SURGE, silence_programs, timetable
from inferdeck.errors import CannotRun
from inferdeck.settings import load_settings

ALL = ["deploy_restart", "first_minutes", "idle_service", "prometheus_restart", "traffic_surge"]


def load(program: Program) -> Any:
    """Load a program as a module."""
    spec = importlib.util.spec_from_file_location(program.slug, program.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class RecordingStack:
    """Notes what a program does to the stack."""

    base_rate = 20.0

    def __init__(self) -> None:
        self.done: list[Any] = []

    def set_rate(self, rate: float) -> None:
        """Note it."""
        self.done.append(rate)

    def restart_service(self) -> None:
        """Note it."""
        self.done.append("service")

    def restart_prometheus(self) -> None:
        """Note it."""
        self.done.append("prometheus")


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("traffic_surge", [200.0, 20.0]),
        ("idle_service", [0.0, 20.0]),
        ("deploy_restart", ["service"]),
        ("prometheus_restart", ["prometheus"]),
        ("first_minutes", []),
    ],
)
def test_each_program_does_what_it_says_and_puts_the_traffic_back(slug: str, expected: list[Any]) -> None:
    """Each is left as it was found."""
    (program,) = [one for one in silence_programs() if one.slug == slug]
    stack = RecordingStack()

    with load(program).cause(stack):
        pass

    assert expected == stack.done


def test_all_of_the_catalogue_are_there_and_read_as_healthy() -> None:
    """The file's name, its slug, and what may be alerted: nothing."""
    programs = silence_programs()

    assert ALL == [one.slug for one in programs] == [one.path.stem for one in programs]
    assert all(one.healthy and {"cause"} == one.hooks and one.sentence for one in programs)
    assert ["first_minutes"] == [one.slug for one in programs if one.at_start]


def test_the_surge_is_tenfold() -> None:
    """As the list of failures asks; what was really sent is measured."""
    (surge,) = [one for one in silence_programs() if one.slug == SURGE]

    assert 10.0 == load(surge).RATIO


def test_ten_minutes_hold_all_and_three_hold_the_surge() -> None:
    """The start first, and the surge where it always was: after a third, for a quarter."""
    ten, three = (timetable(60.0 * minutes, silence_programs()) for minutes in (10, 3))

    assert ["first_minutes", "deploy_restart", "traffic_surge", "idle_service", "prometheus_restart"] == [
        act.program.slug for act in ten
    ]
    assert [(60.0, 105.0)] == [(act.begin, act.end) for act in three if act.program.slug == SURGE]


@given(st.floats(60.0, 240 * 60.0), st.sets(st.sampled_from(ALL)))
def test_turns_never_overlap_and_end_in_time(seconds: float, wanted: set[str]) -> None:
    """Whatever the time and the programs; each turn is long enough for the rules to see it."""
    acts = timetable(seconds, [one for one in silence_programs() if one.slug in wanted])

    for before, after in pairwise(acts):
        assert before.end <= after.begin + 1e-9
    for act in acts:
        assert act.end <= seconds
        assert not act.program.at_start or 0.0 == act.begin
        assert act.program.slug == SURGE or act.end - act.begin >= LEAST_SECONDS - 1e-6
    assert (SURGE in wanted) == (SURGE in [act.program.slug for act in acts])


def test_they_are_asked_for_by_name_and_are_no_failures() -> None:
    """Beside failures, but never among all of them: --all is what triage shall name."""
    surge, failure = choose_programs(DrillRequest(slugs=("traffic_surge", "service_down")))

    assert (True, False) == (surge.healthy, failure.healthy)
    assert not any(one.healthy for one in choose_programs(DrillRequest(every=True)))


def test_what_this_machine_cannot_cause_is_left_out_and_said(tmp_path: Path) -> None:
    """With nothing else to run that is no success; nothing is started for it."""
    script = tmp_path / "p.py"
    script.write_text('SLUG = "disk_full"\ndef cannot_cause(): return "no root"\ndef cause(stack): ...\n')
    lines: list[str] = []

    with pytest.raises(CannotRun, match="disk_full: no root"):
        drill(DrillRequest(program=script), load_settings(state_dir=tmp_path / "state"), {}, lines.append)

    assert ["disk_full: left out, no root"] == lines
    assert not (tmp_path / "state").exists()
