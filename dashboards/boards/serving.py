"""Triton and scheduler: waiting, batching, and what Triton itself counts."""

from __future__ import annotations

from typing import Final

from dashboards.boards.serving_memory import DEGRADATION
from dashboards.boards.variables import SERVICE
from dashboards.expr import is_, mean, pick, quantile, share, total
from dashboards.spec import Board, Panel, Query, Section

__all__ = ["BOARD"]

_NO_REQUESTS = "No requests in this time."
_NO_TRITON = "No Triton is scraped. A model that runs inside the service's own process has none."
_EMPTY = "the model runs in the service's process; no Triton is scraped"
_EACH: Final = "sum by (model, version)"


def _grow(name: str) -> str:
    return f"{_EACH} (rate(nv_inference_{name}[$__rate_interval]))"


def _per_request(name: str) -> str:
    # Microseconds per request that Triton counted.
    return f"{_grow(name)} / 1e6 / ({_grow('request_success')} > 0)"


def _triton(expr: str, legend: str) -> Query:
    return Query(expr, legend, may_be_empty=_EMPTY)


_SCHEDULER: Final = (
    Panel(
        key="dispatch",
        id=1,
        title="Dispatch, and what it holds",
        kind="timeseries",
        unit="s",
        description="Mean time from hand-over to result, and of tokenizer and model inside it. The gap between them "
        "is the "
        "wait in the queue.",
        no_data=_NO_REQUESTS,
        queries=tuple(
            Query(mean("model_stage_seconds", is_("stage", stage)), stage)
            for stage in ("scheduler.dispatch", "sentiment.tokenizer", "model.forward")
        ),
        width=12,
        minimum=0,
    ),
    Panel(
        key="dispatch-p99",
        id=2,
        title="P99 of dispatch",
        kind="timeseries",
        unit="s",
        description="99 of 100 requests were handed over, worked on and brought back at least this fast.",
        no_data=_NO_REQUESTS,
        queries=(Query(quantile(0.99, "model_stage_seconds", is_("stage", "scheduler.dispatch")), "P99"),),
        width=6,
        minimum=0,
    ),
    Panel(
        key="in-flight",
        id=3,
        title="In flight",
        kind="timeseries",
        unit="short",
        description="Requests that started and have not ended, over live workers.",
        no_data="No worker is seen.",
        queries=(Query(f"sum({pick('model_requests_in_flight')})", "in flight"),),
        width=6,
        minimum=0,
    ),
    Panel(
        key="queue-wait-short",
        id=14,
        title="Wait by length",
        kind="timeseries",
        unit="s",
        description="Mean wait of short, medium and long texts in the queue of all. Long ones have a queue of their "
        "own, or the short ones wait behind them.",
        no_data=_NO_REQUESTS,
        queries=(
            Query(mean("model_queue_wait_seconds", is_("queue", "normal"), by="input_bucket"), "{{input_bucket}}"),
        ),
        objective=(("long_text_burst", "seconds"),),
        minimum=0,
    ),
    Panel(
        key="padding",
        id=11,
        title="Padding",
        kind="timeseries",
        unit="percentunit",
        description="Share of what the model computed that was padding: the texts of a call are as wide as its "
        "longest. High and costly: a few long texts sit among short ones. High alone: the model does not mind.",
        no_data=_NO_REQUESTS,
        leads_to=("session",),
        queries=(
            Query(
                share(total("model_token_slots_total", is_("use", "padding")), total("model_token_slots_total")),
                "padding",
            ),
        ),
        alerts=("tokenizer_padding",),
        objective=(("tokenizer_padding", "share"),),
        minimum=0,
    ),
    Panel(
        key="replay",
        id=12,
        title="Known texts, asked again",
        kind="timeseries",
        unit="percentunit",
        description="Largest difference of a probability from the day the model was made, and from the same text's in "
        "a batch. A step: model, tokenizer or runtime was exchanged.",
        no_data="No replay yet, or a model of a training that stored no answers.",
        queries=(
            Query(
                "max by (against) (model_replay_difference_ratio)",
                "{{against}}",
                may_be_empty="a model of an older training has no stored answers",
            ),
        ),
        alerts=("results_differ",),
        objective=(("results_differ", "stored"),),
        minimum=0,
    ),
)

