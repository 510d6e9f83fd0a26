"""A small world that can go wrong: workers with one loop each, simulated event by event, and what the sources say."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from exporters.buckets import LAG_BUCKETS, LATENCY_BUCKETS
from exporters.names import input_bucket
from runbooks.evidence import Series
from runbooks.prometheus_source import SourceMissingError
from runbooks.rows import Episode, OpenRequest, RingLife, Rows, bucket_of
from runbooks.sources import Sources

T0 = 1_780_000_000.0
TICK_SECONDS = 0.02
STAGES = {
    "network.receive": "",
    "sentiment.preprocess": "",
    "scheduler.dispatch": "",
    "model.forward": "scheduler.dispatch",
    "network.send": "",
}


@dataclass
class Trouble:
    """What goes wrong from the onset on, and how much of it."""

    block_seconds: float = 0.0
    block_share: float = 0.0
    block_forever_after: float | None = None
    wait_seconds: float = 0.0
    wait_share: float = 0.0
    model_factor: float = 1.0
    surge: float = 1.0
    fail_share: float = 0.0
    fail_release: str = ""
    dead_after: float | None = None
    dead_workers: int = 10**6
    restart_after: float | None = None
    frozen: bool = False
    clean: bool = False
    start_seconds: float | None = None
    start_phase: str = "loading_model"
    exporter_dead_after: float | None = None
    ends_after: float | None = None
    frame: str = "app/profile.py:12 fetch_profile"
    prometheus_away: tuple[float, float] | None = None


@dataclass
class World:
    """`before` healthy seconds, then `during` seconds of trouble; times count from the onset."""

    trouble: Trouble = field(default_factory=Trouble)
    rate: float = 20.0
    before: float = 120.0
    during: float = 60.0
    workers: int = 1
    seed: int = 1
    scrape: float = 5.0
    status_pages: bool = True

    onset = T0

    @property
    def until(self) -> float:
        """End of what happened."""
        return T0 + self.during

    def sources(self) -> Sources:
        """Return both sources over this world."""
        return Sources(self.metrics(), self.requests())

    def metrics(self) -> FakeMetrics:
        """Return what Prometheus would have."""
        return FakeMetrics(_series(self))

    def requests(self) -> FakeRequests:
        """Return what the rings would have."""
        return FakeRequests(self.rows())

    def rows(self) -> Rows:
        """Return all requests and rings."""
        return _rows(self)

    def runs(self) -> list[_Worker]:
        """Return the simulated workers."""
        if not hasattr(self, "_runs"):
            self._runs = [_Worker(self, index) for index in range(self.workers)]
        return self._runs


class FakeMetrics:
    """A metric store over prepared series."""

    def __init__(self, series: Mapping[str, tuple[Series, ...]]) -> None:
        self.series = series

    def collect(self, queries: Iterable[str], since: float, until: float) -> Mapping[str, tuple[Series, ...]]:
        """Return the series cut to the time."""
        found = {}
        for query in queries:
            cut = []
            for one in self.series.get(query, ()):
                inside = (one.times >= since) & (one.times <= until)
                if inside.any():
                    cut.append(Series(one.labels, one.times[inside], one.values[inside]))
            found[query] = tuple(cut)
        return found

    def alert_span(self, *_: object) -> tuple[float, float] | None:
        """No alert is known."""
        return None


class FakeRequests:
    """A recorder over prepared rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def collect(self, since: float, until: float) -> Rows:
        """Return the rows that ended in the time."""
        inside = (self._rows.end_s >= since) & (self._rows.end_s <= until)
        return pick(self._rows, inside)


class Broken:
    """A source that cannot be read."""

    def collect(self, *_: object) -> Any:
        """Refuse."""
        raise SourceMissingError("not there")

    def alert_span(self, *_: object) -> Any:
        """Refuse."""
        raise SourceMissingError("not there")


def pick(rows: Rows, mask: Any) -> Rows:
    """Return the rows that a mask selects."""
    return replace(
        rows,
        **{
            name: getattr(rows, name)[mask]
            for name in ("start_s", "duration_s", "outcome", "bucket", "session", "trace_id", "ring")
        },
        labels={name: values[mask] for name, values in rows.labels.items()},
        stages={name: (start[mask], seconds[mask]) for name, (start, seconds) in rows.stages.items()},
        cpu_s={name: values[mask] for name, values in rows.cpu_s.items()},
        refused_texts={name: values[mask] for name, values in rows.refused_texts.items()},
    )


