"""Metrics about GPU devices: of the exporter beside the service, and of `python -m exporters.gpu` alike."""

from __future__ import annotations

from typing import Final

from exporters.metric import Kind, Metric

__all__ = ["CARD_STATES", "CLOCKS", "ECC_KINDS", "GPU", "GPU_LIMIT", "OWNERS", "PROCESS_LIMIT", "READINGS", "THROTTLES"]

# Eight cards in seven MIG instances each, and the cards themselves.
GPU_LIMIT: Final = 64
# Programs on all cards together that are told apart by name.
PROCESS_LIMIT: Final = 16

# What NVML, or one card, says; all but "ok" mean that there is no value, never that the value is 0.
CARD_STATES: Final = (
    "ok",
    "starting",
    "silent",
    "library_missing",
    "driver_gone",
    "driver_mismatch",
    "no_device",
    "lost",
    "reset_required",
    "no_permission",
    "not_supported",
    "error",
)
READINGS: Final = (
    "utilization",
    "memory",
    "temperature",
    "power",
    "power_limit",
    "clocks",
    "throttle",
    "ecc",
    "processes",
)
CLOCKS: Final = ("sm", "memory")
ECC_KINDS: Final = ("corrected", "uncorrected")
OWNERS: Final = ("own", "other", "unknown")
# Bits of nvmlClocksEventReason* in nvml.h, lowest first; those that are no slowdown (idle, clocks that somebody set)
# are kept, since they explain a low clock as well.
THROTTLES: Final = (
    "idle",
    "application_clocks",
    "power_cap",
    "hardware_slowdown",
    "sync_boost",
    "software_thermal",
    "hardware_thermal",
    "power_brake",
    "display_clock",
)


def _metric(name: str, unit: str, text: str, /, *, kind: Kind = "gauge", **closed: tuple[str, ...]) -> Metric:
    """Return a metric of one card; a label without values takes them from data."""
    limits = {"gpu": GPU_LIMIT} | {label: PROCESS_LIMIT for label, values in closed.items() if not values}
    return Metric(name, kind, unit, text, labels={"gpu": (), **closed}, limits=limits, source="NVML")


GPU: Final = (
    Metric("gpu_exporter_up", "gauge", "state", "1 while NVML answers, 0 while it does not.", source="NVML"),
    Metric(
        "gpu_exporter_state",
        "gauge",
        "state",
        "1 for what NVML's last answer came to, 0 for the others.",
        labels={"state": CARD_STATES},
        source="NVML",
    ),
    _metric("gpu_card_up", "state", "1 while a card that was ever seen answers, 0 while it does not."),
    _metric("gpu_card_state", "state", "1 for what the card's last answer came to.", state=CARD_STATES),
    _metric("gpu_reading_up", "state", "1 for what the card tells, 0 for what is absent.", reading=READINGS),
    _metric("gpu_card_info", "info", "Always 1; the card's model and its driver.", name=(), driver=()),
    _metric("gpu_utilization_ratio", "ratio", "Share of the last sample period (1/6 to 1 s) with a kernel running."),
    _metric("gpu_memory_busy_ratio", "ratio", "Share of the last sample period in which memory was read or written."),
    _metric("gpu_memory_size_bytes", "bytes", "Memory of the card, or of the MIG instance."),
    _metric("gpu_memory_used_bytes", "bytes", "Memory in use, what the driver keeps for itself included."),
    _metric("gpu_memory_free_bytes", "bytes", "Memory that can be had."),
    _metric("gpu_temperature_celsius", "celsius", "Temperature of the chip."),
    _metric("gpu_power_watts", "watts", "Power draw of the card."),
    _metric("gpu_power_limit_watts", "watts", "Power that the card is held to."),
    _metric("gpu_clock_hertz", "hertz", "Clock now.", clock=CLOCKS),
    _metric("gpu_throttle_state", "state", "1 for each reason that holds the clock down now.", reason=THROTTLES),
    _metric("gpu_ecc_errors_total", "errors", "Memory errors in the card's life.", kind="counter", ecc=ECC_KINDS),
    _metric(
        "gpu_process_memory_bytes",
        "bytes",
        "Memory of programs on the card, by whether they are workers of this service.",
        owner=OWNERS,
        process=(),
    ),
    _metric("gpu_processes", "processes", "Processes on the card.", owner=OWNERS),
)
