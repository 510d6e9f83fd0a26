"""How long VIPs wait while the normal queue is full, and what batches in process gain: more figures of `bench serve`.

The normal queue is filled by more connections than it has places, so that it refuses as well; how deep it was is read
from the exporter, not assumed. Batching is the real service with its switch on, between windows with it off.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from exporters.rows import load_rows
from inferdeck.bench.children import Child
from inferdeck.bench.counters import metric_page, sum_samples
from inferdeck.bench.exporter import run_exporter
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.real_service import run_service
from inferdeck.errors import CannotRun

__all__ = ["BATCHED_CONNECTIONS", "NORMAL_CONNECTIONS", "QueueFigures", "measure_queues", "shape_queues"]

VIP_PREFIX: Final = "VI"
VIP_CONNECTIONS: Final = 2
PLACES: Final = 64
NORMAL_CONNECTIONS: Final = 72
BATCHED_CONNECTIONS: Final = 32
BATCHED_ROUND: Final = ("direct", "batched", "direct")


@dataclass(frozen=True)
class QueueFigures:
    """What was measured.

    Attributes:
        vip: The load of VIPs beside a full normal queue.
        normal: That normal load.
        depth: Requests that waited in the normal queue when one came, on average.
        waits: Queue -> P99 of the wait for a thread and of the whole request inside the service, seconds, from rows.
        batched: Requests a second of each round: direct, batched, direct.
    """

    vip: Load
    normal: Load
    depth: float
    waits: Mapping[str, tuple[float, float]]
    batched: list[tuple[float, float, float]]


def measure_queues(
    wrk: Path,
    folder: Path,
    model: Path,
    bodies: Path,
    *,
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> QueueFigures:
    """Measure both.

    Args:
        wrk: The load generator.
        folder: For logs, rows and bodies.
        model: The model's folder.
        bodies: File of JSON bodies.
        rounds: Of direct, batched, direct.
        seconds: Length of a window.
        progress: Told what is done.

    Raises:
        CannotRun: If a process does not run.
    """
    progress("VIPs beside a full queue")
    vip, normal, depth, waits = _vip(wrk, folder, model, bodies, seconds)
    with ExitStack() as stack:
        services: dict[str, Child] = {}
        for name in dict.fromkeys(BATCHED_ROUND):
            told = {"INFERDECK_SERVICE_SCHEDULER_BATCHING": str(name == "batched").lower()}
            running = run_service(f"queues-{name}", folder, model, recorder=True, settings=told)
            services[name] = stack.enter_context(running)[0]
            run_wrk(wrk, services[name].url, 1.0, BATCHED_CONNECTIONS, bodies)
        found = []
        for number in range(rounds):
            progress(f"batches in process, round {number + 1} of {rounds}")
            loads = [run_wrk(wrk, services[name].url, seconds, BATCHED_CONNECTIONS, bodies) for name in BATCHED_ROUND]
            found.append((loads[0].rps, loads[1].rps, loads[2].rps))
    return QueueFigures(vip, normal, depth, waits, found)


def _vip(
    wrk: Path, folder: Path, model: Path, bodies: Path, seconds: float
) -> tuple[Load, Load, float, dict[str, tuple[float, float]]]:
    vips = folder / "vip-bodies.jsonl"
    lines = bodies.read_text(encoding="utf-8").splitlines()
    named = (json.loads(line) | {"product_id": f"{VIP_PREFIX}12345678"} for line in lines)
    vips.write_text("".join(json.dumps(body, ensure_ascii=False) + "\n" for body in named), encoding="utf-8")
    told = {
        "INFERDECK_SERVICE_VIP_PRODUCT_PREFIXES": VIP_PREFIX,
        "INFERDECK_SERVICE_QUEUE_PLACES": str(PLACES),
    }
    with ExitStack() as stack:
        service = stack.enter_context(run_service("queues-vip", folder, model, recorder=True, settings=told))[0]
        exporter = stack.enter_context(run_exporter("exporter-queues", folder / "queues-vip", folder, None, 0.01))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        # Longer than the VIPs' window, which lies inside.
        flood = pool.submit(run_wrk, wrk, service.url, seconds + 1.0, NORMAL_CONNECTIONS, bodies)
        vip = run_wrk(wrk, service.url, seconds, VIP_CONNECTIONS, vips)
        normal = flood.result()
        page = metric_page(exporter.url)
    count, total = (
        sum_samples(page, f"model_queue_depth_requests_{part}", {"queue": "normal"}) for part in ("count", "sum")
    )
    return vip, normal, total / max(count, 1.0), _waits(folder / "queues-vip")


def _waits(rows: Path) -> dict[str, tuple[float, float]]:
    """Return by queue the P99 of wait and duration; the load generator's own times hold its wait for a core as well."""
    table = load_rows(rows)
    waited, took = table.numbers("scheduler.dispatch/queue_wait_ns"), table.numbers("duration_ns")
    found = {}
    for queue in ("vip", "normal"):
        chosen = (table["scheduler.dispatch/queue"] == queue) & (waited >= 0)
        if not chosen.any():
            raise CannotRun(f"no request of the {queue} queue was answered", "run it again with a longer --seconds")
        found[queue] = float(np.percentile(waited[chosen], 99) / 1e9), float(np.percentile(took[chosen], 99) / 1e9)
    return found


def shape_queues(figures: QueueFigures) -> tuple[float, dict[str, Any]]:
    """Return the P99 of VIPs in seconds, and the rest as `queues`."""
    gains = [batched / ((before + after) / 2) for before, batched, after in figures.batched]
    return figures.vip.p99_s, {
        "vip_p50_s": figures.vip.p50_s,
        "vip_refused": figures.vip.refused,
        "vip_wait_p99_s": figures.waits["vip"][0],
        "vip_inside_p99_s": figures.waits["vip"][1],
        "normal_wait_p99_s": figures.waits["normal"][0],
        "normal_p99_s": figures.normal.p99_s,
        "normal_refused": figures.normal.refused,
        "normal_answered": figures.normal.answered,
        "normal_depth": round(figures.depth, 1),
        "normal_connections": NORMAL_CONNECTIONS,
        "batching_in_process_gain": round(statistics.median(gains), 3),
        "batching_connections": BATCHED_CONNECTIONS,
    }
