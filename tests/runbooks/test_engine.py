"""The engine over worlds that go wrong in many ways, and over worlds that only look so."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from alerts import slugs
from exporters.names import LAYERS
from runbooks.engine import _measure, triage, unix
from runbooks.evidence import Evidence, StepResult, Window
from runbooks.pages import load_pages
from runbooks.sources import Sources, gather

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "inferdeck/schemas/triage.schema.json").read_text(encoding="utf-8"))

BLOCKED: dict[str, dict[str, Any]] = {
    "the drill's 200 ms in 5% of requests": {"block_seconds": 0.2, "block_share": 0.05},
    "50 ms, under what the service counts as blocked": {"block_seconds": 0.05, "block_share": 0.1},
    "one second, rarely": {"block_seconds": 1.0, "block_share": 0.01},
    "five seconds": {"block_seconds": 5.0, "block_share": 0.004},
    "30 ms in each request": {"block_seconds": 0.03, "block_share": 1.0},
    "a fifth of the requests": {"block_seconds": 0.2, "block_share": 0.2},
    "every request, more than the loop can serve": {"block_seconds": 0.2, "block_share": 1.0},
    "around what counts as blocked, at a higher rate": {"block_seconds": 0.1, "block_share": 0.1, "rate": 100.0},
    "overloaded by blocks": {"block_seconds": 0.2, "block_share": 0.05, "rate": 200.0},
    "little traffic": {"block_seconds": 0.2, "block_share": 0.1, "rate": 5.0},
    "four workers": {"block_seconds": 0.2, "block_share": 0.05, "workers": 4, "rate": 40.0},
    "a short baseline": {"block_seconds": 0.2, "block_share": 0.05, "before": 40.0, "during": 40.0},
    "a call that never returns": {"block_forever_after": 10.0},
    "scrapes every 15 s": {"block_seconds": 0.2, "block_share": 0.05, "scrape": 15.0, "during": 90.0},
    "no status pages": {"block_seconds": 0.2, "block_share": 0.05, "status_pages": False},
}
DOWN: dict[str, dict[str, Any]] = {
    "killed": {"dead_after": 0.0, "during": 35.0},
    "frozen, its file still held": {"dead_after": 0.0, "during": 35.0, "frozen": True},
    "four workers killed": {"dead_after": 0.0, "during": 35.0, "workers": 4},
    "killed after a while": {"dead_after": 20.0, "during": 60.0},
    "killed with the exporter": {"dead_after": 0.0, "exporter_dead_after": 0.0, "during": 40.0},
}
SILENT: dict[str, dict[str, Any]] = {
    "healthy": {},
    "idle": {"rate": 0.2},
    "no traffic at all": {"rate": 0.0},
    "ten times the traffic": {"surge": 10.0},
    "slow but awaiting": {"wait_seconds": 0.2, "wait_share": 0.05},
    "slow but awaiting, often": {"wait_seconds": 0.5, "wait_share": 0.2},
    "slow but awaiting, every request": {"wait_seconds": 1.0, "wait_share": 1.0},
    "a slower model": {"model_factor": 50.0},
    "restarted by a deploy": {"dead_after": 0.0, "restart_after": 10.0, "during": 12.0},
    "down for a moment, as a deploy is": {"dead_after": 0.0, "during": 8.0},
    "one worker of four gone, cleanly": {"dead_after": 0.0, "dead_workers": 1, "workers": 4, "clean": True},
    "one worker of four frozen": {"dead_after": 0.0, "dead_workers": 1, "workers": 4, "frozen": True},
    "started again as quickly as ever": {"start_seconds": 2.0},
    "started again on a busy machine": {"start_seconds": 6.0, "workers": 4},
    "Prometheus restarted": {"prometheus_away": (0.0, 40.0)},
    "answers with errors": {"fail_share": 0.3},
    "four isolated lags a minute": {"block_seconds": 0.2, "block_share": 0.003},
    "first minutes": {"before": 5.0, "during": 20.0},
    "a machine that stalls": {"block_seconds": 0.2, "block_share": 0.05, "frame": "asyncio/selectors.py:468 select"},
}


def ask(world: Any, sources: Sources | None = None, **options: Any) -> dict[str, Any]:
    """Triage a world at its end."""
    return triage(sources or world.sources(), at=world.until, clock=lambda: world.until + 1.0, **options)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", BLOCKED)
def test_a_blocked_event_loop_is_named_whatever_blocks_it(world: Callable[..., Any], case: str, seed: int) -> None:
    """Blocks of 30 ms to 5 s, in few or all requests, over one or several workers, lead to the same verdict."""
    found = ask(world(seed=seed, **BLOCKED[case]))

    assert "event_loop_blocked" == found["verdict"]["slug"], found["candidates"]
    assert "runtime" == found["verdict"]["layer"]
    assert not found["abstained"]


@pytest.mark.parametrize("case", DOWN)
def test_a_service_that_is_gone_is_named(world: Callable[..., Any], case: str) -> None:
    """Killed, frozen, one worker or several: the service is down, and that comes before a lost exporter."""
    found = ask(world(**DOWN[case]))

    assert "service_down" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize(
    "options",
    [{}, {"workers": 2, "during": 15.0}, {"dead_after": 10.0}, {"rate": 1.0}, {"during": 85.0}, {"scrape": 15.0}],
    ids=str,
)
def test_a_worker_that_dies_among_others_is_named(world: Callable[..., Any], options: dict[str, Any]) -> None:
    """Soon after it or a minute later, with little traffic, one of two or of four; each source alone is enough."""
    here = world(**{"dead_after": 0.0, "dead_workers": 1, "workers": 4, "during": 40.0} | options)
    full = here.sources()

    for sources in (full, Sources(full.prometheus, None), Sources(None, full.rows)):
        found = ask(here, sources)

        assert "worker_killed" == found["verdict"]["slug"], (options, found["candidates"])


@pytest.mark.parametrize(
    "options",
    [
        {"during": 20.0},
        {"during": 60.0},
        {"start_seconds": 12.0, "during": 30.0},
        {"start_phase": "import", "during": 40.0},
        {"start_phase": "starting", "during": 60.0, "workers": 4},
        {"rate": 1.0},
        {"scrape": 15.0},
    ],
    ids=str,
)
def test_a_start_that_takes_long_is_named_and_so_is_its_phase(
    world: Callable[..., Any], options: dict[str, Any]
) -> None:
    """While it lasts and after it, whichever phase it is; each source alone is enough, and nothing is called down."""
    here = world(**{"start_seconds": 25.0, "during": 60.0} | options)
    full = here.sources()

    for sources in (full, Sources(full.prometheus, None), Sources(None, full.rows)):
        found = ask(here, sources)

        assert "slow_start" == found["verdict"]["slug"], (options, found["candidates"])
    phase = next(one for one in ask(here)["evidence"] if one["step"] == "start.slowest_phase")
    assert here.trouble.start_phase == phase["value"]


def test_a_lost_exporter_is_named(world: Callable[..., Any]) -> None:
    """The exporter's target is down while the service answers and records."""
    found = ask(world(exporter_dead_after=0.0, during=40.0))

    assert "exporter_unreachable" == found["verdict"]["slug"]
    assert "telemetry" == found["verdict"]["layer"]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_named_where_nothing_known_is_wrong(world: Callable[..., Any], case: str, seed: int) -> None:
    """Healthy twins, surges, restarts and unknown failures get no verdict, with either source missing as well."""
    here = world(seed=seed, **SILENT[case])
    full = here.sources()

    # Whether the machine or the code stands still cannot be told from Prometheus alone.
    alone = [] if case == "a machine that stalls" else [Sources(full.prometheus, None)]
    for sources in (full, Sources(None, full.rows), *alone):
        found = ask(here, sources)

        assert found["abstained"], (found["verdict"], found["candidates"])
        assert found["verdict"]["slug"] is None