class _Worker:
    """One event loop that serves requests; pieces of work queue up for it, the executor runs beside it."""

    def __init__(self, world: World, index: int) -> None:
        self.world, self.index = world, index
        self.rng = random.Random(world.seed * 1000 + index)
        self.rows: list[dict[str, Any]] = []
        self.open: list[dict[str, Any]] = []
        self.pieces: list[tuple[float, float]] = []
        trouble = world.trouble
        self.dies = T0 + trouble.dead_after if trouble.dead_after is not None and index < trouble.dead_workers else None
        self.end = min(world.until, self.dies or world.until)
        self._run(self._arrivals())

    def _arrivals(self) -> list[float]:
        now, found = T0 - self.world.before, []
        while now < self.end:
            rate = self.world.rate / self.world.workers * (self.world.trouble.surge if now >= T0 else 1.0)
            now += self.rng.expovariate(rate) if rate else 1e9
            found.append(now)
        start = self.world.trouble.start_seconds
        up_again = T0 + start if start is not None else T0
        return [one for one in found if one < self.end and not T0 <= one < up_again]

    def _run(self, arrivals: list[float]) -> None:
        trouble, rng, free = self.world.trouble, self.rng, 0.0
        queue: list[tuple[float, int, int, dict[str, Any]]] = [
            (at, number, 0, {"arrived": at}) for number, at in enumerate(arrivals)
        ]
        heapq.heapify(queue)
        while queue:
            due, number, phase, request = heapq.heappop(queue)
            at = max(due, free)
            if at >= self.end:
                if phase:
                    self.open.append(request)
                continue
            work = 0.0001 * rng.uniform(0.5, 2)
            if phase == 0:
                bad = T0 <= at < T0 + (trouble.ends_after if trouble.ends_after is not None else np.inf)
                request |= {
                    "start": at,
                    "release": rng.choice(("1.0", "1.1")),
                    "length": rng.choice((40, 80, 200, 700)),
                }
                if trouble.block_forever_after is not None and at >= T0 + trouble.block_forever_after:
                    work += 1e6
                if bad and rng.random() < trouble.block_share:
                    work += trouble.block_seconds
                wait = trouble.wait_seconds if bad and rng.random() < trouble.wait_share else 0.0
                heapq.heappush(queue, (at + work + wait, number, 1, request))
            elif phase == 1:
                request["received"] = at
                busy = 0.002 * rng.lognormvariate(0, 0.3) * (trouble.model_factor if at >= T0 else 1.0)
                request["forward"] = busy
                heapq.heappush(queue, (at + work + busy, number, 2, request))
            else:
                request["ended"] = at + work
                failing = at >= T0 and trouble.fail_release in ("", request["release"])
                request["outcome"] = 2 if failing and rng.random() < trouble.fail_share else 0
                self.rows.append(request)
            self.pieces.append((at, min(at + work, self.end)))
            free = at + work

    def lags(self) -> list[tuple[float, float]]:
        """Return when ticks came and how late: long pieces of work, and small noise for all others."""
        late = []
        for start, end in self.pieces:
            if end - start > TICK_SECONDS:
                due = start + self.rng.uniform(0, TICK_SECONDS)
                late.append((end, max(end - due, 0.0)))
        return late


def _rows(world: World) -> Rows:
    flat = [(one, worker) for worker in world.runs() for one in worker.rows]
    flat.sort(key=lambda pair: float(pair[0]["ended"]))

    def get(name: str) -> Any:
        return np.array([float(one[name]) for one, _ in flat])

    def text(values: Iterable[str]) -> Any:
        return np.array([*values, None], dtype=object)[:-1]

    start, ended = get("start"), get("ended")
    received, forward = get("received") - start, get("forward")
    stages = {
        "network.receive": (np.zeros(len(flat)), np.minimum(received, 0.001)),
        "sentiment.preprocess": (received, np.full(len(flat), 0.0001)),
        "scheduler.dispatch": (received + 0.0001, np.maximum(ended - start - received - 0.0002, forward)),
        "model.forward": (received + 0.0001, forward),
        "network.send": (ended - start - 0.0001, np.full(len(flat), 0.0001)),
    }
    return Rows(
        start_s=start,
        duration_s=ended - start,
        outcome=np.array([one["outcome"] for one, _ in flat], dtype=np.int64),
        bucket=bucket_of(np.array([one["length"] for one, _ in flat], dtype=np.int64)),
        session=np.array([index % 50 for index in range(len(flat))], dtype=np.uint64),
        trace_id=text(f"{index:032x}" for index in range(len(flat))),
        ring=text(_ring_of(world, worker, float(one["start"])) for one, worker in flat),
        labels={
            "client_release": text(one["release"] for one, _ in flat),
            "worker": text(str(worker.index) for _, worker in flat),
            "route": text("/v1/sentiment" for _ in flat),
        },
        stages=stages,
        parents=STAGES,
        open=tuple(
            OpenRequest(f"ring{worker.index}", one["start"], "model.forward", f"{7 + n:032x}", n, worker.dies is None)
            for worker in world.runs()
            for n, one in enumerate(worker.open)
        ),
        rings=tuple(ring for worker in world.runs() for ring in _lives(world, worker)),
    )


