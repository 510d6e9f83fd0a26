"""The embedded stack starts in order, gives up whole, notices ends, and outlives a record that cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inferdeck.errors import CannotRun
from inferdeck.settings import load_settings
from inferdeck.stack.embedded import EmbeddedStack
from inferdeck.stack.parts import Part
from inferdeck.stack.plan import StackPlan, plan_on_free_ports
from inferdeck.stack.ports import free_ports
from inferdeck.stack.process import is_alive
from inferdeck.stack.state import read_state, state_file
from inferdeck.stack.supervisor import mend_or_say

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[2])); self.end_headers(); self.wfile.write(b"no")
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def server(name: str, status: int = 200, *, watches: bool = False) -> Part:
    """Return a part that answers its health path with *status*."""
    (port,) = free_ports(1)
    return Part(name, port, (sys.executable, "-c", SERVER, str(port), str(status)), "/", port, watches=watches)


def command(name: str, code: str) -> Part:
    """Return a part that only runs Python *code*."""
    (port,) = free_ports(1)
    return Part(name, port, (sys.executable, "-c", code), "/", port)


@pytest.fixture
def plan(tmp_path: Path) -> StackPlan:
    """Return a plan with short patience."""
    plan = plan_on_free_ports(load_settings(), {}, tmp_path / "state", tmp_path / "rows")
    return replace(plan, ready_timeout_seconds=10.0, stop_grace_seconds=3.0)


@pytest.fixture
def stacks() -> Iterator[list[EmbeddedStack]]:
    """Stop every stack that a test puts here."""
    started: list[EmbeddedStack] = []
    yield started
    for stack in started:
        stack.stop()


def soon(stack: EmbeddedStack, name: str) -> bool:
    """Return whether the part's end is noticed soon."""
    deadline = time.monotonic() + 10
    while stack.part(name).exit_code is None and time.monotonic() < deadline:
        stack.poll()
        time.sleep(0.02)
    return stack.part(name).exit_code is not None


def test_parts_that_watch_start_when_the_others_are_ready(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """Prometheus must not see the others as down."""
    said: list[str] = []
    stack = EmbeddedStack(plan, said.append, [server("watcher", watches=True), server("service")])
    stacks.append(stack)

    stack.start()

    assert ["service", "watcher"] == [line.partition(":")[0] for line in said]
    assert "ready" == stack.state.phase
    assert stack.state == read_state(plan.state_dir)


def test_a_part_that_ends_while_starting_ends_the_start(plan: StackPlan) -> None:
    """Its last words are in the line, and what was started before is stopped."""
    stack = EmbeddedStack(plan, parts=[server("service"), command("broken", "raise SystemExit('no such model')")])

    with pytest.raises(CannotRun, match="broken ended with 1 while starting: no such model"):
        stack.start()

    record = stack.part("service").record
    assert record is not None
    assert not is_alive(record)
    assert "failed" == stack.state.phase


def test_a_part_that_never_gets_ready_is_told_with_its_answer(plan: StackPlan) -> None:
    """Warming up for ever: what it answers is in the line, and it is stopped."""
    stack = EmbeddedStack(replace(plan, ready_timeout_seconds=1.0), parts=[server("service", 503)])

    with pytest.raises(CannotRun, match=r"not ready in time, .* answers 503"):
        stack.start()

    record = stack.part("service").record
    assert record is not None
    assert not is_alive(record)


def test_a_part_that_was_left_out_is_said_and_not_started(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """The rest runs."""
    said: list[str] = []
    absent = replace(server("prometheus"), left_out="not found")
    stack = EmbeddedStack(plan, said.append, [server("service"), absent])
    stacks.append(stack)

    stack.start()

    assert "prometheus: left out, not found" in said
    assert stack.part("prometheus").record is None


def test_an_end_is_noticed_once_and_mended(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """A killed part is reaped with its signal; mending starts it again, and only it."""
    stack = EmbeddedStack(plan, parts=[server("service"), server("exporter")])
    stacks.append(stack)
    stack.start()
    other = stack.part("exporter").record
    os.kill(stack.pids("service")[0], signal.SIGKILL)
    assert soon(stack, "service")
    assert -signal.SIGKILL == stack.part("service").exit_code
    assert [] == stack.poll()

    stack.mend()

    assert stack.part("service").exit_code is None
    assert 1 == len(stack.pids("service"))
    assert other == stack.part("exporter").record
    assert 1 == stack.state.mends


def test_a_part_that_cannot_be_mended_is_told(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """The reason is in the state, for `up` to read."""
    part = server("service")
    stack = EmbeddedStack(plan, parts=[part, server("exporter")])
    stacks.append(stack)
    stack.start()
    stack._parts[0] = replace(part, argv=(sys.executable, "-c", "raise SystemExit(7)"))
    os.kill(stack.pids("service")[0], signal.SIGKILL)
    assert soon(stack, "service")

    with pytest.raises(CannotRun, match="ended with 7"):
        stack.mend()

    assert "ended with 7" in stack.state.message
    assert 1 == len(stack.pids("exporter"))


def test_a_record_that_cannot_be_written_costs_the_record_alone(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """A disk that fills up under a running stack does not end it."""
    said: list[str] = []
    stack = EmbeddedStack(plan, said.append, [server("service"), server("exporter")])
    stacks.append(stack)
    stack.start()
    shutil.rmtree(plan.state_dir)
    plan.state_dir.write_text("in the way")
    os.kill(stack.pids("service")[0], signal.SIGKILL)

    assert soon(stack, "service")

    assert any("cannot be written" in line for line in said)
    assert 1 == len(stack.pids("exporter"))


def test_a_part_is_mended_while_its_record_cannot_be_written(plan: StackPlan, stacks: list[EmbeddedStack]) -> None:
    """Whoever mends a stack on a full disk gets the part back; only the record is lost, and said."""
    said: list[str] = []
    stack = EmbeddedStack(plan, said.append, [server("service"), server("exporter")])
    stacks.append(stack)
    stack.start()
    # a folder in the place of the file: what a disk without room does to every write, for root as well
    state_file(plan.state_dir).unlink()
    (state_file(plan.state_dir) / "x").mkdir(parents=True)
    os.kill(stack.pids("service")[0], signal.SIGKILL)
    assert soon(stack, "service")

    stack.mend()

    assert [1, 1] == [len(stack.pids(name)) for name in ("service", "exporter")]
    assert any("cannot be written" in line for line in said)


class FullDisk(EmbeddedStack):
    """A stack whose mending meets a full disk in a place where nobody expected it."""

    def mend(self) -> None:
        """Fail as a write does."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_supervisor_outlives_a_full_disk_while_mending(plan: StackPlan) -> None:
    """It says so and goes on."""
    said: list[str] = []

    mend_or_say(FullDisk(plan, parts=[]), said.append)

    assert ["cannot mend: [Errno 28] No space left on device"] == said


def test_an_unknown_part_is_a_clear_line(plan: StackPlan) -> None:
    """A program that asks for a part that is not there is told so."""
    with pytest.raises(CannotRun, match="no part 'jaeger'"):
        EmbeddedStack(plan, parts=[]).part("jaeger")
