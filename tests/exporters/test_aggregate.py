from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.aggregate import NEVER, aggregate, bucket_index
from exporters.names import INPUT_BUCKETS, METRICS, OUTCOMES, input_bucket
from exporters.totals import Totals
from probes.schema import FIXED_COLUMNS, KINDS

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

STRINGS = ["", "/v1/sentiment", "positive", "schema", "made_up"]
DTYPE = np.dtype(
    [(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS]
    + [("model.forward/start_ns", "<u8"), ("model.forward/duration_ns", "<u8")]
)
IN_FRONT = np.dtype(
    [
        *DTYPE.descr,
        *(
            (f"{stage}/{column}", "<u8")
            for stage in ("network.receive", "sentiment.preprocess", "scheduler.dispatch")
            for column in ("start_ns", "duration_ns")
        ),
    ]
)

ROW = st.fixed_dictionaries(
    {
        "outcome": st.integers(0, 7),
        "route": st.integers(0, 9),
        "reason": st.integers(0, 9),
        "http_status": st.sampled_from([0, 200, 404, 405, 422]),
        "label": st.integers(0, 9),
        "duration_ns": st.integers(0, 20 * 10**9),
        "input_length": st.integers(-1, 3000),
        "tokens": st.integers(-1, 2000),
        "confidence": st.floats(allow_nan=True, allow_infinity=True, width=64) | st.floats(0, 1),
        "model.forward/start_ns": st.sampled_from([NEVER, 0, 5]),
        "model.forward/duration_ns": st.integers(0, 10**9),
    }
)


def rows_of(found: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """The dicts as rows; what a dict lacks is absent."""
    rows = np.zeros(len(found), dtype=DTYPE)
    for index, values in enumerate(found):
        for name, value in values.items():
            rows[name][index] = value
    return rows


def text(index: int, absent: str) -> str:
    """The string with this id."""
    return absent if index == 0 else STRINGS[index] if index < len(STRINGS) else "(other)"


def naive(found: list[dict[str, Any]]) -> dict[str, float]:
    """The same figures, one row after the other."""
    figures: dict[str, float] = {}

    def add(key: str, amount: float = 1) -> None:
        figures[key] = figures.get(key, 0) + amount

    for row in found:
        outcome = OUTCOMES[row["outcome"]] if row["outcome"] < 5 else "error"
        add(f"requests {text(row['route'], '(unmatched)')} {outcome}")
        if row["outcome"] == 1:
            by_status = {404: "not_found", 405: "method"}.get(row["http_status"], "other")
            reason = text(row["reason"], by_status)
            add(f"refused {reason if reason in {'schema', 'not_found', 'method'} else 'other'}")
        if row["outcome"] in (0, 3):
            bucket = input_bucket(row["input_length"])
            bound = next((b for b in METRICS["model_latency_seconds"].buckets if row["duration_ns"] <= b * 1e9), "inf")
            add(f"latency {bucket} {bound}")
            add(f"latency sum {bucket}", row["duration_ns"])
        if row["model.forward/start_ns"] != NEVER:
            add("stage count")
            add("stage sum", row["model.forward/duration_ns"])
        if row["input_length"] >= 0:
            add("length sum", row["input_length"])
        if 0 <= row["confidence"] <= 1:
            add(f"confidence {'positive' if text(row['label'], 'other') == 'positive' else 'other'}")
    return {key: value for key, value in figures.items() if value}


def told(totals: Totals) -> dict[str, float]:
    """The figures of *totals* in the form of `naive`."""
    figures: dict[str, float] = {}
    for (route, outcome), count in totals.counters["model_requests_total"].items():
        figures[f"requests {route} {outcome}"] = count
    for (reason,), count in totals.counters.get("model_refused_total", {}).items():
        figures[f"refused {reason}"] = count
    for (bucket,), histogram in totals.histograms.get("model_latency_seconds", {}).items():
        bounds = [*METRICS["model_latency_seconds"].buckets, "inf"]
        for bound, count in zip(bounds, histogram.counts, strict=True):
            figures[f"latency {bucket} {bound}"] = count
        figures[f"latency sum {bucket}"] = histogram.total
    for histogram in totals.histograms.get("model_stage_seconds", {}).values():
        figures["stage count"] = sum(histogram.counts)
        figures["stage sum"] = histogram.total
    for histogram in totals.histograms.get("model_input_length_characters", {}).values():
        figures["length sum"] = histogram.total
    for (label, role), histogram in totals.histograms.get("model_output_confidence", {}).items():
        assert role == "stable", "rows without a second version"
        figures[f"confidence {label}"] = sum(histogram.counts)
    return {key: value for key, value in figures.items() if value}


def test_a_refusal_without_a_reason_is_told_by_its_status() -> None:
    """A router that answers an unknown path or method by itself names none; a reason that is named wins."""
    refused = OUTCOMES.index("refused")
    rows = [
        {"outcome": refused, "reason": reason, "http_status": status}
        for reason, status in [(0, 404), (0, 404), (0, 405), (0, 400), (3, 404), (4, 405)]
    ]

    counted = aggregate(rows_of(rows), STRINGS, []).counters["model_refused_total"]

    assert {("not_found",): 2, ("method",): 1, ("other",): 2, ("schema",): 1} == dict(counted)


@given(st.lists(ROW, min_size=1, max_size=30))
def test_vectorised_counting_equals_counting_row_by_row(found: list[dict[str, Any]]) -> None:
    """Any rows, broken ones too, give the figures that a plain loop gives."""
    totals = aggregate(rows_of(found), STRINGS, ["model.forward", "not.there"])
    assert naive(found) == told(totals)
    assert totals.value("telemetry_rows_read_total") == len(found)


@given(st.lists(ROW, max_size=30), st.integers(0, 30))
def test_batches_add_up_to_the_whole(found: list[dict[str, Any]], cut: int) -> None:
    """Where a batch ends makes no difference: restarts and kills cut anywhere."""
    whole = aggregate(rows_of(found), STRINGS, ["model.forward"])
    parts = aggregate(rows_of(found[:cut]), STRINGS, ["model.forward"])
    parts.merge(aggregate(rows_of(found[cut:]), STRINGS, ["model.forward"]))
    assert whole == parts


def test_a_value_on_a_bound_belongs_below_it() -> None:
    """300 ms exactly is within the objective of 0.3 s, as `le` says."""
    rows = rows_of([{"duration_ns": 300_000_000, "input_length": 10}, {"duration_ns": 300_000_001, "input_length": 10}])
    counts = aggregate(rows, STRINGS, []).histograms["model_latency_seconds"]["short",].counts
    place = METRICS["model_latency_seconds"].buckets.index(0.3)
    assert counts[place : place + 2] == [1, 1]


@given(st.lists(st.integers(-5, 2000), max_size=20))
def test_vector_and_single_length_classes_agree(lengths: list[int]) -> None:
    """`bucket_index` and `input_bucket` are one rule."""
    indexes = bucket_index(np.array(lengths, dtype=np.int64))
    assert [input_bucket(length) for length in lengths] == [INPUT_BUCKETS[index] for index in indexes]


def test_no_rows_add_nothing() -> None:
    """An empty batch changes nothing."""
    assert Totals() == aggregate(rows_of([]), STRINGS, [])


@pytest.mark.parametrize("outcome", range(5))
def test_rows_of_the_real_writer_are_counted(fly: Callable[..., Flight], outcome: int) -> None:
    """Columns, kinds and strings are those of the recorder."""
    from probes.reader import RingFile

    flight = fly()
    flight.row(outcome=outcome, stages={"model.forward": (10, 20_000)})
    with RingFile(flight.path) as ring:
        batch = ring.read(0)
        totals = aggregate(batch.rows, ring.strings(), ring.header.stages)
    assert totals.value("model_requests_total", "/v1/sentiment", OUTCOMES[outcome]) == 1
    assert sum(totals.histograms["model_stage_seconds"]["model.forward",].counts) == 1


def in_front(**values: int) -> np.ndarray[Any, Any]:
    """One row of the service's stages; those without a value did not run."""
    rows = np.zeros(1, dtype=IN_FRONT)
    for name in IN_FRONT.names or ():
        if name.endswith("/start_ns"):
            rows[name] = NEVER
    for name, value in values.items():
        rows[name.replace("__", "/").replace("_in_", ".")] = value
    return rows


def filter_totals(rows: np.ndarray[Any, Any]) -> dict[tuple[str, ...], int]:
    """Nanoseconds in front of the model, by family of agents."""
    found = aggregate(rows, ["", "safari_ios"], []).histograms.get("model_filter_seconds", {})
    return {labels: histogram.total for labels, histogram in found.items()}


def test_time_in_front_of_the_model_leaves_out_the_wait_for_the_body() -> None:
    """Middleware before the first stage counts, a slow upload does not, by family of agents."""
    rows = in_front(
        agent_family=1,
        network_in_receive__start_ns=200,
        network_in_receive__duration_ns=1000,
        sentiment_in_preprocess__start_ns=1300,
        sentiment_in_preprocess__duration_ns=50,
        scheduler_in_dispatch__start_ns=1400,
    )
    assert {("safari_ios",): 400} == filter_totals(rows)


def test_a_request_that_never_reached_the_executor_counts_its_filters_alone() -> None:
    """One that was refused by the contract has its stage; one with no stage at all has nothing to observe."""
    refused = in_front(sentiment_in_preprocess__start_ns=0, sentiment_in_preprocess__duration_ns=70)
    assert {("(none)",): 70} == filter_totals(refused)
    assert {} == filter_totals(in_front(agent_family=1))
    assert {} == filter_totals(rows_of([{"agent_family": 1}]))


def test_odd_times_never_count_below_zero() -> None:
    """A body that arrives after the hand-over, or a stage longer than a signed number holds, is 0 and not less."""
    late = in_front(
        scheduler_in_dispatch__start_ns=5, network_in_receive__start_ns=0, network_in_receive__duration_ns=9
    )
    huge = in_front(sentiment_in_preprocess__start_ns=0, sentiment_in_preprocess__duration_ns=2**63 + 5)
    assert {("(none)",): 0} == filter_totals(late) == filter_totals(huge)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20))
def test_sums_are_exact_for_long_durations(durations: list[int]) -> None:
    """Minutes in nanoseconds need more than 32 bits, of which none may be lost."""
    rows = rows_of([{"duration_ns": duration, "input_length": 40} for duration in durations])
    found = aggregate(rows, STRINGS, ()).histograms["model_latency_seconds"]["short",]

    assert (sum(durations), len(durations)) == (found.total, sum(found.counts))