def _ring_of(world: World, worker: _Worker, at: float) -> str:
    return f"ring{worker.index}{'' if world.trouble.start_seconds is None or at < T0 else 'again'}"


def phases(world: World, since_start: float) -> dict[str, float]:
    """Return the phases of a restart that began so many seconds ago, as the status page has them."""
    usual = {"import": 1.2, "starting": 0.1, "loading_model": 0.4, "warming_up": 0.05}
    if world.trouble.start_seconds is None:
        return usual
    slow = usual | {world.trouble.start_phase: usual[world.trouble.start_phase] + world.trouble.start_seconds - 1.75}
    left, found = since_start, {}
    for name, seconds in slow.items():
        if left <= 0.0:
            break
        found[name] = min(seconds, left)
        left -= seconds
    return found


def _lives(world: World, worker: _Worker) -> list[RingLife]:
    """Return a worker's files: one, or two when the service is started again at the onset."""
    life, start = _life(world, worker), world.trouble.start_seconds
    if start is None:
        return [life]
    healthy = world.status_pages and {"phase": "stopped", "phases": phases(World(), 9.0)}
    took = phases(world, world.during)
    again = replace(
        life,
        ring=f"{life.ring}again",
        started_s=T0 + took.get("import", 0.0) + 0.01,
        episodes=(),
        status={"ready": world.during > start, "phase": list(took)[-1], "phases": took} if world.status_pages else {},
    )
    if took.get("import", 0.0) >= world.during:
        again = replace(again, last_sign_s=T0 - 1e6, started_s=T0 - 1e6)
    return [replace(life, alive=False, last_sign_s=T0, status=healthy or {}), again]


def _life(world: World, worker: _Worker) -> RingLife:
    restarted = world.trouble.restart_after
    sign = world.until if worker.dies is None or restarted is not None else worker.dies
    hung = world.trouble.block_forever_after
    stuck = hung is not None and world.until - T0 > hung
    episodes = [
        Episode(end - late, late, (world.trouble.frame, "app/main.py:40 handle"), run_wait_s=0.0)
        for end, late in worker.lags()
        if late > 0.1
    ]
    return RingLife(
        ring=f"ring{worker.index}",
        worker=str(worker.index),
        alive=worker.dies is None or world.trouble.frozen,
        started_s=T0 - world.before,
        last_sign_s=sign,
        episodes=tuple(episodes[-32:]) if world.status_pages else (),
        loop_tick_age_s=world.until - T0 - (hung or 0) if stuck else 0.01,
        status={"ready": True, "phase": "stopped" if world.trouble.clean else "ready", "phases": phases(World(), 9.0)}
        if world.status_pages
        else {},
    )


def _series(world: World) -> dict[str, tuple[Series, ...]]:
    trouble = world.trouble
    times = np.arange(T0 - world.before, world.until + 0.1, world.scrape)
    if trouble.prometheus_away:
        away = [T0 + one for one in trouble.prometheus_away]
        times = times[(times < away[0]) | (times > away[1])]
    gone = T0 + trouble.exporter_dead_after if trouble.exporter_dead_after is not None else np.inf
    seen = times[times < gone]
    every = [one for worker in world.runs() for one in worker.rows]
    ended = np.array([one["ended"] for one in every])
    lasted = ended - np.array([one["start"] for one in every])
    buckets = np.array([input_bucket(one["length"]) for one in every], dtype=object)
    outcomes = np.array([one["outcome"] for one in every])
    late = np.array([lag for worker in world.runs() for lag in worker.lags()]).reshape(-1, 2)
    scraped = _counter(seen)
    series = {
        "up": (
            *_up(world, times),
            Series({"job": "inferdeck-exporter"}, times, (times < gone).astype(float)),
            Series({"job": "prometheus"}, times, np.ones(len(times))),
        ),
        "model_requests_total": tuple(
            scraped({"outcome": name}, ended[outcomes == code]) for code, name in ((0, "ok"), (2, "error"))
        ),
        "runtime_event_loop_blocked_seconds_total": (
            scraped({}, late[late[:, 1] > 0.1, 0], late[late[:, 1] > 0.1, 1]),
        ),
        "runtime_event_loop_lag_seconds_bucket": tuple(
            _lag_bucket(world, seen, late, bound) for bound in (*LAG_BUCKETS, float("inf"))
        ),
        "runtime_gc_pause_seconds_sum": (Series({"generation": "2"}, seen, np.full(len(seen), 0.1)),),
        "model_latency_seconds_bucket": tuple(
            scraped({"input_bucket": name, "le": str(bound)}, ended[(buckets == name) & (lasted <= bound)])
            for name in ("short", "medium", "long")
            for bound in (*LATENCY_BUCKETS, float("inf"))
        ),
    }
    forward = np.array([one["forward"] for one in every])
    series["model_stage_seconds_sum"] = (scraped({"stage": "model.forward"}, ended, forward),)
    series["model_stage_seconds_count"] = (scraped({"stage": "model.forward"}, ended),)
    hung = trouble.block_forever_after if trouble.block_forever_after is not None else np.inf
    frozen = trouble.dead_after if trouble.frozen and trouble.dead_after is not None else np.inf
    thread = np.maximum(seen - T0 - frozen, 0.01)
    loop = np.maximum(seen - T0 - hung, thread)
    series["runtime_heartbeat_age_seconds"] = tuple(
        Series({"source": source}, seen, age) for source, age in (("loop", loop), ("thread", thread))
    )
    series |= _life_series(world, seen, times)
    return {name: tuple(one for one in found if len(one.times)) for name, found in series.items()}


