"""What a program's `cause` may do to the stack: the handle it is given."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from inferdeck.stack.embedded import EmbeddedStack
from inferdeck.stack.parts import cluster_targets
from inferdeck.stack.process import kill_group
from inferdeck.stack.state import write_private
from inferdeck.stack.stream import stream_folder
from inferdeck.traffic_process import TrafficProcess
from probes.reader import RingError, RingFile, list_rings

__all__ = ["StackHandle"]


class StackHandle:
    """The running stack, as a program in the drill's process sees it."""

    def __init__(self, stack: EmbeddedStack, traffic: TrafficProcess | None, base_rate: float) -> None:
        """Take the stack.

        Args:
            stack: The running stack.
            traffic: Its traffic, if there is any.
            base_rate: The traffic's usual rate, in requests a second.
        """
        self._stack = stack
        self._traffic = traffic
        self.base_rate = base_rate

    @property
    def service_url(self) -> str:
        """Return the base URL of the service."""
        return self._stack.plan.url("service_port")

    @property
    def admin_url(self) -> str:
        """Return the base URL of the service's admin port."""
        return self._stack.plan.url("admin_port")

    @property
    def exporter_url(self) -> str:
        """Return the base URL of the exporter."""
        return self._stack.plan.url("exporter_port")

    @property
    def service_pids(self) -> list[int]:
        """Return the live processes of the service, the leader first."""
        return self._stack.pids("service")

    @property
    def worker_pids(self) -> list[int]:
        """Return the processes that serve requests, by worker number: the live ones among those that record."""
        found = {}
        for path in list_rings(self.ring_dir):
            with suppress(RingError, OSError, ValueError), RingFile(path) as ring:
                if ring.owner_alive():
                    found[ring.header.worker] = ring.header.pid
        return [found[number] for number in sorted(found)]

    @property
    def exporter_pids(self) -> list[int]:
        """Return the live processes of the exporter, the leader first."""
        return self._stack.pids("exporter")

    @property
    def collector_pids(self) -> list[int]:
        """Return the live processes of Jaeger, the leader first; a program with COLLECTOR has one in its stack."""
        return self._stack.pids("jaeger")

    @property
    def state_dir(self) -> Path:
        """Return the stack's state folder."""
        return self._stack.plan.state_dir

    @property
    def ring_dir(self) -> Path:
        """Return the folder of the rows."""
        return self._stack.plan.ring_dir

    def kill_service(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to all processes of the service at once, SIGKILL by default."""
        self._signal("service", number)

    def kill_exporter(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to all processes of the exporter at once, SIGKILL by default."""
        self._signal("exporter", number)

    def kill_collector(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to all processes of Jaeger at once, SIGKILL by default."""
        self._signal("jaeger", number)

    def _signal(self, name: str, number: int) -> None:
        record = self._stack.part(name).record
        if record is not None:
            kill_group(record, number)

    @property
    def triton_url(self) -> str:
        """Return the base URL of Triton's HTTP service, in a stack that has one."""
        return self._stack.plan.url("triton_port")

    def triton_pids(self, *, stubs: bool = False) -> list[int]:
        """Return the live tritonserver, or its stubs; empty while there is none.

        Args:
            stubs: The processes that run the model instead of the server itself.
        """
        wanted = "triton_python_backend_stub" if stubs else "tritonserver"
        found = []
        for pid in self._stack.pids("triton"):
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                if Path(command).name == wanted:
                    found.append(pid)
        return found

    def kill_triton(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to Triton, its supervisor and its stubs at once, SIGKILL by default."""
        self._signal("triton", number)

    def restart_triton(self) -> None:
        """Stop Triton in an orderly way if it runs, start it again, and wait until it answers."""
        self._stack.restart_part("triton")

    def reach_triton_by(self, port: int) -> None:
        """Restart the service so that it asks Triton by another port of this machine, and wait until it is ready."""
        self._stack.set_environment("service", {"INFERDECK_SERVICE_TRITON_PORT": str(port)})
        self._stack.restart_part("service")

    def deploy_service(self, environment: dict[str, str]) -> None:
        """Restart the service with further variables, as a deploy of another configuration does; wait until ready."""
        self._stack.set_environment("service", environment)
        self._stack.restart_part("service")

    @property
    def stream_folder(self) -> Path:
        """Return the folder whose files the stack's stream reads; a program with STREAM has one in its stack."""
        return stream_folder(self.state_dir)

    @property
    def stream_url(self) -> str:
        """Return the base URL of the stream's metrics, in a stack that has one."""
        return self._stack.plan.url("stream_port")

    def deploy_stream(self, environment: dict[str, str]) -> None:
        """Restart the stream with further variables, as a deploy of another configuration does; wait until ready."""
        self._stack.set_environment("stream", environment)
        self._stack.restart_part("stream")

    def restart_service(self, *, wait: bool = True) -> None:
        """Stop the service in an orderly way if it runs, and start it again on its ports.

        Args:
            wait: Return when it is ready, not when it is started.
        """
        self._stack.restart_part("service", wait=wait)

    def restart_exporter(self) -> None:
        """Stop the exporter in an orderly way if it runs, start it again, and wait until it is ready."""
        self._stack.restart_part("exporter")

    def restart_prometheus(self) -> None:
        """Stop Prometheus in an orderly way, start it again on its data, and wait until it is ready."""
        self._stack.restart_part("prometheus")

    @contextmanager
    def scrape_cluster(self, address: str) -> Iterator[None]:
        """Let the stack's Prometheus scrape a kube-state-metrics while the body runs.

        Args:
            address: Its host:port.
        """
        path = cluster_targets(self.state_dir)
        write_private(path, json.dumps([{"targets": [address]}]))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def set_rate(self, rate: float) -> None:
        """Change the traffic's rate at once, in requests a second, 0 for none; without traffic it does nothing."""
        if self._traffic is not None:
            self._traffic.set_rate(rate)
