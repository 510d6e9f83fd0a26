"""`inferdeck bench serve`: requests a second and times of the real service, and what its instruments cost it.

Two services on the same model stay up, one without the recorder; windows go off, on, off, on, off. The exporter reads
the recorded one and shares the cores with all, as it does on a small machine. The bodies are real reviews.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.bench.children import Child
from inferdeck.bench.counters import metric_page, sum_samples
from inferdeck.bench.exporter import run_exporter
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.machine import describe, versions
from inferdeck.bench.real_service import model_or_raise, run_service
from inferdeck.bench.windows import Window, pair_up, quartiles
from inferdeck.bench.wrk_install import ensure_wrk
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RATIO_MIN", "Served", "draw_serve", "run_serve", "shape_serve"]

RATIO_MIN = 0.90  # issue 3, item 2: instruments on / off, the exporter shares the cores
CONNECTIONS = 16
MANY = 100
REVIEWS = 512
# degraded answers are 200 to the load generator; the exporter tells them, and all that is not "ok" is an error here
NOT_OK = ("refused", "error", "degraded", "disconnected")


@dataclass(frozen=True)
class Served:
    """What was measured.

    Attributes:
        rounds: Windows in order of time, each "off" or "on" with its load.
        not_ok: Requests of the "on" windows that ended otherwise than ok, by our exporter's counters.
        many: The window with 100 connections.
        many_not_ok: As not_ok, of that window.
    """

    rounds: list[tuple[str, Load]]
    not_ok: int
    many: Load
    many_not_ok: int


def run_serve(model: Path, rounds: int, seconds: float, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Measure the onnx backend.

    Args:
        model: The model's folder.
        rounds: Windows with instruments on; one more with them off.
        seconds: Length of a window.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If wrk, the model or a process is missing.
    """
    wrk, model = ensure_wrk(), model_or_raise(model.absolute())
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as scratch:
        folder = Path(scratch)
        with (
            run_service("off", folder, model, recorder=False) as (off, _),
            run_service("on", folder, model, recorder=True) as (on, _),
            run_exporter("exporter", folder / "on", folder, None, 0.01) as exporter,
        ):
            bodies = _write_bodies(folder / "bodies.jsonl")

            def load(name: str, connections: int, length: float = seconds) -> Load:
                return run_wrk(wrk, {"off": off, "on": on}[name].url, length, connections, bodies)

            return shape_serve(_measure(load, exporter, rounds, progress))


def _write_bodies(target: Path) -> Path:
    """Write real reviews, cleaned as for the demo's traffic, as bodies that pass the contract."""
    from service.text.contract import to_contract

    try:
        from service.training.corpus import review_texts

        texts = [text for text in map(to_contract, review_texts(REVIEWS, 1)) if text]
    except ImportError as error:
        raise CannotRun(f"no reviews to send ({error.name} is missing)", "pip install 'inferdeck[train]'") from error
    lines = [json.dumps({"text": text, "product_id": "AB12345678"}, ensure_ascii=False) for text in texts]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def _measure(load: Callable[..., Load], exporter: Child, rounds: int, progress: Callable[[str, float], None]) -> Served:
    order = ["off", *["on", "off"] * rounds]
    total = len(order) + 3
    for at, name in enumerate(("off", "on")):
        progress(f"warming up, recorder {name}", at / total)
        load(name, CONNECTIONS, 1.0)
    before = _not_ok(exporter)
    found = []
    for at, name in enumerate(order):
        progress(f"recorder {name}", (at + 2) / total)
        found.append((name, load(name, CONNECTIONS)))
    between = _not_ok(exporter)
    progress(f"{MANY} clients at once", (total - 1) / total)
    many = load("on", MANY)
    return Served(found, between - before, many, _not_ok(exporter) - between)


def _not_ok(exporter: Child) -> int:
    page = metric_page(exporter.url)
    return int(sum(sum_samples(page, "model_requests_total", {"outcome": outcome}) for outcome in NOT_OK))


def shape_serve(served: Served) -> dict[str, Any]:
    """Return the result; what needs Triton is null until there is one."""
    on = [load for name, load in served.rounds if name == "on"]
    ratios = _ratios(served.rounds)
    ratio = statistics.median(ratios)
    # requests in flight when a window ends are cut off by the load generator: no failure of the service
    errors = sum(load.refused + load.broken for load in on) + max(0, served.not_ok - _in_flight(on))
    failures = served.many.refused + served.many.broken + max(0, served.many_not_ok - _in_flight([served.many]))
    onnx = {
        "rps": round(statistics.median(load.rps for load in on), 1),
        "p50_s": statistics.median(load.p50_s for load in on),
        "p95_s": statistics.median(load.p95_s for load in on),
        "p99_s": statistics.median(load.p99_s for load in on),
        "errors": errors,
        "uninstrumented_ratio": round(ratio, 4),
        "uninstrumented_ratio_quartiles": [round(value, 4) for value in quartiles(ratios)],
    }
    return {
        "backends": {"onnx": onnx, "triton": {"bare_ratio": None}},
        "vip_p99_s": None,
        "batching_gain": None,
        "clients_100_failures": failures,
        "knee_rps": None,
        "connections": CONNECTIONS,
        "rounds": len(on),
        "gate": {"uninstrumented_ratio_min": RATIO_MIN, "passed": ratio >= RATIO_MIN and not errors and not failures},
        "machine": describe(),
        "versions": versions(),
    }


def _ratios(rounds: list[tuple[str, Load]]) -> list[float]:
    windows = [Window(name, load.answered, load.rps, 0.0) for name, load in rounds]
    return [pair.rps_ratio for pair in pair_up(windows, "off")]


def _in_flight(loads: list[Load]) -> int:
    return sum(load.sent - load.answered for load in loads)


def draw_serve(result: dict[str, Any], console: Console) -> None:
    """Print the result in a few lines."""
    onnx, gate = result["backends"]["onnx"], result["gate"]
    low, high = onnx["uninstrumented_ratio_quartiles"]
    console.print(
        f"onnx: {onnx['rps']:.0f} requests/s at {result['connections']} connections; p50 {onnx['p50_s'] * 1e3:.1f} ms, "
        f"p95 {onnx['p95_s'] * 1e3:.1f} ms, p99 {onnx['p99_s'] * 1e3:.1f} ms; {onnx['errors']} errors"
    )
    console.print(
        f"instruments on / off: {onnx['uninstrumented_ratio']:.3f} of the requests/s "
        f"(quartiles {low:.3f} .. {high:.3f}, {result['rounds']} rounds); "
        f"100 clients: {result['clients_100_failures']} failures"
    )
    word = "met" if gate["passed"] else "MISSED"
    console.print(f"gate {word}: at least {gate['uninstrumented_ratio_min']:.2f}, no error, no failure")
    console.print("not measured yet: triton, vip_p99_s, batching_gain, knee_rps")