@pytest.mark.parametrize(
    ("options", "alert"),
    [
        ({"block_seconds": 0.2, "block_share": 0.05}, "EventLoopBlocked"),
        ({"block_seconds": 0.2, "block_share": 0.05}, "ServiceDown"),
        ({"wait_seconds": 0.2, "wait_share": 0.05}, "EventLoopBlocked"),
        ({"dead_after": 0.0, "during": 35.0}, "LatencyObjectiveMissed"),
    ],
)
def test_the_alerts_name_is_no_evidence(world: Callable[..., Any], options: dict[str, Any], alert: str) -> None:
    """Told an alert, even a wrong one, triage reaches the verdict that it reaches blind."""
    here = world(**options)

    assert ask(here)["verdict"] == ask(here, alert=alert)["verdict"]


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"block_seconds": 0.2, "block_share": 0.05}, "event_loop_blocked"),
        ({"dead_after": 0.0, "during": 35.0}, "service_down"),
    ],
)
def test_either_source_alone_is_enough_and_costs_confidence(
    world: Callable[..., Any], broken: Any, options: dict[str, Any], slug: str
) -> None:
    """Without Prometheus or without rows the same is named, with less confidence, and the gap and its cost are said."""
    here = world(**options)
    full = here.sources()
    both = ask(here)

    for sources, missing in ((Sources(broken, full.rows), "prometheus"), (Sources(full.prometheus, broken), "ring")):
        found = ask(here, sources)

        assert slug == found["verdict"]["slug"]
        assert found["verdict"]["confidence"] < both["verdict"]["confidence"]
        assert [missing] == found["missing_sources"]
        assert "not there" == found["missing"][0]["reason"]
        assert found["missing"][0]["cost"]


