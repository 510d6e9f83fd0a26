"""GPU: whether the card is the layer at fault, as dcgm-exporter sees it, beside the model's own time."""

from __future__ import annotations

from typing import Final

from dashboards.boards.variables import SERVICE
from dashboards.expr import is_, mean, pick, quantile
from dashboards.spec import Board, Line, Panel, Query, Section

__all__ = ["BOARD"]

_NO_GPU = (
    "No GPU is watched: start dcgm-exporter beside it (profile gpu of the compose file). A service on the CPU has none."
)
_EMPTY = "this machine has no GPU, and no dcgm-exporter is scraped"
_MIB = 1 << 20
_FORWARD = is_("stage", "model.forward")


def _gpu(expr: str, legend: str = "GPU {{gpu}}") -> Query:
    return Query(expr, legend, may_be_empty=_EMPTY)


_MODEL: Final = (
    Panel(
        key="forward",
        id=1,
        title="The model's own time",
        kind="timeseries",
        unit="s",
        description="P95 and mean of model.forward. It moves with the GPU; while it stands still, the GPU is not what "
        "slows requests.",
        no_data="No requests in this time.",
        queries=(
            Query(quantile(0.95, "model_stage_seconds", _FORWARD), "P95"),
            Query(mean("model_stage_seconds", _FORWARD), "mean"),
        ),
        width=12,
        minimum=0,
    ),
    Panel(
        key="host",
        id=2,
        title="The host beside it",
        kind="timeseries",
        unit="percentunit",
        description="Busy share of the host's CPU. A full host starves the GPU: low utilisation below and slow "
        "requests above.",
        no_data="The exporter is not there.",
        queries=(Query(f"max({pick('runtime_host_cpu_ratio')})", "host CPU"),),
        width=12,
        minimum=0,
        maximum=1,
    ),
)

_CARD: Final = (
    Panel(
        key="utilisation",
        id=3,
        title="Busy",
        kind="timeseries",
        unit="percentunit",
        description="Share of time in which any kernel ran. 100% does not mean full: see what of it works.",
        no_data=_NO_GPU,
        queries=(_gpu("DCGM_FI_DEV_GPU_UTIL / 100"),),
        lines=(Line(0.95, "orange"),),
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="engines",
        id=4,
        title="What of it works",
        kind="timeseries",
        unit="percentunit",
        description="Share of cycles that the graphics engine, the tensor cores and the memory interface were "
        "active. Memory "
        "high and tensor low: bound by memory, larger batches help little.",
        no_data=_NO_GPU,
        queries=(
            _gpu("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU {{gpu}} engine"),
            _gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "GPU {{gpu}} tensor cores"),
            _gpu("DCGM_FI_PROF_DRAM_ACTIVE", "GPU {{gpu}} memory"),
        ),
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="memory",
        id=5,
        title="Memory",
        kind="timeseries",
        unit="bytes",
        description="Memory in use and free. In use that climbs without more traffic is not released after requests.",
        no_data=_NO_GPU,
        queries=(
            _gpu(f"DCGM_FI_DEV_FB_USED * {_MIB}", "GPU {{gpu}} used"),
            _gpu(f"DCGM_FI_DEV_FB_FREE * {_MIB}", "GPU {{gpu}} free"),
        ),
        minimum=0,
    ),
    Panel(
        key="clock",
        id=6,
        title="Clock",
        kind="timeseries",
        unit="hertz",
        description="Clock of the multiprocessors. It falls with heat or the power limit: all kernels slower alike.",
        no_data=_NO_GPU,
        queries=(_gpu("DCGM_FI_DEV_SM_CLOCK * 1e6"),),
        minimum=0,
    ),
    Panel(
        key="temperature",
        id=7,
        title="Temperature",
        kind="timeseries",
        unit="celsius",
        description="Temperature of the card; near its limit the clock falls.",
        no_data=_NO_GPU,
        queries=(_gpu("DCGM_FI_DEV_GPU_TEMP"),),
    ),
    Panel(
        key="power",
        id=8,
        title="Power",
        kind="timeseries",
        unit="watt",
        description="Power draw; at its limit the clock falls.",
        no_data=_NO_GPU,
        queries=(_gpu("DCGM_FI_DEV_POWER_USAGE"),),
        minimum=0,
    ),
    Panel(
        key="xid",
        id=9,
        title="Last driver error (XID)",
        kind="stat",
        unit="none",
        description="Code of the last error that the driver reported; 0 is none. 31: illegal access; 43, 45: an "
        "application "
        "was stopped; 48, 63, 64: memory; 79: the card fell off the bus.",
        no_data=_NO_GPU,
        queries=(_gpu("max by (gpu) (DCGM_FI_DEV_XID_ERRORS)"),),
        width=24,
        height=4,
        lines=(Line(1, "red"),),
        decimals=0,
    ),
)