def _life_series(world: World, seen: Any, times: Any) -> dict[str, tuple[Series, ...]]:
    """Return what exporter and service tell of workers' ends and starts."""
    trouble, start = world.trouble, world.trouble.start_seconds
    ends = np.zeros(len(seen))
    up = []
    for worker in world.runs():
        gone = worker.dies is not None and not trouble.frozen
        ends += (seen >= worker.dies) if gone and worker.dies is not None else 0.0
        alive = np.ones(len(seen)) if worker.dies is None or not gone else (seen < worker.dies).astype(float)
        if trouble.restart_after is not None:
            alive[seen >= T0 + trouble.restart_after] = 1.0
        up.append(Series({"worker": str(worker.index)}, seen, alive))
    how = "clean" if trouble.clean else "died"
    found = {
        "model_worker_ends_total": tuple(
            Series({"how": name}, seen, ends if name == how else np.zeros(len(seen))) for name in ("clean", "died")
        ),
        "model_worker_up": tuple(up),
    }
    usual = phases(World(), 9.0)
    told = [usual if at < T0 or start is None else phases(world, at - T0) for at in seen]
    found["runtime_start_phase_seconds"] = tuple(
        Series({"phase": name}, np.array(at), np.array(values))
        for name in usual
        if (at := [moment for moment, one in zip(seen, told, strict=True) if name in one])
        and (values := [one[name] for one in told if name in one])
    )
    at_work = times[(times < T0 + 1.5) | (times >= T0 + (start or 0.0)) | (trouble.start_phase == "loading_model")]
    warming = (at_work >= T0) & (at_work < T0 + (start or 0.0))
    found["runtime_phase"] = (
        Series({"phase": "ready"}, at_work, 1.0 - warming),
        Series({"phase": "loading_model"}, at_work, warming.astype(float)),
    )
    return found


def _up(world: World, times: Any) -> list[Series]:
    trouble = world.trouble
    down = np.zeros(len(times), dtype=bool)
    if trouble.dead_after is not None and trouble.dead_workers >= world.workers:
        down = times >= T0 + trouble.dead_after
        if trouble.restart_after is not None:
            down &= times < T0 + trouble.restart_after
    return [Series({"job": "service"}, times, (~down).astype(float))]


def _counter(times: Any) -> Callable[..., Series]:
    def counter(labels: Mapping[str, str], at: Any, amount: Any = None) -> Series:
        amounts = np.ones(len(at)) if amount is None else amount
        return Series(labels, times, np.array([float(amounts[at <= moment].sum()) for moment in times]))

    return counter


def _lag_bucket(world: World, times: Any, late: Any, bound: float) -> Series:
    quiet = (times - (T0 - world.before)) / TICK_SECONDS * world.workers  # every other tick is a third of a millisecond
    grown = np.array([float(((late[:, 0] <= moment) & (late[:, 1] <= bound)).sum()) for moment in times])
    return Series({"le": str(bound)}, times, quiet + grown)


@pytest.fixture
def world() -> Callable[..., World]:
    """Return a maker of worlds: `world(block_seconds=0.2, block_share=0.05, rate=20.0)`."""

    def make(**options: Any) -> World:
        known = Trouble.__dataclass_fields__
        trouble = Trouble(**{name: value for name, value in options.items() if name in known})
        return World(trouble, **{name: value for name, value in options.items() if name not in known})

    return make


@pytest.fixture
def broken() -> Broken:
    """Return a source that cannot be read."""
    return Broken()
