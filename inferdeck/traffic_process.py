"""Traffic as a child process: starts it, changes its rate, reads its tally, ends it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.stack.process import ProcessRecord, StopReport, log_tail, start, stop
from inferdeck.traffic import TrafficPlan
from inferdeck.version import ROOT

__all__ = ["TrafficProcess"]


class TrafficProcess:
    """One run of `python -m inferdeck.traffic`; it ends by itself when this process ends."""

    def __init__(self, plan: TrafficPlan, log: Path) -> None:
        """Start it.

        Args:
            plan: What to send.
            log: Where its complaints go.

        Raises:
            CannotRun: If it cannot start.
        """
        self._log = log
        # -P: a `service` folder in the working folder must not win over ours
        argv = (sys.executable, "-P", "-m", "inferdeck.traffic", json.dumps(asdict(plan)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        self._record, self._child = start("traffic", argv, log=log, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe)
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._first: dict[str, Any] = {}
        # only the last line is kept: the tally is cumulative
        self._last: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, name="traffic-tally", daemon=True)
        self._reader.start()

    @property
    def record(self) -> ProcessRecord:
        """Return the process as it was written down."""
        return self._record

    def _read(self) -> None:
        stdout = self._child.stdout
        for line in stdout or ():
            try:
                told = json.loads(line)
            except ValueError:
                continue  # a warning of a library on stdout is no tally
            if not isinstance(told, dict):
                continue
            if told.get("ready"):
                self._first = told
                self._ready.set()
            else:
                self._last = told
        self._ended.set()
        self._ready.set()

    def wait_ready(self, timeout_seconds: float = 60.0) -> dict[str, Any]:
        """Wait until the reviews are read; nothing is sent before `go`.

        Returns:
            Shares of the reviews that pass the contract before and after cleaning.

        Raises:
            CannotRun: If it ends or takes longer.
        """
        self._ready.wait(timeout_seconds)
        if not self._first:
            words = " | ".join(log_tail(self._log, 2))
            raise CannotRun(f"the traffic generator did not start: {words or 'no reason given'}", f"read {self._log}")
        return dict(self._first.get("reviews", {}))

    def go(self) -> None:
        """Let the first request leave.

        Raises:
            CannotRun: If it has ended.
        """
        self._tell("go\n")

    def set_rate(self, rate: float) -> None:
        """Change the rate, in requests a second.

        Raises:
            CannotRun: If it has ended.
        """
        self._tell(f"rate {rate}\n")

    def _tell(self, line: str) -> None:
        try:
            if self._child.stdin is None or self._child.stdin.closed:
                raise BrokenPipeError
            self._child.stdin.write(line.encode())
            self._child.stdin.flush()
        except OSError as error:
            raise CannotRun("the traffic generator has ended", f"read {self._log}") from error

    def tally(self) -> dict[str, Any]:
        """Return the newest counts: `sent`, `by_status`, `degraded`; at most a second old."""
        return dict(self._last)

    def stop(self, grace_seconds: float = 20.0) -> dict[str, Any]:
        """End it, waiting for answers in flight, and return its last tally.

        Args:
            grace_seconds: After this it is stopped as any process is.
        """
        if self._child.stdin is not None and not self._child.stdin.closed:
            # broken when it has ended by itself
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        try:
            self._child.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()
        return self.tally()

    def kill(self) -> StopReport:
        """End it at once."""
        report = stop(self._record, grace_seconds=1.0, reap=self._child.poll)
        self._close()
        return report

    def _close(self) -> None:
        """Close the pipes of a child that has ended."""
        self._reader.join(5.0)
        for pipe in (self._child.stdin, self._child.stdout):
            # what was never read by a child that is gone cannot be flushed to it
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
