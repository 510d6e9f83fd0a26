"""`inferdeck bench serve`: requests a second and times of the real service, and what its instruments cost it.

Services on the same model stay up, with and without the recorder; windows go off, on, off, off (A/A), off, and with
1 ms of work in front: off, on, off. Exporters read the recorded ones and share the cores with all, as on a small
machine. The bodies are real reviews.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from inferdeck.bench.bodies import write_bodies
from inferdeck.bench.children import Child
from inferdeck.bench.counters import metric_page, sum_samples
from inferdeck.bench.cpu import busy_seconds, process_seconds, total_seconds
from inferdeck.bench.exporter import run_exporter
from inferdeck.bench.knee import find_knee, measure_knee_steps
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.queues import measure_queues
from inferdeck.bench.real_service import model_or_raise, run_service
from inferdeck.bench.serve_result import Served, shape_serve
from inferdeck.bench.triton_bare import Bare, measure_bare_ratio
from inferdeck.bench.triton_batches import measure_batching_gain, running_triton
from inferdeck.bench.windows import Window
from inferdeck.bench.work import BYTES_VARIABLE, bytes_for
from inferdeck.bench.wrk_install import ensure_wrk

__all__ = ["run_serve"]

CONNECTIONS: Final = 16
MANY: Final = 100
WORK_SECONDS: Final = 0.001
# Each round: a window, and its neighbours without the recorder; the second line does a millisecond of work beside.
ROUND: Final = ("off", "on", "off", "off_aa", "off")
ROUND_WORK: Final = ("work_off", "work_on", "work_off")
# degraded answers are 200 to the load generator; the exporter tells them, and all that is not "ok" is an error here
NOT_OK: Final = ("refused", "error", "degraded", "disconnected")


@dataclass
class _Rig:
    """The processes of a run.

    Attributes:
        wrk: The load generator.
        bodies: File of JSON bodies.
        services: By name, as in `ROUND` and `ROUND_WORK`.
        exporters: By the name of the service whose rows they read.
    """

    wrk: Path
    bodies: Path
    services: dict[str, Child] = field(default_factory=dict)
    exporters: dict[str, Child] = field(default_factory=dict)

    def load(self, name: str, seconds: float, connections: int = CONNECTIONS) -> tuple[Window, Load]:
        """Run one window of load on one service."""
        service, exporter = self.services[name], self.exporters.get(name)
        started, own, busy = time.monotonic(), self._own_seconds(), busy_seconds()
        cpu, exporter_cpu = process_seconds(service.pid), process_seconds(exporter.pid) if exporter else 0.0
        load = run_wrk(self.wrk, service.url, seconds, connections, self.bodies)
        cpu = process_seconds(service.pid) - cpu
        busy, own, took = busy_seconds() - busy, self._own_seconds() - own, time.monotonic() - started
        exporter_cpu = process_seconds(exporter.pid) - exporter_cpu if exporter else 0.0
        per_request = 1e6 / max(load.answered, 1)
        window = Window(
            variant=name,
            requests=load.answered,
            rps=load.rps,
            cpu_us=cpu * per_request,
            foreign_cores=max(0.0, busy - own) / took,
            p99_s=load.p99_s,
            exporter_us=exporter_cpu * per_request if exporter else None,
        )
        return window, load

    def not_ok(self) -> int:
        """Return how many requests ended otherwise than ok, of the recorded service without added work."""
        page = metric_page(self.exporters["on"].url)
        return int(sum(sum_samples(page, "model_requests_total", {"outcome": outcome}) for outcome in NOT_OK))

    def _own_seconds(self) -> float:
        """Return the CPU seconds of all that is ours: this process, the rig, and every wrk that has ended."""
        children = [*self.services.values(), *self.exporters.values()]
        for child in children:
            child.alive_or_raise()
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + ended.ru_utime + ended.ru_stime + total_seconds(child.pid for child in children)


def run_serve(model: Path, rounds: int, seconds: float, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Measure the onnx backend.

    Args:
        model: The model's folder.
        rounds: Each has a window of every kind.
        seconds: Length of a window.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If wrk, the model or a process is missing.
    """
    wrk, model = ensure_wrk(), model_or_raise(model.absolute())
    shm = Path("/dev/shm")  # noqa: S108  # the folder below it is made 0700 by tempfile
    with (
        tempfile.TemporaryDirectory(prefix="inferdeck-bench-", dir=shm if shm.is_dir() else None) as scratch,
        ExitStack() as stack,
    ):
        folder = Path(scratch)
        rig = _Rig(wrk, write_bodies(folder / "bodies.jsonl"))
        work = {
            BYTES_VARIABLE: str(bytes_for(WORK_SECONDS)),
            "INFERDECK_SERVICE_MIDDLEWARE": json.dumps(["inferdeck.bench.work:add_work"]),
        }
        for name in dict.fromkeys((*ROUND, *ROUND_WORK)):
            recorder, settings = name.endswith("on"), work if name in ROUND_WORK else None
            service = run_service(name, folder, model, recorder=recorder, settings=settings)
            rig.services[name] = stack.enter_context(service)[0]
            if recorder:
                exporter = run_exporter(f"exporter-{name}", folder / name, folder, None, 0.01)
                rig.exporters[name] = stack.enter_context(exporter)
        served = _measure(rig, rounds, seconds, progress)
        stack.close()  # so that nothing idle shares the cores with what follows
        queues = measure_queues(
            wrk,
            folder,
            model,
            rig.bodies,
            rounds=rounds,
            seconds=seconds,
            progress=lambda what: progress(what, 1.0),
        )
        gain, bare = _through_triton(rig, folder, model, rounds=rounds, seconds=seconds, progress=progress)
        steps = measure_knee_steps(wrk, folder, model, rig.bodies, progress=lambda what, _share: progress(what, 1.0))
        return shape_serve(served, queues, gain, find_knee(steps).rps, bare)


def _through_triton(
    rig: _Rig, folder: Path, model: Path, *, rounds: int, seconds: float, progress: Callable[[str, float], None]
) -> tuple[float | None, Bare | None]:
    """Return the gain of batches and the loads beside a bare app; None and None without Triton's environment."""
    with running_triton(model, folder) as port:
        if port is None:
            return None, None
        progress("calls of eight to Triton", 1.0)
        gain = measure_batching_gain(port, rounds, seconds)
        progress("through Triton, beside a bare app", 1.0)
        bare = measure_bare_ratio(rig.wrk, folder, model, rig.bodies, port, rounds=rounds, seconds=seconds)
    return gain, bare


def _measure(rig: _Rig, rounds: int, seconds: float, progress: Callable[[str, float], None]) -> Served:
    order = [*ROUND, *ROUND_WORK]
    total = len(rig.services) + rounds * len(order) + 1
    for at, name in enumerate(rig.services):
        progress(f"warming up, {name}", at / total)
        rig.load(name, 1.0)
    before = rig.not_ok()
    found: list[list[tuple[Window, Load]]] = []
    for number in range(rounds):
        windows = []
        for at, name in enumerate(order):
            progress(f"round {number + 1} of {rounds}: {name}", (len(rig.services) + number * len(order) + at) / total)
            windows.append(rig.load(name, seconds))
        found.append(windows)
    between = rig.not_ok()
    progress(f"{MANY} clients at once", (total - 1) / total)
    many = rig.load("on", seconds, MANY)[1]
    return Served(found, between - before, many, rig.not_ok() - between, CONNECTIONS)