def test_without_any_source_triage_abstains(world: Callable[..., Any], broken: Any) -> None:
    """With nothing to read there is no verdict, no candidate with confidence, and a sentence that says so."""
    found = ask(world(), Sources(broken, None))

    assert found["abstained"]
    assert ["prometheus", "ring"] == found["missing_sources"]
    assert {0.0} == {one["confidence"] for one in found["candidates"]}
    assert found["verdict"]["summary"].startswith("Nothing can be told")


def test_evidence_that_contradicts_itself_names_nothing(world: Callable[..., Any]) -> None:
    """Prometheus tells of a blocked loop, the rows of a service where others go on: no verdict."""
    lag, rows = world(block_seconds=0.2, block_share=0.05), world(wait_seconds=0.2, wait_share=0.05)

    found = ask(lag, Sources(lag.metrics(), rows.requests()))

    assert found["abstained"], found["candidates"]


def test_a_target_that_is_down_while_rows_are_fresh_is_not_a_dead_service(world: Callable[..., Any]) -> None:
    """The scrape fails but workers write rows: the two signs contradict each other, and nothing is named."""
    metrics, rows = world(dead_after=0.0, during=35.0), world(during=35.0)

    found = ask(metrics, Sources(metrics.metrics(), rows.requests()))

    assert "service_down" != found["verdict"]["slug"], found["candidates"]


def test_of_two_failures_the_one_that_pages_is_named_and_the_other_stays_next(world: Callable[..., Any]) -> None:
    """A blocked loop beside a lost exporter: both are told."""
    found = ask(world(block_seconds=0.2, block_share=0.05, exporter_dead_after=0.0))

    assert "event_loop_blocked" == found["verdict"]["slug"]
    assert "exporter_unreachable" == found["candidates"][1]["slug"]
    assert "exporter_unreachable" in found["verdict"]["summary"]


def test_a_host_that_starves_the_process_is_no_blocked_loop(world: Callable[..., Any]) -> None:
    """The same late ticks, in which the loop's thread was ready and got no CPU: nothing is named."""
    here = world(block_seconds=0.2, block_share=0.05)
    rows = here.rows()
    rings = tuple(
        replace(ring, episodes=tuple(replace(one, run_wait_s=0.8 * one.duration_s) for one in ring.episodes))
        for ring in rows.rings
    )
    requests = here.requests()
    requests._rows = replace(rows, rings=rings)
    found = ask(here, Sources(here.metrics(), requests))

    assert found["verdict"]["slug"] is None
    assert any("condition not met: not starved" in reason for one in found["candidates"] for reason in one["reasons"])


def test_the_onset_is_found_to_a_few_seconds(world: Callable[..., Any]) -> None:
    """The incident begins where the trouble begins, and it goes on."""
    here = world(block_seconds=0.2, block_share=0.05)
    found = ask(here)

    assert abs(unix(found["window"]["onset"]) - here.onset) < 5.0
    assert found["impact"]["still_going"] is True


