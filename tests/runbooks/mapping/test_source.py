"""Foreign series under our names: labels, units, births of series, jobs; over a Prometheus that is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import httpx
import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.mapping.load import find_mapping
from runbooks.mapping.source import MappedSource
from runbooks.prometheus_source import SourceMissingError
from runbooks.sources import Sources

T0 = 1_780_000_000.0
Answers = Callable[[str], list[dict[str, Any]]]


def series(labels: Mapping[str, str], values: list[float], start: float = T0, step: float = 5.0) -> dict[str, Any]:
    """Return one series as Prometheus writes it."""
    points = [[start + step * index, str(value)] for index, value in enumerate(values)]
    return {"metric": dict(labels), "values": points}


def played(answers: Answers, name: str, job: str | None = "shop") -> MappedSource:
    """Return a source over a Prometheus that answers by the query's text."""

    def handle(request: httpx.Request) -> httpx.Response:
        query = parse_qs(request.content.decode())["query"][0]
        return httpx.Response(200, text=json.dumps({"status": "success", "data": {"result": answers(query)}}))

    return MappedSource("http://prometheus", find_mapping(name), job, transport=httpx.MockTransport(handle))


def test_status_codes_become_outcomes_and_children_are_born_at_zero() -> None:
    """The first failed requests count, though Prometheus has no sample of their series before them."""

    def answers(query: str) -> list[dict[str, Any]]:
        if "http_requests_total" in query:
            target = {"job": "shop", "instance": "a"}
            return [
                series(target | {"status": "2xx"}, [10, 20, 30, 40]),
                series(target | {"status": "3xx"}, [1, 1, 1, 1]),
                series(target | {"status": "5xx"}, [4, 6], start=T0 + 10),
            ]
        return []

    found = played(answers, "fastapi-instrumentator").collect((signals.REQUESTS,), T0, T0 + 15)[signals.REQUESTS]

    by = {one.labels["outcome"]: one for one in found}
    assert {"ok", "error"} == set(by)
    assert [11.0, 21.0, 31.0, 41.0] == by["ok"].values.tolist()
    assert [0.0, 0.0, 4.0, 6.0] == by["error"].values.tolist()
    assert 6.0 == signals.increase([by["error"]], T0, T0 + 15)
    assert {"service"} == {one.labels["job"] for one in found}


def test_milliseconds_become_seconds_in_bounds_and_sums_and_never_in_counts() -> None:
    """A bucket's bound is scaled, what it counts is not."""

    def answers(query: str) -> list[dict[str, Any]]:
        target = {"job": "shop", "instance": "a"}
        if "milliseconds_bucket" in query:
            return [series(target | {"le": bound}, [0, 30]) for bound in ("5.0", "250", "+Inf")]
        if "milliseconds_sum" in query:
            return [series(target, [0, 3000])]
        return [series(target, [0, 30])] if "milliseconds_count" in query else []

    queries = ("model_latency_seconds_bucket", "model_latency_seconds_sum", "model_latency_seconds_count")
    found = played(answers, "opentelemetry-fastapi-old").collect(queries, T0, T0 + 5)

    assert {"0.005", "0.25", "+Inf"} == {one.labels["le"] for one in found[queries[0]]}
    assert {30.0} == {float(one.values[-1]) for one in found[queries[0]]}
    assert [3.0] == [float(one.values[-1]) for one in found[queries[1]]]
    assert [30.0] == [float(one.values[-1]) for one in found[queries[2]]]
    assert {"unknown"} == {one.labels["input_bucket"] for one in found[queries[0]]}


def test_the_job_is_found_when_only_one_has_the_metrics() -> None:
    """Nobody has to know how the scrape job is called."""
    asked = []

    def answers(query: str) -> list[dict[str, Any]]:
        asked.append(query)
        return [series({"job": "shop"}, [1.0])] if query.startswith("count by (job)") else []

    played(answers, "triton", job=None).collect((signals.REQUESTS,), T0, T0 + 5)

    assert any('nv_inference_request_success{job="shop"}' in query for query in asked)


@pytest.mark.parametrize(
    ("jobs", "said"), [([], "is triton the right mapping"), (["a", "b"], r"several jobs have .* \(a, b\): say which")]
)
def test_a_job_that_is_not_clear_is_asked_for(jobs: list[str], said: str) -> None:
    """No metrics at all, or those of several jobs: a guess would be another service's incident."""
    source = played(lambda _query: [series({"job": job}, [1.0]) for job in jobs], "triton", job=None)

    with pytest.raises(SourceMissingError, match=said):
        source.collect((signals.REQUESTS,), T0, T0 + 5)


def test_a_name_of_a_job_cannot_change_the_query() -> None:
    """What is given on the command line is quoted."""
    asked = []

    def answers(query: str) -> list[dict[str, Any]]:
        asked.append(query)
        return []

    played(answers, "triton", job='x"} or vector(1) #').collect((signals.REQUESTS,), T0, T0 + 5)

    assert any(r'job="x\"} or vector(1) #"' in query for query in asked)


def triton(until: float, slow: float, failing: float) -> Answers:
    """Play a Triton with 10 requests/s and 5 ms each; from 120 s on slower by a factor, and failing at a rate."""
    times = np.arange(0.0, until + 1, 5.0)
    broken = np.maximum(times - 120.0, 0.0)
    target = {"job": "shop", "instance": "a"}
    success = 10.0 * times
    busy = 0.005 * (success + 10.0 * broken * (slow - 1.0))
    table = {
        "nv_inference_request_success": success,
        "nv_inference_request_failure": failing * broken,
        "nv_inference_request_duration_us": 1.2e6 * busy,
        "nv_inference_compute_infer_duration_us": 1e6 * busy,
        "nv_inference_queue_duration_us": 0.1e6 * busy,
        "up{": np.ones(len(times)),
    }

    def answers(query: str) -> list[dict[str, Any]]:
        if query == "count(up)":
            return [series({}, [1.0] * len(times))]
        return next((series_of for name, series_of in found.items() if name in query), [])

    found = {name: [series(target, values.tolist())] for name, values in table.items()}
    return answers


def ask(answers: Answers) -> dict[str, Any]:
    """Triage a played Triton at 180 s."""
    source = played(answers, "triton")
    sources = Sources(source, None, source.mapping)
    return triage(sources, at=T0 + 180.0, window=180.0, clock=lambda: T0 + 181.0)


def test_a_triton_alone_tells_failures_and_mean_times_by_stage() -> None:
    """Triton has no histogram and no rows: what it can tell is told, and what it cannot is listed."""
    result = ask(triton(180.0, slow=20.0, failing=5.0))

    told = {one["symptom"]: one for one in result["symptoms"]}
    assert {"error_rate", "latency"} == set(told)
    assert pytest.approx(1 / 3, abs=0.02) == told["error_rate"]["now"]
    assert "mean of triton.request" in told["latency"]["text"]
    assert pytest.approx(0.12, rel=0.05) == told["latency"]["now"]
    assert (True, ["ring"]) == (result["abstained"], result["missing_sources"])
    assert "model_latency_seconds: the mapping triton names nothing for it" in result["cannot_be_told"]
    assert "model_latency_seconds" in result["mapping"]["absent"]
    assert "model_requests_total" in result["mapping"]["found"]


def test_a_healthy_triton_shows_no_symptom() -> None:
    """Nothing moves: nothing is told, and nothing is named."""
    result = ask(triton(180.0, slow=1.0, failing=0.0))

    assert ([], True) == (result["symptoms"], result["abstained"])
