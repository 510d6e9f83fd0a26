"""The rig of the overhead bench: servers, exporters and sink as processes that stay up; one window at a time."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from inferdeck.bench.children import Child, spawn, wait_for_port
from inferdeck.bench.counters import exporter_counts, peer_counts
from inferdeck.bench.cpu import busy_seconds, process_seconds, total_seconds
from inferdeck.bench.exporter import run_exporter
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.proofs import Evidence, share_bounds
from inferdeck.bench.row_check import RowCheck, check_rows, head, newest_rows
from inferdeck.bench.variants import VARIANTS, Variant
from inferdeck.bench.windows import Window
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get, get_json

__all__ = ["Measured", "Rig", "open_rig"]

CONNECTIONS = 16
# Batches wait for a full second at most before they leave; what has not come after this is a failed proof.
SETTLE_SECONDS = 20.0


@dataclass(frozen=True)
class Measured:
    """A window: its figures, what the load generator counted, and what others counted."""

    window: Window
    load: Load
    evidence: Evidence


@dataclass
class Rig:
    """Everything that runs while the bench measures.

    Attributes:
        wrk: The load generator.
        servers: One server per variant.
        exporters: Our exporter, for each variant that is ours.
        sink: Takes and counts spans.
        folder: Working folder; the rows of a variant are in `<folder>/<variant>`.
    """

    wrk: Path
    servers: dict[str, Child]
    exporters: dict[str, Child]
    sink: Child
    folder: Path
    _last: dict[str, dict[str, float]] = field(default_factory=dict)

    def measure(self, name: str, seconds: float) -> Measured:
        """Run one window of load on one variant.

        Args:
            name: Variant.
            seconds: Length of the window.

        Raises:
            CannotRun: If a process of the rig has ended or does not answer.
        """
        variant, server = VARIANTS[name], self.servers[name]
        before = self._last.get(name) or self._counts(variant)
        first_row = head(self.folder / name) if variant.ours else 0
        started, own, busy = time.monotonic(), self._own_seconds(), busy_seconds()
        cpu, exporter_cpu = process_seconds(server.pid), self._exporter_seconds(name)
        load = run_wrk(self.wrk, server.url, seconds, CONNECTIONS)
        self._flush(variant)
        cpu = process_seconds(server.pid) - cpu
        busy, own, took = busy_seconds() - busy, self._own_seconds() - own, time.monotonic() - started
        after = self._settle(variant, load, before)
        exporter_cpu = self._exporter_seconds(name) - exporter_cpu
        self._last[name] = after
        per_request = 1e6 / max(load.answered, 1)
        window = Window(
            variant=name,
            requests=load.answered,
            rps=load.rps,
            cpu_us=cpu * per_request,
            foreign_cores=max(0.0, busy - own) / took,
            p99_s=load.p99_s,
            exporter_us=exporter_cpu * per_request if variant.ours else None,
        )
        return Measured(window, load, self._evidence(variant, before, after, first_row))

    def resident_bytes(self, name: str) -> int:
        """Return the resident memory of a variant's server, in bytes."""
        pages = int(Path(f"/proc/{self.servers[name].pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()

    def _own_seconds(self) -> float:
        """Return the CPU seconds of all that is ours: this process, the rig, and every wrk that has ended."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        children = [*self.servers.values(), *self.exporters.values(), self.sink]
        for child in children:
            child.alive_or_raise()
        return time.process_time() + ended.ru_utime + ended.ru_stime + total_seconds(child.pid for child in children)

    def _exporter_seconds(self, name: str) -> float:
        return process_seconds(self.exporters[name].pid) if name in self.exporters else 0.0

    def _flush(self, variant: Variant) -> None:
        """Make a peer send the spans it still holds: their cost belongs to this window."""
        if variant.span_share is None or variant.ours:
            return
        try:
            get(f"{self.servers[variant.name].url}/_bench/flush", 60.0)
        except Unreachable as error:
            raise CannotRun(f"{variant.name} did not flush its spans: {error}") from error

    def _counts(self, variant: Variant) -> dict[str, float]:
        counts = peer_counts(self.servers[variant.name].url, variant)
        if variant.ours:
            counts |= exporter_counts(self.exporters[variant.name].url)
        if variant.span_share is not None:
            counts |= self._sink_counts(variant.name)
        return counts

    def _sink_counts(self, name: str) -> dict[str, float]:
        try:
            counts: dict[str, float] = get_json(f"{self.sink.url}/{name}/count", 60.0)
        except Unreachable as error:
            raise CannotRun(f"the sink did not tell its counts: {error}") from error
        return counts

    def _settle(self, variant: Variant, load: Load, before: dict[str, float]) -> dict[str, float]:
        """Read the counters until what must arrive has arrived; too late, and the proof will fail."""
        least: dict[str, float] = {"rows_read": load.answered} if variant.ours else {}
        if variant.span_share is not None and not variant.ours:
            least["roots"] = share_bounds(variant.span_share, load.answered, load.sent)[0]
        deadline = time.monotonic() + SETTLE_SECONDS
        previous: dict[str, float] = {}
        while True:
            now = self._counts(variant)
            grown = {name: value - before.get(name, 0.0) for name, value in now.items()}
            arrived = all(grown[name] >= count for name, count in least.items())
            arrived &= grown.get("roots", 0.0) >= grown.get("kept", 0.0)
            # a sampled share has no exact end: it has come in when two looks agree
            if not least or (arrived and now == previous) or time.monotonic() > deadline:
                return now
            previous = now
            time.sleep(0.2)

    def _evidence(self, variant: Variant, before: dict[str, float], after: dict[str, float], first: int) -> Evidence:
        grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
        check = check_rows(newest_rows(self.folder / variant.name, first)) if variant.ours else RowCheck()
        return Evidence(
            rows_read=int(grown.pop("rows_read", 0)),
            rows_lost=int(grown.pop("rows_lost", 0)),
            spans=int(grown.pop("spans", 0)),
            roots=int(grown.pop("roots", 0)),
            kept=int(grown.pop("kept", 0)),
            kept_by_chance=int(grown.pop("kept_by_chance", 0)),
            rows_checked=check.rows,
            stages=check.stages,
            attributes=check.attributes,
            inputs=check.inputs,
            samples=grown,
        )


@contextmanager
def open_rig(names: Sequence[str], wrk: Path, folder: Path, server_core: int) -> Iterator[Rig]:
    """Start all processes, send each server one window of warm-up, and stop all at the end.

    Args:
        names: Variants.
        wrk: The load generator.
        folder: Empty folder, for logs and rows, best on tmpfs.
        server_core: The core that servers keep to; the caller's affinity is for everything else.

    Yields:
        The rig.

    Raises:
        CannotRun: If a process does not start.
    """
    with ExitStack() as stack:
        sink = stack.enter_context(spawn("sink", ["-m", "inferdeck.bench.sink"], folder, {}))
        wait_for_port(sink)
        servers, exporters = {}, {}
        for name in names:
            rows = folder / name
            rows.mkdir(mode=0o700)
            environment = {
                "INFERDECK_BENCH_VARIANT": name,
                "INFERDECK_BENCH_CORE": str(server_core),
                "INFERDECK_BENCH_OTLP": f"{sink.url}/{name}/v1/traces",
                "INFERDECK_RING_DIR": str(rows),
            }
            arguments = ["-m", "inferdeck.bench.server"]
            servers[name] = stack.enter_context(spawn(f"server-{name}", arguments, folder, environment))
        for name, server in servers.items():
            wait_for_port(server)
            variant = VARIANTS[name]
            if variant.ours:
                otlp_url, share = f"{sink.url}/{name}", variant.span_share or 0.0
                exporter = run_exporter(f"exporter-{name}", folder / name, folder, otlp_url, share)
                exporters[name] = stack.enter_context(exporter)
        yield Rig(wrk, servers, exporters, sink, folder)