def test_impact_counts_requests_sessions_and_what_never_ended(world: Callable[..., Any]) -> None:
    """Impact holds requests, bad ones, sessions, outcomes, P95 now and before; after a kill also what was lost."""
    blocked = ask(world(block_seconds=0.2, block_share=0.05))["impact"]
    killed = ask(world(dead_after=0.5, rate=2000.0, before=60.0, during=35.0))["impact"]

    assert 0 < blocked["bad_requests"] < blocked["requests"]
    assert 0 < blocked["bad_sessions"] <= blocked["sessions"] <= 50
    assert blocked["requests"] == sum(blocked["by_outcome"].values())
    assert blocked["p95_seconds"]["all"]["now"] > 10 * blocked["p95_seconds"]["all"]["before"]
    assert killed["unfinished_requests"] > 0


@pytest.mark.parametrize("workers", [1, 4])
def test_health_meets_no_condition_that_decides(world: Callable[..., Any], workers: int) -> None:
    """What a healthy service shows as well is a guard on every shipped page, or the page could be named blind."""
    here = world(workers=workers)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    evidence, _ = gather(here.sources(), window.since, window.until, lambda: here.until)
    deciding = [
        (page, step) for page in load_pages().values() if page.kind == "failure" for step in page.steps if step.decides
    ]
    measured = _measure(evidence.at(window), {step.run for _, step in deciding})

    met = [(page.slug, step.run) for page, step in deciding if step.expect.judge(measured[step.run].value)]

    assert [] == met
    assert any(one.value is not None for one in measured.values())


def test_an_unknown_failure_still_gets_a_place_to_look(world: Callable[..., Any]) -> None:
    """Errors of one client release are no known cause: the release and the most unusual signal are told."""
    found = ask(world(fail_share=0.5, fail_release="1.1"))

    assert found["abstained"]
    assert ("client_release", "1.1") == tuple(found["differs"]["findings"][0][key] for key in ("column", "value"))
    assert "failed share" in [one["signal"] for one in found["unusual"]]
    assert "client_release = 1.1" in found["verdict"]["summary"]


def test_a_lost_worker_among_others_is_told_as_unusual(world: Callable[..., Any]) -> None:
    """One worker of four is frozen: no verdict of this catalogue, but the worker is pointed at."""
    found = ask(world(dead_after=0.0, dead_workers=1, workers=4, frozen=True))

    assert any("worker 0 silent" in one["signal"] for one in found["unusual"])


@pytest.mark.parametrize("case", [*BLOCKED.items(), *DOWN.items(), *SILENT.items()], ids=lambda case: case[0])
def test_every_result_keeps_to_the_shipped_schema(world: Callable[..., Any], case: tuple[str, dict[str, Any]]) -> None:
    """The result is plain JSON without NaN and valid against the schema that the console ships."""
    here = world(**case[1])
    full = here.sources()
    for sources in (full, Sources(full.prometheus, None), Sources(None, full.rows), Sources()):
        decoded = json.loads(json.dumps(ask(here, sources), allow_nan=False))

        assert [] == [error.message for error in Draft202012Validator(SCHEMA).iter_errors(decoded)]


@pytest.mark.parametrize("when", ["nan", "inf", "-1e300", 1e18, "9999-12-31T23:59:59-12:00"])
def test_a_time_that_cannot_be_written_down_is_refused(when: float | str) -> None:
    """One clear sentence, whatever Python would have raised later."""
    with pytest.raises(ValueError, match="no time between the years 1 and 9999"):
        unix(when)


def test_the_layers_of_schemas_catalogue_and_pages_are_one_list() -> None:
    """A layer is added in one place; the schema, which cannot import it, has the same."""
    assert [*LAYERS, None] == SCHEMA["$defs"]["layer_or_null"]["enum"]
    assert slugs.LAYERS is LAYERS
    assert set(slugs.FAILURES.values()) <= set(LAYERS)


def test_the_schema_refuses_a_wrong_result(world: Callable[..., Any]) -> None:
    """The schema can fail: a renamed key and a share over 1 are seen."""
    found = ask(world())
    found["verdict"]["confidence"] = 1.5
    del found["impact"]

    assert 2 == len(list(Draft202012Validator(SCHEMA).iter_errors(found)))


