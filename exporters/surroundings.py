"""What the exporter looks at beside the rows: host, disks, GPUs, and a model's kernels on a canary."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from exporters.disk import free_space
from exporters.gauges import Gauges
from exporters.gpu.gauges import gpu_gauges
from exporters.gpu.nvml import NvmlReader
from exporters.gpu.sampler import GpuSampler
from exporters.host import HostSampler
from exporters.kernels.baseline import BaselineStore
from exporters.kernels.gauges import kernel_gauges
from exporters.kernels.ort_profile import OrtCanary
from exporters.kernels.watch import KernelWatch
from exporters.settings import ExporterSettings

__all__ = ["Surroundings"]

KERNELS_NAME: Final = "kernels.json"


class Surroundings:
    """All of it, as one thing to start, ask and stop."""

    def __init__(self, settings: ExporterSettings) -> None:
        """Prepare; nothing is looked at yet.

        Args:
            settings: The exporter's settings; the state folder exists.
        """
        self._state_dir = settings.state_dir
        self._host = HostSampler()
        self._gpus = GpuSampler(NvmlReader().read, settings.gpu_seconds) if settings.gpu else None
        self._kernels: KernelWatch | None = None
        if settings.kernel_model is not None:
            store = BaselineStore(settings.state_dir / KERNELS_NAME)
            canary = OrtCanary(settings.kernel_model)
            self._kernels = KernelWatch(canary, store, interval_seconds=settings.kernel_seconds)

    def start(self) -> None:
        """Look for the first time, and from threads again and again."""
        # The share of busy CPU time is a difference: with this look, the first scrape has one.
        self._host.sample()
        if self._gpus:
            self._gpus.start()
        if self._kernels:
            self._kernels.start()

    def stop(self) -> None:
        """Stop the threads; a look that hangs in a driver is left to the end of the process."""
        if self._gpus:
            self._gpus.stop()
        if self._kernels:
            self._kernels.stop()

    def gauges(self, ring_dir: Path, worker_pids: Collection[int]) -> Gauges:
        """Return all gauges.

        Args:
            ring_dir: Folder of the rows.
            worker_pids: Live workers of the service, to tell its memory on a GPU from that of others.
        """
        gauges = self._host.sample() | free_space({"state": self._state_dir, "rows": ring_dir})
        if self._gpus:
            gauges |= gpu_gauges(self._gpus.latest(), worker_pids)
        if self._kernels:
            gauges |= kernel_gauges(self._kernels.state, self._kernels.source.name)
        return gauges

    def health(self) -> dict[str, str]:
        """Return how the optional ones are doing, for /healthz."""
        kernels = self._kernels.state if self._kernels else None
        return {
            "gpu": self._gpus.latest().state if self._gpus else "off",
            "kernels": (kernels.detail or kernels.state) if kernels else "off",
        }
