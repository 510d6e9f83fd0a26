"""`bench trace`: its shape and gate, and a small run over rows of the real recorder and archiver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from exporters.rows import load_rows
from inferdeck.bench.flight import Written, session_id, write_flight
from inferdeck.bench.look_ups import KINDS, Found, run_look_ups, shape_look_ups
from inferdeck.look_up import Query, look_up
from inferdeck.result import Stopwatch

SCHEMA = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas" / "bench_trace.schema.json"


def validate(payload: dict[str, Any]) -> None:
    """Hold a result against its schema, as the console prints it."""
    jsonschema.validate(Stopwatch().stamp(payload), json.loads(SCHEMA.read_text(encoding="utf-8")))


def found(look_up: float = 0.01, command: float = 0.5, wrong: int = 0) -> Found:
    """Return three look-ups of each kind, the middle one as given, and three commands."""
    times = [look_up / 2, look_up, look_up * 2]
    by_kind: dict[str, list[float]] = dict.fromkeys(KINDS, times)
    commands = [command / 2, command, command * 2]
    return Found(Written(1000, 800, 80_000, 2), by_kind, by_kind, commands, [0.4, 0.3, 0.5], wrong)


def test_medians_and_the_bytes_of_an_archived_row_are_told() -> None:
    """What is measured stands where the schema has it; Jaeger is null, with why."""
    result = shape_look_ups(found())

    validate(result)
    assert {"ring": 0.01, "command": 0.5, "jaeger": None} == result["lookup_s"]
    assert ({"present": 0.01, "absent": 0.01, "oldest": 0.01}, 100.0) == (result["ids"], result["bytes_per_record"])
    assert result["jaeger_missing"]
    assert 0.4 == result["command_cpu_s"]


@pytest.mark.parametrize(
    ("measured", "passed"),
    [
        (found(look_up=0.05, command=0.99), True),
        (found(look_up=0.051), False),
        (found(command=1.0), False),
        (found(wrong=1), False),
    ],
)
def test_the_gate_is_fifty_milliseconds_a_second_and_no_wrong_answer(measured: Found, passed: bool) -> None:
    """At the bounds of issue 7; without commands theirs is not judged."""
    assert passed is shape_look_ups(measured)["gate"]["passed"]


def test_a_run_without_commands_says_so() -> None:
    """Null, never 0."""
    result = shape_look_ups(Found(Written(4, 0, 0, 0), found().sessions, found().traces))

    validate(result)
    assert (None, None) == (result["lookup_s"]["command"], result["command_cpu_s"])
    assert result["gate"]["passed"]


def test_every_written_row_is_in_the_rings_or_in_the_archive(tmp_path: Path) -> None:
    """More rows than the rings hold: the oldest are sealed, the newest are in the rings alone, and none is lost."""
    records = 80_000
    written = write_flight(tmp_path / "rings", tmp_path / "archive", records)
    held = len(load_rows(tmp_path / "rings"))
    table = load_rows(tmp_path / "rings", archive_dir=tmp_path / "archive")

    assert (4 * 16_384, records) == (held, len(table))
    assert 0 < written.archived < written.rows == records
    assert {session_id(number) for number in range(records // 4)} == set(table["session"].tolist())


@pytest.mark.parametrize("records", [24_000, 80_000])
def test_a_request_too_far_back_for_the_sample_is_still_compared_with_others(tmp_path: Path, records: int) -> None:
    """Whether its neighbours are archived already or still in the rings, behind the rows that are looked at."""
    written = write_flight(tmp_path / "rings", tmp_path / "archive", records)
    for number in (0, records // 8, records // 4 - 1):
        traces = look_up(Query(session=session_id(number)), tmp_path / "rings", tmp_path / "archive")["traces"]
        assert 4 == len(traces)
        assert [] == [trace["why"] for trace in traces if "too few other requests" in trace["why"]]

    assert (records > 4 * 8192) is (written.archived > 0)


@pytest.mark.real
def test_a_small_run_finds_what_was_written() -> None:
    """Rings and archive, all kinds of ids, and the command; every answer right. Says nothing about speed."""
    told: list[str] = []
    result = run_look_ups(9_998, 3, 1, lambda what, _share: told.append(what))

    validate(result)
    assert (10_000, 0, 3, 1) == (result["records"], result["wrong"], result["look_ups"], result["commands"])
    assert all(seconds > 0 for seconds in (*result["ids"].values(), *result["trace_ids"].values()))
    assert 0 < result["command_cpu_s"]
    assert 0 < result["lookup_s"]["command"]
    assert told
