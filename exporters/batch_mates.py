"""Who shared a batch: requests of one ring file with the same batch id, so that their spans can link to each other.

Bounded: 4,096 batches are remembered, 32 requests of each. A request whose batch goes on in rows that come later links
to the earlier ones alone, and is linked to by the later.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import numpy.typing as npt

from exporters.otlp import Mate

__all__ = ["BatchMates"]

MOST_BATCHES: Final = 4096
MOST_MATES: Final = 32


class BatchMates:
    """Remembers the requests of recent batches."""

    def __init__(self) -> None:
        self._batches: OrderedDict[tuple[str, int], list[Mate]] = OrderedDict()

    def learn(self, ring_id: str, rows: npt.NDArray[Any]) -> None:
        """Remember the batches of rows, of those that are not kept as well: they shared it all the same.

        Args:
            ring_id: The ring file; a batch never leaves its worker.
            rows: Structured array with the columns of docs/architecture.md, section 2.
        """
        batched = rows[rows["batch_id"] != 0]
        columns = (batched[name].tolist() for name in ("batch_id", "trace_hi", "trace_lo", "span_id"))
        for batch, high, low, span in zip(*columns, strict=True):
            mates = self._batches.setdefault((ring_id, batch), [])
            if len(mates) < MOST_MATES:
                mates.append(Mate(high, low, span))
        while len(self._batches) > MOST_BATCHES:
            self._batches.popitem(last=False)

    def of(self, ring_id: str, batch: int, span_id: int) -> list[Mate]:
        """Return the other requests of a batch.

        Args:
            ring_id: The ring file.
            batch: The batch's id; 0 for none.
            span_id: The request's own.
        """
        return [mate for mate in self._batches.get((ring_id, batch), ()) if mate.span_id != span_id] if batch else []
