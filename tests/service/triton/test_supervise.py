"""What the supervisor does about what its canary comes to."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exporters.names import METRICS
from exporters.names_triton import CANARY_STATES, EXITS, FALLBACK_REASONS, TRITON
from service.service_metrics import FALLBACK_REASONS as SHOWN_REASONS
from service.triton.canary import STATES, ask
from service.triton.last_exit import KINDS, Exit, kind_of
from service.triton.supervise import Health, Supervisor
from service.triton.supervisor_metrics import render
from service.triton.transport import TritonError, TritonHttp


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class FakeServer:
    """A server that ends when told."""

    def __init__(self, clock: Clock) -> None:
        self.started = clock.now
        self.code: int | None = None
        self.killed = False
        self.lines: tuple[str, ...] = ()
        self.process = SimpleNamespace(kill=self._kill, wait=lambda: None)

    def _kill(self) -> None:
        self.killed = True

    def note_stubs(self) -> list[int]:
        """Have none."""
        return []

    def ended(self) -> int | None:
        """Return the code."""
        return self.code

    def last_exit(self, *, stopped: bool) -> Exit:
        """Tell of its code, and of what it wrote."""
        code = self.code or 0
        return Exit(code, kind_of(code, self.lines, stopped=stopped), 1.0, self.lines)

    def clean(self) -> int:
        """Find one orphan."""
        return 1

    def stop(self) -> None:
        """Do nothing."""


class Canary:
    """Answers as told."""

    def __init__(self) -> None:
        self.reason = "ok"
        self.calls = 0

    def infer(self, *_: Any, **__: Any) -> Any:
        """Answer or raise."""
        self.calls += 1
        if self.reason != "ok":
            raise TritonError(self.reason, self.reason)
        return np.zeros((1, 3), dtype=np.float32)


def made(port: int = 9, **told: Any) -> tuple[Supervisor, Clock, Canary, list[FakeServer]]:
    """Return a supervisor with a clock, a canary and the servers that it started."""
    clock, canary = Clock(), Canary()
    servers: list[FakeServer] = []

    def start() -> Any:
        servers.append(FakeServer(clock))
        return servers[-1]

    client: Any = canary
    return Supervisor(start, client, "127.0.0.1", port, clock=clock, **told), clock, canary, servers


def test_it_is_starting_until_the_canary_was_fine_once() -> None:
    """A model takes its time to load: nothing is wrong yet."""
    supervisor, _clock, canary, _servers = made()
    canary.reason = "refused"
    for _ in range(3):
        supervisor.step()
    states = [supervisor.health.state]
    canary.reason = "ok"
    supervisor.step()

    assert ["starting", "ok"] == [*states, supervisor.health.state]


def test_one_that_ends_is_started_again_with_growing_pauses() -> None:
    """0.5, 1, 2, 4 seconds, and its orphans are counted."""
    supervisor, clock, _canary, servers = made()
    supervisor.step()
    pauses = []
    for _ in range(4):
        servers[-1].code = -9
        supervisor.step()
        began, lives = clock.now, len(servers)
        while len(servers) == lives:
            clock.now += 0.25
            supervisor.step()
        pauses.append(clock.now - began)

    assert [0.5, 1.0, 2.0, 4.0] == pauses
    assert (4, 4) == (supervisor.health.restarts, supervisor.health.orphans)


def test_one_that_cannot_be_started_is_tried_again_with_growing_pauses() -> None:
    """The supervisor outlives a machine without memory or processes to spare."""
    clock, canary = Clock(), Canary()
    tries: list[float] = []

    def start() -> Any:
        tries.append(clock.now)
        if len(tries) < 4:
            raise OSError(12, "Cannot allocate memory")
        return FakeServer(clock)

    client: Any = canary
    supervisor = Supervisor(start, client, "127.0.0.1", 9, clock=clock)
    supervisor.step()
    assert "refused" == supervisor.health.state
    while supervisor.server is None:
        clock.now += 0.25
        supervisor.step()

    assert [0.5, 1.0, 2.0] == np.diff(tries).tolist()
    assert ("starting", 0) == (supervisor.health.state, supervisor.health.restarts)


@pytest.mark.parametrize("reason", ["refused", "unloaded"])
def test_one_that_hangs_while_it_loads_is_killed_and_started_again(reason: str) -> None:
    """Nothing listens until the model is loaded, so refused for ever is a hang as well."""
    supervisor, clock, canary, servers = made(start_seconds=120.0)
    canary.reason = reason
    supervisor.step()
    for _ in range(60):
        clock.now += 2.0
        supervisor.step()
    assert ("starting", [False]) == (supervisor.health.state, [server.killed for server in servers])

    clock.now += 2.0
    supervisor.step()
    assert ([True], 1) == ([server.killed for server in servers], supervisor.health.restarts)
    clock.now += 0.5
    supervisor.step()
    clock.now += 119.0
    canary.reason = "ok"
    supervisor.step()
    clock.now += 300.0
    canary.reason = "refused"
    supervisor.step()

    assert [True, False] == [server.killed for server in servers]


def test_what_hangs_for_too_long_is_killed_and_what_hangs_shorter_is_not() -> None:
    """A machine may swap for a while."""
    supervisor, clock, canary, servers = made(hang_seconds=60.0)
    supervisor.step()
    supervisor.step()
    canary.reason = "timeout"
    for _ in range(30):
        clock.now += 2.0
        supervisor.step()
    assert "timeout" == supervisor.health.state
    assert [False] == [server.killed for server in servers]

    clock.now += 2.0
    supervisor.step()

    assert [True] == [server.killed for server in servers]
    assert 1 == supervisor.health.restarts


def test_each_end_is_counted_by_its_kind_and_the_last_bad_one_is_kept(tmp_path: Path) -> None:
    """A clean end and one of the supervisor's own doing are counted, and push nothing out."""
    supervisor, clock, canary, servers = made(exit_file=tmp_path / "last_exit.json", start_seconds=100.0)
    words = ("CUDA failure 700: an illegal memory access was encountered ; GPU=0",)
    for code, lines in ((-6, words), (0, words), (-9, ())):
        supervisor.step()
        servers[-1].code, servers[-1].lines = code, lines
        supervisor.step()
        clock.now += 60.0
        if code == 0:
            assert (-6, "illegal_memory_access") == supervisor.health.last_exit
            assert list(words) == json.loads((tmp_path / "last_exit.json").read_text())["lines"]
    canary.reason = "refused"
    supervisor.step()
    clock.now += 101.0
    supervisor.step()

    counted = {kind: number for kind, number in supervisor.health.exits.items() if number}
    assert {"illegal_memory_access": 1, "clean": 1, "signal": 1, "stopped": 1} == counted
    assert (-9, "signal") == supervisor.health.last_exit
    shown = render(supervisor.health).decode()
    assert 'model_triton_exits_total{how="illegal_memory_access"} 1.0' in shown
    assert 'model_triton_last_exit_info{code="-9",how="signal"} 1.0' in shown


