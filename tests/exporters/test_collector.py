from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Exemplars, Snapshot, families, registry_of
from exporters.follow import Follower
from exporters.gauges import service_gauges
from exporters.names import METRICS
from exporters.state import State
from exporters.totals import Totals

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

GOLDEN = Path(__file__).parent.parent / "golden" / "exporter.prom"
SECOND = 1_000_000_000


def openmetrics_of(registry: CollectorRegistry) -> bytes:
    """The exposition that a scraper gets who accepts OpenMetrics."""
    encode, content_type = choose_encoder("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    return bytes(encode(registry))


def snapshot_of(ring_dir: Path, fly: Callable[..., Flight]) -> Snapshot:
    """What a small, fixed flight comes to."""
    flight, gone = fly(), fly()
    now = 1_700_000_100 * SECOND
    flight.row(
        duration_ns=250_000_000, stages={"scheduler.dispatch": (5_000, 4_000_000), "model.forward": (9_000, 60_000)}
    )
    flight.row(duration_ns=900_000_000, input_length=300, label="negative", confidence=0.97)
    flight.row(outcome=1, http_status=422, reason="too_long", confidence=float("nan"), label="", tokens=-1)
    flight.row(outcome=2, http_status=500, error_type="ValueError", confidence=float("nan"), label="")
    flight.row(outcome=3, reason="deadline", route='/odd "route"\\\n', confidence=0.5, label="unheard")
    flight.status(
        written_unix_ns=now - SECOND,
        loop_tick_age_s=0.01,
        loop_lag={"bounds": [0.001, 0.1, 1.0], "counts": [90, 5, 2, 0], "sum_s": 0.8},
        loop_blocked_s=0.5,
        gc={"2": {"pause": {"bounds": [0.01], "counts": [3, 1], "sum_s": 0.05}}},
        cpu_s=3.5,
        rss_bytes=64 << 20,
        threads=4,
        fds=12,
        fd_limit=1024,
        phases={"import": 1.5, "loading_model": 0.75},
        loss={"commit": 1},
        open_overflow=2,
        probe_failures={"gc": 1},
    )
    gone.begin(stage="model.forward")
    gone.die()
    follower = Follower(ring_dir, State(), without_state=False)
    follower.tick()
    exemplars = Exemplars()
    exemplars.add("short", 0.25, "00000000000000000000000000000abc", 1_700_000_000.25)
    gauges = service_gauges(follower.followed.values(), 1, now)
    follower.close()
    return Snapshot(follower.state.totals, gauges, exemplars)


def test_the_exposition_is_the_golden_one(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Byte for byte; INFERDECK_UPDATE_GOLDEN=1 writes it anew, to be read as a diff."""
    snapshot = snapshot_of(ring_dir, fly)
    text = generate_latest(registry_of(lambda: families(snapshot)))
    if os.environ.get("INFERDECK_UPDATE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_bytes(text)
    assert GOLDEN.read_bytes().decode() == text.decode()


def test_both_formats_are_read_back_by_the_official_parsers(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Text and OpenMetrics parse, and hold the same values."""
    snapshot = snapshot_of(ring_dir, fly)
    registry = registry_of(lambda: families(snapshot))
    text = list(text_string_to_metric_families(generate_latest(registry).decode()))
    openmetrics = list(
        parse_openmetrics(  # type: ignore[no-untyped-call]
            openmetrics_of(registry).decode()
        )
    )
    values = [
        {(s.name, tuple(sorted(s.labels.items()))): s.value for family in found for s in family.samples}
        for found in (text, openmetrics)
    ]
    assert values[0] == values[1]
    assert values[0]["model_refused_total", (("reason", "too_long"),)] == 1.0


def test_every_sample_is_of_a_named_metric_with_its_labels(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Nothing is shown that names.py does not know, and no label beyond those it lists."""
    for family in families(snapshot_of(ring_dir, fly)):
        metric = METRICS[family.name + "_total" if family.type == "counter" else family.name]
        assert metric.kind == family.type
        for sample in family.samples:
            assert set(metric.labels) == set(sample.labels) - {"le"}


def test_the_series_count_is_true(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """`telemetry_series` counts every sample line, its own too."""
    snapshot = snapshot_of(ring_dir, fly)
    lines = generate_latest(registry_of(lambda: families(snapshot))).decode().split("\n")
    shown = [line for line in lines if line and not line.startswith("#")]
    told = next(line for line in shown if line.startswith("telemetry_series "))
    assert float(told.split()[1]) == len(shown)


def test_exemplars_point_at_their_own_bucket() -> None:
    """Only in OpenMetrics, only on the latency histogram, and within the bucket's bounds."""
    snapshot = Snapshot(Totals.at_zero(), {}, Exemplars())
    for seconds in (0.3, 0.31, 99.0):
        snapshot.exemplars.add("short", seconds, f"{int(seconds * 100):032x}", 1.5)
    registry = registry_of(lambda: families(snapshot))
    assert b"trace_id" not in generate_latest(registry)
    found = {
        sample.labels["le"]: sample.exemplar
        for family in parse_openmetrics(  # type: ignore[no-untyped-call]
            openmetrics_of(registry).decode()
        )
        for sample in family.samples
        if sample.exemplar
    }
    assert {le: exemplar.value for le, exemplar in found.items()} == {"0.3": 0.3, "0.42": 0.31, "+Inf": 99.0}


def test_a_fresh_exporter_shows_zeros() -> None:
    """Before any row, every closed label set is there at 0, so that a first error is a rise."""
    text = generate_latest(registry_of(lambda: families(Snapshot(Totals.at_zero(), {})))).decode()
    assert 'model_refused_total{reason="schema"} 0.0' in text
    assert 'model_latency_seconds_count{input_bucket="long"} 0.0' in text
    assert 'model_unfinished_requests_total{stage="(none)"} 0.0' in text
    assert 'telemetry_rows_lost_total{reason="torn"} 0.0' in text