_NO_NVML = "No GPU is seen: NVML's library or driver is not there (gpu_exporter_state says which)."
_NO_DRIVER = "this machine has no GPU driver"

_NVML: Final = (
    Panel(
        key="cards",
        id=10,
        title="Cards that answer",
        kind="timeseries",
        unit="none",
        description="1 while a card that was ever seen answers, 0 since it is lost, or NVML with it. A lost card has "
        "no other figure.",
        no_data=_NO_NVML,
        queries=(
            Query(f"min by (gpu) ({pick('gpu_card_up')})", "GPU {{gpu}}", may_be_empty=_NO_DRIVER),
            Query(f"max({pick('gpu_exporter_up')})", "NVML"),
        ),
        width=12,
        minimum=0,
        maximum=1,
        decimals=0,
    ),
    Panel(
        key="owners",
        id=11,
        title="Memory by program",
        kind="timeseries",
        unit="bytes",
        description="Who holds memory on the card: own are workers of this service, other is everybody else.",
        no_data=_NO_NVML,
        queries=(
            Query(
                f"sum by (gpu, owner, process) ({pick('gpu_process_memory_bytes')})",
                "GPU {{gpu}} {{owner}} {{process}}",
                may_be_empty=_NO_DRIVER,
            ),
        ),
        width=12,
        minimum=0,
    ),
    Panel(
        key="load",
        id=14,
        title="Busy, and the service degraded for it",
        kind="timeseries",
        unit="percentunit",
        description="Share of time in which any kernel ran, by NVML, and 1 while the service answers by the CPU's "
        "model since its card is saturated. Busy alone is money well spent.",
        no_data=_NO_NVML,
        queries=(
            Query(f"max by (gpu) ({pick('gpu_utilization_ratio')})", "GPU {{gpu}}", may_be_empty=_NO_DRIVER),
            Query('max(model_degraded_state{reason="gpu_saturated"})', "degraded"),
        ),
        lines=(Line(0.95, "orange"),),
        width=12,
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="room",
        id=15,
        title="Memory left",
        kind="timeseries",
        unit="percentunit",
        description="Free share of the card's memory, by NVML. Under 2% the next allocation fails.",
        no_data=_NO_NVML,
        queries=(
            Query(
                f"min by (gpu) ({pick('gpu_memory_free_bytes')} / {pick('gpu_memory_size_bytes')})",
                "GPU {{gpu}}",
                may_be_empty=_NO_DRIVER,
            ),
        ),
        lines=(Line(0.02, "red"),),
        width=12,
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="throttle",
        id=12,
        title="What holds the clock down",
        kind="timeseries",
        unit="none",
        description="Reasons that hold the clock down now, from the card itself. Idle is none to worry about.",
        no_data="Nothing holds a clock down, or no GPU is seen.",
        queries=(
            Query(
                f"max by (gpu, reason) ({pick('gpu_throttle_state')}) > 0",
                "GPU {{gpu}} {{reason}}",
                may_be_empty=_NO_DRIVER,
            ),
        ),
        width=12,
        minimum=0,
        maximum=1,
        decimals=0,
    ),
    Panel(
        key="kernels",
        id=13,
        title="Kernels against their baseline",
        kind="timeseries",
        unit="none",
        description="Time of each kernel of the canary over its baseline, less what all slowed down by: 1 is as "
        "before. One that stays above 1.25 got slower.",
        no_data="No kernel is timed: set INFERDECK_EXPORTER_KERNEL_MODEL; the baseline takes eight windows.",
        queries=(
            Query(
                f"max by (kernel) ({pick('model_kernel_slowdown_ratio')})",
                "{{kernel}}",
                may_be_empty="no model is set to be timed",
            ),
        ),
        lines=(Line(1.25, "orange"),),
        width=12,
    ),
)

BOARD: Final = Board(
    "gpu",
    "GPU",
    "Whether the GPU is the layer at fault. Without a GPU only the first row and the kernels are shown.",
    (
        Section("The model and its host", _MODEL),
        Section("The card", _CARD),
        Section("The card by NVML, and kernels", _NVML),
    ),
    (SERVICE,),
)
