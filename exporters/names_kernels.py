"""Metrics about a model's kernels: of the canary that the exporter runs."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["KERNELS", "KERNEL_LIMIT", "SOURCES", "SOURCE_STATES"]

# Kernels that get a series by name: those with most time. The worked example has 20.
KERNEL_LIMIT: Final = 32
SOURCES: Final = ("ort_profile", "cuda_events", "cupti_activity")
SOURCE_STATES: Final = ("ok", "learning", "not_installed", "no_device", "no_model", "no_times", "error")

_KERNEL: Final = {"kernel": ()}
_LIMIT: Final = {"kernel": KERNEL_LIMIT}

KERNELS: Final = (
    Metric(
        "model_kernel_probe_up",
        "gauge",
        "state",
        "1 while kernel times are measured, 0 while they are not.",
        labels={"probe": SOURCES},
        source="canary",
    ),
    Metric(
        "model_kernel_probe_state",
        "gauge",
        "state",
        "1 for what the last window of the canary came to; learning means that the baseline is not complete yet.",
        labels={"state": SOURCE_STATES},
        source="canary",
    ),
    Metric(
        "model_kernel_seconds",
        "gauge",
        "seconds",
        "Time of a kernel in one run of the canary: fastest of the last window.",
        labels=_KERNEL,
        limits=_LIMIT,
        source="canary",
    ),
    Metric(
        "model_kernel_slowdown_ratio",
        "gauge",
        "ratio",
        "Time of a kernel over its baseline, less what all kernels slowed down by; 1 is as before.",
        labels=_KERNEL,
        limits=_LIMIT,
        source="canary",
    ),
    Metric(
        "model_kernel_regression_state",
        "gauge",
        "state",
        "1 for a kernel that was slower than its baseline allows in two windows in a row.",
        labels=_KERNEL,
        limits=_LIMIT,
        source="canary",
    ),
    Metric(
        "model_kernel_common_ratio",
        "gauge",
        "ratio",
        "What all kernels together slowed down by against the baseline: the machine, not a kernel.",
        source="canary",
    ),
    Metric(
        "model_kernel_canary_seconds",
        "gauge",
        "seconds",
        "What the last window of the canary took, start of its session included: the cost of this probe.",
        source="canary",
    ),
)
