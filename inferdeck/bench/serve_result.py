"""Judges a run of `bench serve` and gives it the shape of its schema."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from inferdeck.bench.load import Load
from inferdeck.bench.machine import describe, versions
from inferdeck.bench.queues import QueueFigures, shape_queues
from inferdeck.bench.triton_bare import CLIENTS, Bare, shape_bare
from inferdeck.bench.triton_bare import RATIO_MIN as TRITON_RATIO_MIN
from inferdeck.bench.windows import Summary, Window, pair_up, summarise

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RATIO_MIN", "RATIO_WORK_MIN", "Served", "draw_serve", "shape_serve"]

# issue 3, item 2: instruments on / off, the exporter shares the cores; and the same with 1 ms of work
RATIO_MIN: Final = 0.90
RATIO_WORK_MIN: Final = 0.98
BASES: Final = ("off", "work_off")


@dataclass(frozen=True)
class Served:
    """What was measured.

    Attributes:
        rounds: Windows of each round in order of time, each with its load.
        not_ok: Requests of the "on" windows that ended otherwise than ok, by our exporter's counters.
        many: The window with 100 connections.
        many_not_ok: As not_ok, of that window.
        connections: Requests in flight at any time, in all other windows.
    """

    rounds: Sequence[Sequence[tuple[Window, Load]]]
    not_ok: int
    many: Load
    many_not_ok: int
    connections: int


def shape_serve(
    served: Served,
    queues: QueueFigures | None = None,
    batching_gain: float | None = None,
    knee_rps: float | None = None,
    bare: Bare | None = None,
) -> dict[str, Any]:
    """Return the result; what was not measured, or needs Triton, is null."""
    vip_p99_s, more = shape_queues(queues) if queues is not None else (None, None)
    on = [load for windows in served.rounds for window, load in windows if window.variant == "on"]
    summaries = _summaries(served)
    plain, work, again = summaries["on"], summaries["work_on"], summaries["off_aa"]
    # requests in flight when a window ends are cut off by the load generator: no failure of the service
    errors = sum(load.refused + load.broken for load in on) + max(0, served.not_ok - _in_flight(on))
    failures = served.many.refused + served.many.broken + max(0, served.many_not_ok - _in_flight([served.many]))
    onnx = {
        "rps": round(statistics.median(load.rps for load in on), 1),
        "p50_s": statistics.median(load.p50_s for load in on),
        "p95_s": statistics.median(load.p95_s for load in on),
        "p99_s": statistics.median(load.p99_s for load in on),
        "errors": errors,
        "uninstrumented_ratio": round(plain.rps_ratio, 4),
        "uninstrumented_ratio_quartiles": [round(value, 4) for value in plain.rps_ratio_quartiles],
        "uninstrumented_ratio_1ms": round(work.rps_ratio, 4),
        "uninstrumented_ratio_1ms_quartiles": [round(value, 4) for value in work.rps_ratio_quartiles],
        "aa_ratio": round(again.rps_ratio, 4),
        "cpu_us": round(plain.cpu_us, 1),
        "added_us": round(plain.added_us, 1),
        "added_us_quartiles": [round(value, 1) for value in plain.added_us_quartiles],
        "aa_us": round(again.added_us, 1),
        "exporter_us": None if plain.exporter_us is None else round(plain.exporter_us, 2),
    }
    triton = shape_bare(bare)
    if bare is not None:
        failures += triton["clients_100_failures"]
    passed = plain.rps_ratio >= RATIO_MIN and work.rps_ratio >= RATIO_WORK_MIN and not errors and not failures
    passed = passed and (bare is None or (triton["bare_ratio"] >= TRITON_RATIO_MIN and not triton["errors"]))
    return {
        "backends": {"onnx": onnx, "triton": triton},
        "vip_p99_s": vip_p99_s,
        "queues": more,
        "batching_gain": batching_gain,
        "clients_100_failures": failures,
        "knee_rps": None if knee_rps is None else round(knee_rps, 1),
        "connections": served.connections,
        "rounds": len(served.rounds),
        "noisy": any(summary.noisy for summary in summaries.values()),
        "gate": {
            "uninstrumented_ratio_min": RATIO_MIN,
            "uninstrumented_ratio_1ms_min": RATIO_WORK_MIN,
            "passed": passed,
        },
        "machine": describe(),
        "versions": versions(),
    }


def _summaries(served: Served) -> dict[str, Summary]:
    """Return each kind of window against the ones beside it without the recorder."""
    pairs = []
    for windows in served.rounds:
        for base in BASES:
            side = [window for window, _ in windows if window.variant.startswith("work") == base.startswith("work")]
            pairs += pair_up(side, base)
    names = {pair.window.variant for pair in pairs}
    return {name: summarise(pair for pair in pairs if pair.window.variant == name) for name in names}


def _in_flight(loads: Sequence[Load]) -> int:
    return sum(load.sent - load.answered for load in loads)


def draw_serve(result: dict[str, Any], console: Console) -> None:
    """Print the result in a few lines."""
    onnx, gate = result["backends"]["onnx"], result["gate"]
    low, high = onnx["uninstrumented_ratio_quartiles"]
    low_work, high_work = onnx["uninstrumented_ratio_1ms_quartiles"]
    console.print(
        f"onnx: {onnx['rps']:.0f} requests/s at {result['connections']} connections; p50 {onnx['p50_s'] * 1e3:.1f} ms, "
        f"p95 {onnx['p95_s'] * 1e3:.1f} ms, p99 {onnx['p99_s'] * 1e3:.1f} ms; {onnx['errors']} errors"
    )
    console.print(
        f"instruments on / off: {onnx['uninstrumented_ratio']:.3f} of the requests/s "
        f"(quartiles {low:.3f} .. {high:.3f}, {result['rounds']} rounds); off / off: {onnx['aa_ratio']:.3f}"
    )
    console.print(
        f"the same with 1 ms of work: {onnx['uninstrumented_ratio_1ms']:.3f} "
        f"(quartiles {low_work:.3f} .. {high_work:.3f})"
    )
    console.print(
        f"CPU per request: {onnx['cpu_us']:.0f} us, of which instruments {onnx['added_us']:.0f} us "
        f"(off against off: {onnx['aa_us']:.0f} us); the exporter, a process of its own: {onnx['exporter_us']:.1f} us"
    )
    console.print(f"100 clients: {result['clients_100_failures']} failures")
    if result["noisy"]:
        console.print("other work disturbed this run: few windows were quiet, and all were used")
    word = "met" if gate["passed"] else "MISSED"
    console.print(
        f"gate {word}: at least {gate['uninstrumented_ratio_min']:.2f}, with 1 ms of work "
        f"{gate['uninstrumented_ratio_1ms_min']:.2f}, no error, no failure"
    )
    if (queues := result["queues"]) is not None:
        console.print(
            f"VIPs beside a normal queue {queues['normal_depth']:.0f} deep: p99 {result['vip_p99_s'] * 1e3:.0f} ms "
            f"(normal {queues['normal_p99_s'] * 1e3:.0f} ms, {queues['normal_refused']} told to come back); wait for a "
            f"thread p99 {queues['vip_wait_p99_s'] * 1e3:.0f} ms (normal {queues['normal_wait_p99_s'] * 1e3:.0f} ms)"
        )
        console.print(f"batches in process: {queues['batching_in_process_gain']:.2f} of the requests/s without")
    if result["batching_gain"] is None:
        console.print("calls of eight to Triton: not measured, `inferdeck triton install` makes its environment")
    else:
        console.print(f"calls of eight to Triton: {result['batching_gain']:.1f} times the texts/s of single calls")
    if result["knee_rps"] is not None:
        console.print(f"knee: {result['knee_rps']:.0f} requests/s (inferdeck bench knee tells more)")
    _draw_triton(result["backends"]["triton"], console)


def _draw_triton(triton: Mapping[str, Any], console: Console) -> None:
    if triton["bare_ratio"] is None:
        console.print("through Triton: not measured, `inferdeck triton install` makes its environment")
        return
    console.print(
        f"through Triton at {CLIENTS} connections: {triton['rps']:.0f} requests/s (p95 {triton['p95_s'] * 1e3:.0f} ms, "
        f"{triton['errors']} errors), {triton['bare_ratio']:.3f} of a bare FastAPI + tritonclient app (at least "
        f"{TRITON_RATIO_MIN:.2f}); 100 clients: {triton['clients_100_failures']} failures"
    )
