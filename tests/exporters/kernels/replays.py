"""Windows of kernel times as a GPU gives them, made from a seed: the real verdict runs over them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from exporters.kernels.reading import Window

# A transformer's kernels and their times in one call, seconds: from 6 us to 240 us.
KERNELS: Mapping[str, float] = {
    "gemm_qkv": 240e-6,
    "gemm_projection": 120e-6,
    "gemm_up": 210e-6,
    "gemm_down": 205e-6,
    "attention": 160e-6,
    "softmax": 44e-6,
    "layer_norm": 31e-6,
    "gelu": 27e-6,
    "residual": 18e-6,
    "embedding": 12e-6,
    "bias": 6e-6,
}


class Replayed:
    """A source of windows with a GPU's noise.

    Each run moves by 2% by itself, one run in 20 takes 1.2 to 3 times as long (another context had the card), and each
    window has a clock of its own (boost, temperature: 3%), which moves all kernels together.
    """

    name = "cuda_events"

    def __init__(self, seed: int, slower: Mapping[str, float] | None = None, driver: str = "580") -> None:
        self.slower = dict(slower or {})
        self.driver = driver
        self._noise = np.random.default_rng(seed)

    def measure(self) -> Window:
        """The next window."""
        clock = self._noise.normal(1.0, 0.03)
        seconds = {}
        for kernel, time in KERNELS.items():
            runs = time * self.slower.get(kernel, 1.0) * clock * self._noise.lognormal(0.0, 0.02, 30)
            runs *= np.where(self._noise.random(30) < 0.05, self._noise.uniform(1.2, 3.0, 30), 1.0)
            # Told in steps of 32 ns, as the activity records of CUPTI are.
            seconds[kernel] = tuple(float(value) for value in np.round(runs / 32e-9) * 32e-9)
        return Window(seconds, "32x256", {"driver": self.driver}, 32e-9)
