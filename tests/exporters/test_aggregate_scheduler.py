"""What rows tell of queues, batches and padding."""

from __future__ import annotations

import numpy as np

from exporters.aggregate import aggregate
from exporters.names_scheduler import QUEUES
from probes.schema import FIXED_COLUMNS, KINDS
from service.scheduler.lanes import LANES

STRINGS = ["", "normal", "vip", "unheard_of"]
DTYPE = np.dtype(
    [(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS]
    + [
        ("scheduler.dispatch/queue", "<u4"),
        ("scheduler.dispatch/queue_wait_ns", "<i8"),
        ("scheduler.dispatch/queue_depth", "<i8"),
        ("sentiment.tokenizer/seq_len", "<i8"),
        ("sentiment.tokenizer/padding_ratio", "<f8"),
        ("model.forward/batch_size", "<i8"),
        ("triton.client/pool_wait_ns", "<i8"),
    ]
)
ABSENT = -(2**63)


def rows(*found: tuple[int, int, int, int, float, int]) -> np.ndarray:
    """Rows of (queue, wait, depth, width, padding, batch size)."""
    table = np.zeros(len(found), DTYPE)
    table["confidence"], table["tokens"], table["input_length"] = np.nan, -1, -1
    table["triton.client/pool_wait_ns"] = ABSENT
    for at, values in enumerate(found):
        for name, value in zip((DTYPE.names or ())[-7:-1], values, strict=True):
            table[name][at] = value
    return table


def test_queues_are_the_services() -> None:
    """One name for one thing, though neither part imports the other."""
    assert QUEUES == LANES


def test_waits_and_depths_are_told_by_queue() -> None:
    """Waits by length class too. Who was refused has a depth and no wait; a queue that nobody knows is left out."""
    refused, foreign = (1, ABSENT, 9, ABSENT, np.nan, ABSENT), (3, 1, 1, ABSENT, 0.0, ABSENT)
    table = rows((1, 4_000_000, 2, 8, 0.5, 2), (2, 1, 0, 4, 0.0, 1), refused, foreign)
    table["input_length"][0] = 40
    found = aggregate(table, STRINGS, [])
    wait, depth = "model_queue_wait_seconds", "model_queue_depth_requests"
    seen = {name: {of: sum(told.counts) for of, told in found.histograms[name].items()} for name in (wait, depth)}
    assert seen == {wait: {("normal", "short"): 1, ("vip", "unknown"): 1}, depth: {("normal",): 2, ("vip",): 1}}
    assert found.histograms[wait]["normal", "short"].total == 4_000_000
    assert sum(found.histograms["model_batch_size_requests"][()].counts) == 2


def test_padding_is_counted_in_slots() -> None:
    """Half of eight and none of four: four of twelve."""
    found = aggregate(rows((1, 1, 0, 8, 0.5, 2), (2, 1, 0, 4, 0.0, 1)), STRINGS, [])
    assert found.counters["model_token_slots_total"] == {("padding",): 4, ("text",): 8}


def test_rows_without_memory_are_counted() -> None:
    """Whatever their outcome: refused with 503, or a VIP's degraded answer."""
    strings = [*STRINGS, "memory"]
    table = rows((1, 1, 0, 8, 0.5, 2), (1, 1, 0, 8, 0.5, 2), (2, 1, 0, 4, 0.0, 1))
    table["reason"] = [4, 0, 4]
    assert aggregate(table, strings, []).counters["model_memory_short_total"] == {(): 2}
    table["reason"] = 0
    assert aggregate(table, STRINGS, []).counters["model_memory_short_total"] == {(): 0}


def test_waits_for_a_connection_are_of_those_that_asked_for_one() -> None:
    """A request that was answered in process waited for none; one that found a free connection waited no time."""
    table = rows(*[(1, 1, 0, 8, 0.5, 2)] * 3)
    table["triton.client/pool_wait_ns"] = [0, 40_000_000, ABSENT]
    found = aggregate(table, STRINGS, []).histograms["model_connection_wait_seconds"][()]
    assert (2, 40_000_000) == (sum(found.counts), found.total)
