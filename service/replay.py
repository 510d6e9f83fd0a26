"""A few texts are asked again and again, and the answers compared with those of the day the model was made.

Nothing else notices a model that answers otherwise than it did: another tokenizer, a graph that was made smaller, a
runtime that depends on who shares the batch. Each text is asked alone and together with all others. It takes the
model about a hundredth of a second each time, leaves no row, and holds the last result alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.backend import Backend, infer, pad
from service.postprocess.confidence import softmax
from service.recording import NO_RECORD
from service.replayed import Stored

__all__ = ["AGAINST", "Replay", "ReplayView", "replay"]

AGAINST: Final = ("stored", "batch")
"""What an answer is compared with: that of the day the model was made; the same text's in a batch of all."""

_CALL_SECONDS: Final = 2.0
_JOIN_SECONDS: Final = 1.0


@dataclass(frozen=True)
class ReplayView:
    """What the latest replay came to.

    Attributes:
        differences: Largest difference of a class's probability over all texts, by what it was compared with.
        other_tokens: Share of the texts that become other tokens than they did.
        done: Replays that were made.
        failed: Replays in which the model did not answer.
    """

    differences: dict[str, float]
    other_tokens: float | None = None
    done: int = 0
    failed: int = 0


def _probabilities(backend: Backend, rows: Sequence[Sequence[int]]) -> NDArray[np.float64] | None:
    """Return the probabilities of a batch; None if another model answered in its place."""
    ids, mask = pad(rows)
    answer = infer(backend, ids, mask, NO_RECORD, _CALL_SECONDS)
    if answer.degraded:
        return None
    return np.array([softmax(row, backend.temperature) for row in answer.logits.tolist()])


def replay(backend: Backend, stored: Sequence[Stored]) -> tuple[dict[str, float], float] | None:
    """Return the differences and the share of texts with other tokens; None if the model could not be asked.

    Args:
        backend: The model.
        stored: Texts with their answers; at least one.
    """
    rows = [backend.encode(one.text).ids for one in stored]
    other = sum(tuple(row) != one.ids for row, one in zip(rows, stored, strict=True)) / len(stored)
    together = _probabilities(backend, rows)
    alone = [_probabilities(backend, [row]) for row in rows]
    told = [found[0] for found in alone if found is not None]
    if together is None or len(told) < len(stored):
        return None
    each = np.stack(told)
    then = np.array([softmax(one.logits, backend.temperature) for one in stored])
    differences = {"stored": float(np.abs(each - then).max()), "batch": float(np.abs(each - together).max())}
    return differences, other


class Replay:
    """Replays in a thread of its own while the service runs.

    Args:
        backend: Returns the model, None before it is loaded.
        every_seconds: Between two replays; 0: never.
    """

    def __init__(self, backend: Callable[[], Backend | None], every_seconds: float) -> None:
        self._backend, self._every = backend, every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)
        self.view = ReplayView({})

    def start(self) -> None:
        """Start."""
        if self._every > 0:
            self._thread.start()

    def stop(self) -> None:
        """Stop, and wait a bounded time for a replay that runs."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def once(self) -> None:
        """Replay now, if there is a model with stored answers."""
        backend = self._backend()
        stored: Sequence[Stored] = getattr(backend, "stored", ())
        if backend is None or not stored:
            return
        before = self.view
        found = None
        # Whatever a model throws: it is asked for requests as well, whose errors are told.
        with contextlib.suppress(Exception):
            found = replay(backend, stored)
        if found is None:
            self.view = ReplayView(before.differences, before.other_tokens, before.done, before.failed + 1)
            return
        self.view = ReplayView(*found, before.done + 1, before.failed)

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            self.once()
