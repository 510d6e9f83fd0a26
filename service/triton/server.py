"""One life of tritonserver: its command, its processes, and what must be cleaned up when it has died."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from service.triton.home import Home
from service.triton.last_exit import Exit, end_of
from service.triton.repository import MODEL

__all__ = ["Address", "Server", "end_orphans", "remove_shared_memory", "sweep_shared_memory"]

_SHM = Path("/dev/shm")  # noqa: S108 - where Triton's Python backend puts its regions
_Stub = tuple[int, float]


@dataclass(frozen=True)
class Address:
    """Where a Triton listens.

    Attributes:
        host: Address of its listeners.
        http_port: Port of inference.
        metrics_port: Port of its own metrics.
    """

    host: str
    http_port: int
    metrics_port: int


class Server:
    """A running tritonserver, with its stubs noted by pid and start time as long as it lives.

    Args:
        home: Its environment.
        repository: Folder of models.
        address: Where it listens.
        log: File that its output is appended to.
        traces: OTLP/HTTP address for its own spans, or None. They go there as JSON.
    """

    def __init__(self, home: Home, repository: Path, address: Address, log: Path, traces: str | None = None) -> None:
        self._log = log
        # A prefix of our own: regions that a dead server leaves behind are told from those of others by it.
        self.prefix = f"inferdeck-triton-{os.getpid()}-{address.http_port}-"
        self._stubs: set[_Stub] = set()
        arguments = [
            str(home.server),
            f"--model-repository={repository}",
            f"--backend-directory={home.backends}",
            f"--backend-config=python,shm-region-prefix-name={self.prefix}",
            "--disable-auto-complete-config",
            # models are taken out and put back while it runs: that is what heals a dead stub
            "--model-control-mode=explicit",
            f"--load-model={MODEL}",
            f"--http-address={address.host}",
            f"--http-port={address.http_port}",
            f"--metrics-address={address.host}",
            f"--metrics-port={address.metrics_port}",
            # its gRPC dies of cancelled calls (server#7368); nobody of ours uses it
            "--allow-grpc=false",
            "--exit-timeout-secs=5",
        ]
        if traces is not None:
            told = ("mode=opentelemetry", f"opentelemetry,url={traces}", "rate=1", "level=TIMESTAMPS")
            arguments += [part for one in told for part in ("--trace-config", one)]
            arguments += ["--trace-config", "opentelemetry,resource=service.name=triton"]
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._log_began = os.fstat(handle).st_size
        try:
            self.process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                env={**os.environ, **home.environment()},
            )
        finally:
            os.close(handle)
        self.started = time.monotonic()

    def note_stubs(self) -> list[int]:
        """Note the stubs that it has now, and return their pids: once it is dead nobody can tell whose they were."""
        alive: list[int] = []
        try:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self._stubs.add((child.pid, child.create_time()))
                alive.append(child.pid)
        except psutil.Error:
            return alive
        return alive

    def ended(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self.process.poll()

    def last_exit(self, *, stopped: bool) -> Exit:
        """Return what its end tells, once it has ended.

        Args:
            stopped: Whether its supervisor killed it.
        """
        return end_of(self.process.returncode or 0, self._log, self._log_began, stopped=stopped)

    def stop(self, grace_seconds: float = 8.0) -> None:
        """End it, its stubs and its regions: TERM, then KILL."""
        self.note_stubs()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.clean()

    def clean(self) -> int:
        """End stubs that outlived it and remove its regions; return how many stubs were ended."""
        ended = end_orphans(self._stubs)
        remove_shared_memory(self.prefix)
        self._stubs.clear()
        return ended


def end_orphans(stubs: set[_Stub], patience_seconds: float = 5.0, clock: Callable[[], float] = time.monotonic) -> int:
    """End the processes that still run, and return how many had to be killed.

    Idle stubs of a dead server end by themselves within 4 s; one that was executing stays for ever and is deaf to TERM.

    Args:
        stubs: Pid and start time of each: a pid alone may be a stranger's by now.
        patience_seconds: Time for them to end by themselves.
        clock: Monotonic seconds.
    """
    until = clock() + patience_seconds
    while (left := [found for one in stubs if (found := _same(one)) is not None]) and clock() < until:
        time.sleep(0.1)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(left, timeout=2)
    return len(left)


def _same(stub: _Stub) -> psutil.Process | None:
    try:
        process = psutil.Process(stub[0])
        alive = process.create_time() == stub[1] and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return None
    return process if alive else None


def remove_shared_memory(prefix: str, folder: Path = _SHM) -> int:
    """Remove the regions with this prefix and return how many there were; only once nobody uses them any more."""
    removed = 0
    for region in folder.glob(f"{prefix}*"):
        region.unlink(missing_ok=True)
        removed += 1
    return removed


def sweep_shared_memory(folder: Path = _SHM) -> int:
    """Remove the regions of supervisors that are dead, and return how many: one that was killed could not do it."""
    removed = 0
    for region in folder.glob("inferdeck-triton-*-*"):
        pid = region.name.split("-")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            region.unlink(missing_ok=True)
            removed += 1
    return removed
