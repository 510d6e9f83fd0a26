"""What stands in for the model, its memory, and its sessions: panels of the board about serving."""

from __future__ import annotations

from typing import Final

from dashboards.spec import Panel, Query

__all__ = ["DEGRADATION"]

_NONE: Final = "No service is scraped."
_NO_DEVICE: Final = "the model computes in host memory that is not budgeted, so no device is looked at"

DEGRADATION: Final = (
    Panel(
        key="degraded",
        id=20,
        title="The CPU's model answers",
        kind="timeseries",
        unit="short",
        description="1 while the service is degraded for this reason. VIPs are answered at once, others as "
        "the settings say: later (202) or now.",
        no_data=_NONE,
        queries=(Query("max by (reason) (model_degraded_state)", "{{reason}}"),),
        width=6,
        minimum=0,
    ),
    Panel(
        key="results",
        id=21,
        title="Answers that are fetched later",
        kind="timeseries",
        unit="reqps",
        description="Promised by a 202, stored, fetched, expired. Stored but not fetched: callers do not come back.",
        no_data=_NONE,
        queries=(Query("sum by (event) (rate(model_results_total[$__rate_interval]))", "{{event}}"),),
        width=6,
        minimum=0,
    ),
    Panel(
        key="model-memory",
        id=22,
        title="Refused for want of memory",
        kind="timeseries",
        unit="reqps",
        description="Requests for which the model's device had no memory, by what their like took. Smaller ones are "
        "answered.",
        no_data=_NONE,
        queries=(Query("sum(rate(model_memory_short_total[$__rate_interval]))", "refused"),),
        alerts=("batch_too_large",),
        width=6,
        minimum=0,
    ),
    Panel(
        key="model-memory-free",
        id=23,
        title="Memory of the model's device",
        kind="timeseries",
        unit="bytes",
        description="What is free, as the service sees it when it decides whether a batch may be sent, and the most "
        "that was held since the model was loaded.",
        no_data=_NONE,
        queries=(
            Query("min(model_memory_free_bytes)", "free", may_be_empty=_NO_DEVICE),
            Query("max(model_memory_peak_bytes)", "most held", may_be_empty=_NO_DEVICE),
        ),
        width=6,
        minimum=0,
    ),
    Panel(
        key="model-sessions",
        id=24,
        title="Model sessions of a worker",
        kind="timeseries",
        unit="short",
        description="All that one process holds, and those beyond the first of a model: memory that is taken twice.",
        no_data=_NONE,
        queries=(
            Query("max(model_open_sessions)", "open"),
            Query("max(model_duplicate_sessions)", "of a model that is there already"),
        ),
        alerts=("model_loaded_twice",),
        width=6,
        minimum=0,
    ),
    Panel(
        key="tokenizer-cache",
        id=25,
        title="Texts whose tokens are kept",
        kind="timeseries",
        unit="short",
        description="What a worker keeps, and the most that it may keep; 0: the cache is off. Above its bound it grows "
        "with every new text.",
        no_data=_NONE,
        queries=(
            Query("max(model_tokenizer_cached_texts)", "kept"),
            Query("max(model_tokenizer_cache_bound_texts)", "may be kept"),
        ),
        alerts=("tokenizer_cache_growth",),
        width=6,
        minimum=0,
    ),
    Panel(
        key="tokenizer-loads",
        id=26,
        title="Loads of the tokenizer",
        kind="timeseries",
        unit="s",
        description="The quickest and the slowest load of a worker's last start. Far apart, with several at one time: "
        "they wait for each other.",
        no_data=_NONE,
        queries=(Query("max by (which) (model_tokenizer_load_seconds)", "{{which}}"),),
        alerts=("tokenizer_load_lock",),
        width=6,
        minimum=0,
    ),
)