_SERVER: Final = (
    Panel(
        key="triton-requests",
        id=4,
        title="Triton: requests",
        kind="timeseries",
        unit="reqps",
        description="Requests that Triton answered, and those that it failed. An error returned by a Python backend "
        "counts as "
        "success there: compare with failed requests in Overview.",
        no_data=_NO_TRITON,
        queries=(
            _triton(_grow("request_success"), "{{model}} {{version}} answered"),
            _triton(_grow("request_failure"), "{{model}} {{version}} failed"),
        ),
        minimum=0,
    ),
    Panel(
        key="triton-pending",
        id=5,
        title="Triton: pending",
        kind="timeseries",
        unit="short",
        description="Requests that Triton has taken and not begun to compute.",
        no_data=_NO_TRITON,
        queries=(_triton(f"{_EACH} (nv_inference_pending_request_count)", "{{model}} {{version}}"),),
        minimum=0,
    ),
    Panel(
        key="triton-batch",
        id=6,
        title="Triton: inferences per execution",
        kind="timeseries",
        unit="none",
        description="How many texts one execution of the model takes. Near 1 while requests wait: dynamic batching has "
        "degenerated, mostly because shapes differ.",
        no_data=_NO_TRITON,
        queries=(_triton(f"{_grow('count')} / ({_grow('exec_count')} > 0)", "{{model}} {{version}}"),),
        minimum=0,
    ),
    Panel(
        key="triton-time",
        id=7,
        title="Triton: where a request's time goes",
        kind="timeseries",
        unit="s",
        description="Mean seconds per request: waiting in Triton's queue, preparing inputs, computing, outputs. A "
        "lone request "
        "that waits exactly the queue delay shows a delay set too long.",
        no_data=_NO_TRITON,
        queries=tuple(
            _triton(_per_request(name), f"{{{{model}}}} {{{{version}}}} {word}")
            for name, word in (
                ("queue_duration_us", "queue"),
                ("compute_input_duration_us", "input"),
                ("compute_infer_duration_us", "compute"),
                ("compute_output_duration_us", "output"),
            )
        ),
        width=16,
        stack=True,
        alerts=("queue_delay_misset",),
        minimum=0,
    ),
    Panel(
        key="triton-whole",
        id=8,
        title="Triton: mean time of a request",
        kind="timeseries",
        unit="s",
        description="Seconds from a request's arrival at Triton to its answer. The service sees more than this: the "
        "network "
        "and the wait for a connection lie between.",
        no_data=_NO_TRITON,
        queries=(
            _triton(_per_request("request_duration_us"), "{{model}} {{version}}"),
            _triton(mean("model_stage_seconds", is_("stage", "triton.client")), "as the service sees it"),
        ),
        alerts=("triton_slow_network",),
        minimum=0,
    ),
    Panel(
        key="triton-connections",
        id=13,
        title="Triton: wait for a connection",
        kind="timeseries",
        unit="s",
        description="Mean seconds that a call waits inside the service before anything of it is sent. With a "
        "connection for each thread nobody waits.",
        no_data=_NO_TRITON,
        queries=(_triton(mean("model_connection_wait_seconds"), "mean wait"),),
        objective=(("client_pool_wait", "seconds"),),
        minimum=0,
    ),
    Panel(
        key="triton-canary",
        id=9,
        title="Triton: canary",
        kind="timeseries",
        unit="short",
        description="What the supervisor's small inference came to. Triton's own readiness stays good with a dead "
        "process or without its model: this does not.",
        no_data=_NO_TRITON,
        queries=(_triton("max by (state) (model_triton_canary_state)", "{{state}}"),),
        width=12,
        alerts=("triton_hung", "triton_stub_dead", "triton_model_unloaded"),
        minimum=0,
    ),
    Panel(
        key="triton-exits",
        id=15,
        title="Triton: how it ended",
        kind="timeseries",
        unit="short",
        description="Ends of Triton in the last five minutes, by what its exit code and its last lines tell; a "
        "deploy's are clean.",
        no_data=_NO_TRITON,
        queries=(_triton("sum by (how) (increase(model_triton_exits_total[5m]))", "{{how}}"),),
        alerts=("illegal_memory_access",),
        minimum=0,
    ),
    Panel(
        key="triton-fallback",
        id=10,
        title="Answered in Triton's place",
        kind="timeseries",
        unit="reqps",
        description="Calls that the model in process answered, by what was wrong with Triton. Behind an open breaker "
        "Triton is not even asked.",
        no_data=_NO_TRITON,
        queries=(_triton("sum by (reason) (rate(model_fallback_total[$__rate_interval]))", "{{reason}}"),),
        width=12,
        alerts=("triton_down",),
        minimum=0,
    ),
)

BOARD: Final = Board(
    "serving",
    "Triton and scheduler",
    "Waiting and batching between the request and the model.",
    (Section("Scheduler", _SCHEDULER), Section("Triton", _SERVER), Section("Degradation and memory", DEGRADATION)),
    (SERVICE,),
)
