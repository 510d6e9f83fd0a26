"""Rows into counts: what happened in front of the model.

Source   columns, where there, of `scheduler.dispatch`, `sentiment.tokenizer`, `triton.client` and `model.forward`.
Error    none; padding is weighted by slots, not by request.
Cost     O(rows) in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.input_classes import bucket_index
from exporters.labels import INPUT_BUCKETS
from exporters.names_scheduler import QUEUES
from exporters.totals import Labels, Totals

__all__ = ["count_scheduling"]

Rows = npt.NDArray[Any]
Observe = Callable[[Totals, str, Sequence[Labels], npt.NDArray[np.int64], npt.NDArray[Any]], None]

_QUEUE: Final = "scheduler.dispatch/queue"
_WAIT: Final = "scheduler.dispatch/queue_wait_ns"
_DEPTH: Final = "scheduler.dispatch/queue_depth"
_CONNECTION: Final = "triton.client/pool_wait_ns"
_MEMORY: Final = "memory"  # reason of such a row: service/predict.py
_WIDTH: Final = "sentiment.tokenizer/seq_len"
_PADDING: Final = "sentiment.tokenizer/padding_ratio"
# Calls of a model behind another process are told by their own stage; where both are there the wider one counts.
_SIZES: Final = ("model.forward/batch_size", "triton.client/batch_size")


def count_scheduling(rows: Rows, strings: Sequence[str], delta: Totals, observe: Observe) -> None:
    """Add waiting, batches and padding.

    Args:
        rows: Structured array with the columns of docs/architecture.md, section 2.
        strings: The ring file's string table.
        delta: Where to add.
        observe: Adds observations to a histogram.
    """
    names = rows.dtype.names or ()
    if _QUEUE in names:
        _observe_queues(rows, strings, delta, observe)
    sizes = [rows[name] for name in _SIZES if name in names]
    if sizes:
        largest = np.max(np.stack(sizes), axis=0)
        largest = largest[largest > 0]
        observe(delta, "model_batch_size_requests", [()], np.zeros(len(largest), np.int64), largest)
    if _CONNECTION in names:
        waits = rows[_CONNECTION][rows[_CONNECTION] >= 0]
        observe(delta, "model_connection_wait_seconds", [()], np.zeros(len(waits), np.int64), waits)
    _count_memory(rows, strings, delta)
    if _WIDTH in names and _PADDING in names:
        _count_slots(rows, delta)


def _observe_queues(rows: Rows, strings: Sequence[str], delta: Totals, observe: Observe) -> None:
    """Observe wait and depth by queue, the wait by length class as well; a queue that nobody knows is left out."""
    known = {text: index for index, text in enumerate(strings) if text in QUEUES}
    column, names = rows[_QUEUE], rows.dtype.names or ()
    groups = np.full(len(rows), -1, np.int64)
    for at, queue in enumerate(QUEUES):
        if queue in known:
            groups[column == known[queue]] = at
    if _DEPTH in names:
        chosen = (groups >= 0) & (rows[_DEPTH] >= 0)
        labels: list[Labels] = [(queue,) for queue in QUEUES]
        observe(delta, "model_queue_depth_requests", labels, groups[chosen], rows[_DEPTH][chosen])
    if _WAIT in names:
        chosen = (groups >= 0) & (rows[_WAIT] >= 0)
        pairs = groups * len(INPUT_BUCKETS) + bucket_index(rows["input_length"])
        labels = [(queue, bucket) for queue in QUEUES for bucket in INPUT_BUCKETS]
        observe(delta, "model_queue_wait_seconds", labels, pairs[chosen], rows[_WAIT][chosen])


def _count_memory(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Count the rows for which the model's device had no memory."""
    delta.add("model_memory_short_total", (), 0)
    number = next((index for index, text in enumerate(strings) if text == _MEMORY), None)
    if number is not None:
        delta.add("model_memory_short_total", (), int(np.count_nonzero(rows["reason"] == number)))


def _count_slots(rows: Rows, delta: Totals) -> None:
    """Count the slots of each row: its share of the tensor is as wide as the widest row."""
    width, ratio = rows[_WIDTH], rows[_PADDING]
    with np.errstate(invalid="ignore"):
        valid = (width > 0) & (ratio >= 0.0) & (ratio <= 1.0)
    slots = width[valid].astype(np.int64)
    padding = int(np.rint(slots * ratio[valid]).astype(np.int64).sum())
    delta.add("model_token_slots_total", ("padding",), padding)
    delta.add("model_token_slots_total", ("text",), int(slots.sum()) - padding)
