"""What is known of a model's kernels, as gauges: an adapter without arithmetic."""

from __future__ import annotations

from exporters.gauges import Gauges
from exporters.kernels.watch import KernelState
from exporters.names_kernels import SOURCE_STATES

__all__ = ["kernel_gauges"]


def kernel_gauges(state: KernelState, source: str) -> Gauges:
    """Return the gauges; a kernel that was not measured has none.

    Args:
        state: After the latest window.
        source: Word for what measures.
    """
    named = {one.kernel for one in state.regressions}
    gauges: Gauges = {
        "model_kernel_probe_up": {(source,): float(bool(state.fastest_seconds))},
        "model_kernel_probe_state": {(word,): float(state.state == word) for word in SOURCE_STATES},
        "model_kernel_seconds": {(kernel,): seconds for kernel, seconds in state.fastest_seconds.items()},
        "model_kernel_slowdown_ratio": {(kernel,): one.ratio for kernel, one in state.judged.items()},
        "model_kernel_regression_state": {(kernel,): float(kernel in named) for kernel in state.judged},
    }
    if state.common is not None:
        gauges["model_kernel_common_ratio"] = {(): state.common}
    if state.took_seconds is not None:
        gauges["model_kernel_canary_seconds"] = {(): state.took_seconds}
    return gauges
