"""All diagnosis steps by name: what a page may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runbooks.evidence import Evidence, StepResult
from runbooks.steps import (
    canary,
    collector,
    contract,
    cpu,
    descriptors,
    device_memory,
    disk,
    event_loop,
    executor,
    filters,
    garbage,
    gpu,
    images,
    kubernetes,
    labels,
    latency,
    liveness,
    long_texts,
    masking,
    padding,
    preprocessing,
    quality,
    replayed,
    stages,
    standstill,
    start,
    stream,
    symptoms,
    telemetry,
    timeouts,
    tokenizing,
    triton,
    triton_exit,
    triton_queue,
    workers,
)

__all__ = ["STEPS", "StepFunction"]

StepFunction = Callable[[Evidence], StepResult]

STEPS: Final[Mapping[str, StepFunction]] = {
    f"{module.__name__.rsplit('.', 1)[1]}.{name}": getattr(module, name)
    for module in (
        canary,
        collector,
        contract,
        cpu,
        descriptors,
        device_memory,
        disk,
        event_loop,
        executor,
        filters,
        garbage,
        gpu,
        images,
        kubernetes,
        labels,
        latency,
        liveness,
        long_texts,
        masking,
        padding,
        preprocessing,
        quality,
        replayed,
        stages,
        standstill,
        start,
        stream,
        symptoms,
        telemetry,
        timeouts,
        tokenizing,
        triton,
        triton_exit,
        triton_queue,
        workers,
    )
    for name in module.__all__
}