def test_an_incident_that_ended_long_ago_is_history(world: Callable[..., Any]) -> None:
    """Asked about its time it is named; asked what is wrong three minutes later, nothing is."""
    here = world(block_seconds=0.2, block_share=0.05, ends_after=60.0, during=240.0)
    sources, then = here.sources(), here.onset + 60.0

    assert ask(here, sources)["abstained"]
    assert "event_loop_blocked" == triage(sources, at=then, clock=lambda: here.until)["verdict"]["slug"]


def test_a_failure_that_ends_while_triage_looks_is_still_named(world: Callable[..., Any]) -> None:
    """Over for half a minute: named, with its end, and not called going on."""
    found = ask(world(block_seconds=0.2, block_share=0.1, ends_after=60.0, during=85.0))

    assert "event_loop_blocked" == found["verdict"]["slug"], found["candidates"]
    assert found["impact"]["still_going"] is False


def test_a_step_that_raises_or_hangs_costs_that_step(world: Callable[..., Any]) -> None:
    """A broken step and a slow one cannot see; the others are measured."""
    evidence = Evidence(Window(0.0, 60.0))

    def raises(_: Evidence) -> StepResult:
        raise ZeroDivisionError("by hand")

    def hangs(_: Evidence) -> StepResult:
        time.sleep(2.5)
        return StepResult("hangs", 1.0, "ring")

    def works(_: Evidence) -> StepResult:
        return StepResult("works", 1.0, "ring")

    found = _measure(
        evidence, {"a.raises", "b.hangs", "c.works"}, {"a.raises": raises, "b.hangs": hangs, "c.works": works}
    )

    assert (None, None, 1.0) == (found["a.raises"].value, found["b.hangs"].value, found["c.works"].value)
    assert "ZeroDivisionError: by hand" in found["a.raises"].detail


def test_a_source_that_hangs_or_breaks_costs_that_source(world: Callable[..., Any]) -> None:
    """A source past the deadline, or one that raises what nobody expected, is missing with its reason."""

    class Hangs:
        def collect(self, *_: object) -> Any:
            time.sleep(0.6)

        def alert_span(self, *_: object) -> None:
            return None

    class Breaks:
        def collect(self, *_: object) -> Any:
            raise RuntimeError("damaged")

    evidence, missing = gather(Sources(Hangs(), Breaks()), 0.0, 60.0, limit_seconds=0.2)

    assert (None, None) == (evidence.series, evidence.rows)
    assert ["prometheus", "ring"] == [one.source for one in missing]
    assert "too slow" in missing[0].reason
    assert "damaged" in missing[1].reason


def test_a_prometheus_without_data_is_missing(world: Callable[..., Any]) -> None:
    """An answer without any series is no evidence of absence."""
    here = world()

    found = triage(here.sources(), at=here.until + 86400.0, clock=lambda: here.until + 86400.0)

    assert "prometheus" in found["missing_sources"]
    assert found["abstained"]


def test_clock_skew_and_absurd_times_are_survived(world: Callable[..., Any]) -> None:
    """A time in the future is taken as now; rows with absurd starts do not break a step."""
    here = world(block_seconds=0.2, block_share=0.05)
    rows = here.rows()
    odd = replace(rows, start_s=np.where(np.arange(len(rows)) % 97 == 0, 0.0, rows.start_s))

    found = triage(Sources(here.metrics(), type(here.requests())(odd)), at=here.until + 1e6, clock=lambda: here.until)

    assert "event_loop_blocked" == found["verdict"]["slug"]


def test_times_are_read_in_three_forms_and_wrong_ones_refused(world: Callable[..., Any]) -> None:
    """Unix seconds, text and RFC 3339 mean the same; nonsense and an empty window raise ValueError."""
    assert 1_780_000_000.0 == unix("2026-05-28T20:26:40Z") == unix("1780000000") == unix(1_780_000_000)
    with pytest.raises(ValueError, match="Invalid isoformat"):
        unix("yesterday")
    with pytest.raises(ValueError, match="ends before it begins"):
        triage(Sources(), window=(10.0, 5.0))