def test_a_dead_stub_is_healed_by_unload_and_load_and_not_all_the_time(fake: Any) -> None:
    """A stub that dies of its model would keep the server busy with loading."""
    supervisor, clock, canary, _servers = made(fake.port)
    supervisor.step()
    canary.reason = "stub_dead"
    supervisor.step()
    supervisor.step()

    assert [f"/v2/repository/models/sentiment/{verb}" for verb in ("unload", "load")] == fake.paths
    clock.now += 5.0
    supervisor.step()
    assert 2 == supervisor.health.heals


def test_a_load_that_failed_in_a_heal_is_tried_again_until_it_works(fake: Any) -> None:
    """The heal took the model out, so nobody meant it; once it was loaded, what is taken out is left alone again."""
    supervisor, clock, canary, servers = made(fake.port)
    supervisor.step()
    canary.reason, fake.how = "stub_dead", "error"
    supervisor.step()
    canary.reason = "unloaded"
    supervisor.step()
    assert ["unload", "load"] == [path.rpartition("/")[2] for path in fake.paths]

    clock.now += 5.0
    supervisor.step()
    fake.how = "fine"
    clock.now += 5.0
    supervisor.step()
    assert ["load", "load"] == [path.rpartition("/")[2] for path in fake.paths[2:]]
    for _ in range(20):
        clock.now += 5.0
        supervisor.step()

    assert (4, 1, 1) == (len(fake.paths), len(servers), supervisor.health.heals)


