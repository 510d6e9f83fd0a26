from __future__ import annotations

from types import SimpleNamespace

import pytest

from exporters.kernels.cuda_events import CudaEvents
from exporters.kernels.reading import Absent, Window


def test_without_torch_there_is_no_time() -> None:
    """A machine that has no torch says so, and the callable is not run."""

    def load() -> object:
        raise ImportError("No module named 'torch'")

    assert (
        Absent("not_installed", "torch is missing")
        == CudaEvents(lambda: pytest.fail("ran"), kernel="k", shape="1x1", load=load).measure()
    )


def test_without_a_device_there_is_no_time() -> None:
    """A torch that was built for the CPU, or sees no card, has no events."""
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))

    assert (
        Absent("no_device", "torch sees no CUDA device")
        == CudaEvents(lambda: pytest.fail("ran"), kernel="k", shape="1x1", load=lambda: torch).measure()
    )


@pytest.mark.gpu
def test_a_product_of_matrices_takes_time_on_the_device() -> None:
    """On real hardware: more work takes longer, by the device's own clock."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    small, large = (torch.ones((size, size), device="cuda") for size in (512, 4096))

    times = []
    for matrix in (small, large):
        window = CudaEvents(lambda matrix=matrix: matrix @ matrix, kernel="gemm", shape="x").measure()  # type: ignore[misc]
        assert isinstance(window, Window)
        times.append(min(window.seconds["gemm"]))
    assert 0 < times[0] < times[1]
