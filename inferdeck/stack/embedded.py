"""The embedded stack: service, exporter, triage, Alertmanager and Prometheus as children of this process."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get
from inferdeck.stack.parts import Part, build_parts, common_environment, write_configuration
from inferdeck.stack.plan import StackPlan
from inferdeck.stack.ports import require_free
from inferdeck.stack.process import ProcessRecord, StopReport, group_members, is_alive, log_tail, start, stop
from inferdeck.stack.shield import uninterrupted
from inferdeck.stack.state import PartState, StackState, make_private_folder, write_state
from inferdeck.version import ROOT

__all__ = ["EmbeddedStack"]

Say = Callable[[str], None]


class EmbeddedStack:
    """Starts the parts of a plan, waits until they are ready, notices their ends, and stops them.

    The caller holds `only_stack(plan.state_dir)` meanwhile. What cannot be had (no Prometheus on this machine) is
    left out and said; what breaks at start ends the whole start.
    """

    def __init__(self, plan: StackPlan, say: Say = lambda _line: None, parts: list[Part] | None = None) -> None:
        """Take the plan; nothing starts yet.

        Args:
            plan: Ports, folders and programs.
            say: Gets one line for each step.
            parts: The processes; the plan's own by default.
        """
        self.plan = plan
        self._say = say
        self._parts = build_parts(plan) if parts is None else parts
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        states = [self._state_of(part) for part in self._parts]
        self.state = StackState(str(plan.state_dir), str(plan.ring_dir), time.time(), parts=states)

    def _state_of(self, part: Part) -> PartState:
        base = f"http://{self.plan.host}:{part.port}"
        health = f"http://{self.plan.host}:{part.health_port}{part.health_path}"
        return PartState(part.name, part.port, base, health, left_out=part.left_out)

    def start(self, supervisor: ProcessRecord | None = None) -> None:
        """Start all parts and return when each answers its health path.

        Args:
            supervisor: The process that hosts this object, to be written down.

        Raises:
            CannotRun: If a port is taken, or a part ends or is not ready in time; what was started is stopped first.
        """
        require_free(self.plan.host, self.plan.ports)
        self.state.supervisor = supervisor
        for folder in (self.plan.state_dir, self.plan.state_dir / "logs"):
            make_private_folder(folder)
        write_configuration(self.plan)
        try:
            deadline = time.monotonic() + self.plan.ready_timeout_seconds
            for wave in (False, True):
                self._start_wave([part for part in self._parts if part.watches == wave], deadline)
            self.state.phase = "ready"
            write_state(self.state)
        except BaseException as error:
            self.state.message = str(error)
            self.stop(failed=True)
            raise

    def _start_wave(self, parts: list[Part], deadline: float) -> None:
        for part in parts:
            if part.left_out is None:
                self._launch(part)
            else:
                self._say(f"{part.name}: left out, {part.left_out}")
        for part in parts:
            if part.left_out is None:
                self.wait_ready(part.name, deadline)

    def _launch(self, part: Part) -> None:
        make_private_folder(self.plan.state_dir / part.name) if part.name in {"prometheus", "alertmanager"} else None
        log = self.plan.state_dir / "logs" / f"{part.name}.log"
        environment = common_environment(self.plan) | part.env
        try:
            record, child = start(part.name, part.argv, log=log, env=environment, cwd=ROOT)
        except OSError as error:
            raise CannotRun(f"{part.name} cannot be started: {error}", f"look at {log}") from error
        self._children[part.name] = child
        state = self.part(part.name)
        state.record, state.exit_code, state.ended_unix = record, None, None
        # written at once: a supervisor killed now still leaves what `down` needs
        if self.state.phase == "starting":
            write_state(self.state)
        else:
            self._save()

    def part(self, name: str) -> PartState:
        """Return the state of the part called *name*.

        Raises:
            CannotRun: If the stack has none.
        """
        found = self.state.part(name)
        if found is None:
            raise CannotRun(f"the stack has no part {name!r}")
        return found

    def wait_ready(self, name: str, deadline: float) -> None:
        """Wait until the part's health path answers 200.

        Args:
            name: The part.
            deadline: Monotonic seconds.

        Raises:
            CannotRun: If it ends or the deadline passes; with the last line of its log.
        """
        state = self.part(name)
        log = Path(state.record.log) if state.record else Path()
        answer = "nothing"
        while True:
            self.poll()
            if state.exit_code is not None:
                raise CannotRun(
                    f"{name} ended with {state.exit_code} while starting: {' | '.join(log_tail(log, 2))}", f"read {log}"
                )
            try:
                status, _ = get(state.health_url, 1.0)
                if status == 200:
                    self._say(f"{name}: ready on {state.url}")
                    return
                answer = str(status)
            except Unreachable:
                answer = "nothing"
            if time.monotonic() > deadline:
                raise CannotRun(f"{name} is not ready in time, {state.health_url} answers {answer}", f"read {log}")
            # parts are ready within two seconds: this adds little, and costs little on two cores
            time.sleep(0.1)

    def poll(self) -> list[PartState]:
        """Reap what has ended and write it down.

        Returns:
            The parts whose end was noticed by this call.
        """
        ended = []
        for name, child in self._children.items():
            state = self.part(name)
            if state.exit_code is None and (code := child.poll()) is not None:
                # kept in the record: only the parent ever learns an exit code, `status` runs elsewhere
                state.exit_code, state.ended_unix = code, time.time()
                ended.append(state)
        if ended:
            self._save()
        return ended

    def stop_part(self, name: str) -> StopReport:
        """Stop one part and all that it started."""
        state = self.part(name)
        if state.record is None:
            return StopReport(name, "gone", 0.0)
        return stop(state.record, grace_seconds=self.plan.stop_grace_seconds, reap=self.poll)

    def restart_part(self, name: str, *, wait: bool = True) -> None:
        """Stop one part if it runs, start it again on its ports, and wait until it is ready.

        Args:
            name: The part.
            wait: False returns as soon as it is started.

        Raises:
            CannotRun: If it does not come back.
        """
        self.stop_part(name)
        self.poll()
        part = next(part for part in self._parts if part.name == name)
        self._launch(part)
        if wait:
            self.wait_ready(name, time.monotonic() + self.plan.ready_timeout_seconds)

    def set_environment(self, name: str, changed: dict[str, str]) -> None:
        """Change what a part gets from its next start on, as a rollout does.

        Args:
            name: The part.
            changed: Variables to set beside its others.
        """
        self._parts = [replace(part, env=part.env | changed) if part.name == name else part for part in self._parts]

    def mend(self) -> None:
        """Start again, on their ports, the parts that have ended.

        Raises:
            CannotRun, OSError: If one does not come back; the message stays in the state until the next success.
        """
        self.poll()
        self.state.message = ""
        try:
            for part in self.state.parts:
                if part.exit_code is not None:
                    self._say(f"{part.name}: starting again")
                    self.restart_part(part.name)
        except (CannotRun, OSError) as error:
            self.state.message = str(error)
            raise
        finally:
            self.state.mends += 1
            self._save()

    def _save(self) -> None:
        """Write the state down; once the parts run, a full disk costs the record and not the stack."""
        try:
            write_state(self.state)
        except (OSError, CannotRun) as error:
            self._say(f"the record of the stack cannot be written: {error}")

    def pids(self, name: str) -> list[int]:
        """Return the live processes of a part, its leader first."""
        record = self.part(name).record
        if record is None or not is_alive(record):
            return []
        return [record.pid, *(pid for pid in group_members(record) if pid != record.pid)]

    def stop(self, *, failed: bool = False) -> list[StopReport]:
        """Stop all parts, those last that watch the others.

        Args:
            failed: Keep "failed" as the phase.
        """
        with uninterrupted():
            self.state.phase = "failed" if failed else "stopping"
            self._save()
            # Prometheus first: else it would see the others leave and page for it
            reports = [self.stop_part(part.name) for part in reversed(self._parts)]
            self.poll()
            self.state.phase = "failed" if failed else "stopped"
            self._save()
        return reports