def test_a_load_that_nobody_answered_is_settled_when_the_model_is_there_after_all(fake: Any) -> None:
    """Else the model that somebody takes out an hour later would be put back."""
    supervisor, clock, canary, _servers = made(fake.port)
    supervisor.step()
    canary.reason, fake.how = "stub_dead", "close"
    supervisor.step()
    assert ["unload"] == [path.rpartition("/")[2] for path in fake.paths]
    canary.reason, fake.how = "ok", "fine"
    for reason in ("ok", "ok", "unloaded", "unloaded"):
        canary.reason = reason
        clock.now += 5.0
        supervisor.step()

    assert ["unload", "load"] == [path.rpartition("/")[2] for path in fake.paths]


def test_after_five_loads_that_failed_it_is_killed_and_started_again(fake: Any) -> None:
    """A new life loads the model, and owes nothing."""
    supervisor, clock, canary, servers = made(fake.port)
    supervisor.step()
    canary.reason, fake.how = "stub_dead", "error"
    supervisor.step()
    canary.reason = "unloaded"
    for _ in range(4):
        clock.now += 5.0
        supervisor.step()
    assert [False] == [server.killed for server in servers]

    for _ in range(2):
        clock.now += 5.0
        supervisor.step()

    assert [True, False] == [server.killed for server in servers]
    assert (6, 1) == (len(fake.paths), supervisor.health.restarts)


def test_a_model_that_was_taken_out_is_left_alone(fake: Any) -> None:
    """Somebody may have meant it; it is told."""
    supervisor, clock, canary, servers = made(fake.port)
    supervisor.step()
    supervisor.step()
    canary.reason = "unloaded"
    for _ in range(100):
        clock.now += 2.0
        supervisor.step()

    assert "unloaded" == supervisor.health.state
    assert ([], 1, 0) == (fake.paths, len(servers), supervisor.health.heals)


@pytest.mark.parametrize(
    ("how", "expected"), [("fine", "ok"), ("nan", "wrong_answer"), ("shape", "wrong_answer"), ("error", "stub_dead")]
)
def test_the_canary_asks_both_versions_and_looks_at_the_answer(fake: Any, how: str, expected: str) -> None:
    """Readiness is an inference that was right."""
    fake.how = how
    client = TritonHttp("127.0.0.1", fake.port, "sentiment", 1)

    assert expected == ask(client, 5.0)
    assert (2 if how == "fine" else 1) == len(fake.paths)
    client.close()


def test_every_metric_and_label_is_the_one_that_is_written_down() -> None:
    """The names of exporters are those that supervisor and service show."""
    shown = render(Health(state="timeout", restarts=2)).decode()

    assert ("starting", *STATES) == CANARY_STATES
    assert SHOWN_REASONS == FALLBACK_REASONS
    assert KINDS == EXITS
    assert 'model_triton_canary_state{state="timeout"} 1.0' in shown
    assert "model_triton_restarts_total 2.0" in shown
    names = [metric for metric in TRITON if metric.job == "triton-supervisor"]
    assert all(f"# HELP {metric.name} {metric.help}" in shown for metric in names)
    assert set(METRICS) >= {metric.name for metric in TRITON}
