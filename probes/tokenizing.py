"""What a tokenizer did with a batch, which cache it fills, and how long it took to load.

Measures  seconds of a call; tokens, cut texts and padding of each row; padding of the batch, 0..1 of its slots, and the
          row that the others were padded for; entries and bound of a cache; seconds of a load and loads beside it.
Source    the encodings of `tokenizers` (`Tokenizer.encode_batch`, transformers' `BatchEncoding.encodings`);
          `cache_info()` of functools' caches; the time around a call that loads.
Error     exact for each batch; over batches weigh by slots, not by batch. A row counts as cut where the tokenizer kept
          what it cut off (`overflowing`), which `tokenizers` always does.
Cost      a sum over each attention mask; no copy of ids, no clock but around the call.
Absent    an empty batch has no reading (None); a cache without a bound says None, never 0.
Explains  tokenizer_padding; what it writes are the columns that its rule and steps read
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

__all__ = [
    "BatchReading",
    "CacheReading",
    "Encoding",
    "LoadReading",
    "Loads",
    "TokenizerProbe",
    "padding_side",
    "read_batch",
    "read_cache",
]

Side = Literal["left", "right"]
Text = TypeVar("Text")


class Encoding(Protocol):
    """What is read of one text's tokens; `tokenizers.Encoding` has it."""

    @property
    def ids(self) -> Sequence[int]:
        """Token ids, padding included."""

    @property
    def attention_mask(self) -> Sequence[int]:
        """1 for a token, 0 for padding."""

    @property
    def overflowing(self) -> Sequence[Any]:
        """What was cut off."""


class StageOfRow(Protocol):
    """A running stage of a request; `probes.Stage` is one."""

    def set(self, **attributes: Any) -> None:
        """Set attributes."""


class Row(Protocol):
    """A request's row; `probes.Record` is one."""

    def stage(self, name: str, /, **attributes: Any) -> AbstractContextManager[StageOfRow]:
        """Enter a stage of the request."""


@dataclass(frozen=True)
class BatchReading:
    """One batch.

    Attributes:
        tokens: Of each row, without padding.
        width: Slots of each row.
        truncated: Which rows were cut.
        padding_ratio: Share of the batch's slots that hold padding.
        culprit: The row that the others were padded for; None when no row alone is the longest, when all are wider than
            it (a fixed length, a multiple of eight), or nothing is padded.
        culprit_ratio: Share of the batch's slots that it alone costs: padding that there would not be without it.
        side: Where padding stands; None where the tokenizer does not pad.
    """

    tokens: tuple[int, ...]
    width: int
    truncated: tuple[bool, ...]
    padding_ratio: float
    culprit: int | None
    culprit_ratio: float
    side: Side | None


def read_batch(encodings: Sequence[Encoding], side: Side | None = None) -> BatchReading | None:
    """Return what became of a batch; None for an empty one.

    Args:
        encodings: One for each text, as handed to the model.
        side: Where padding stands, as `padding_side` tells.

    Raises:
        ValueError: If the rows have different widths although the tokenizer pads: that is no batch.
    """
    if not encodings:
        return None
    widths = [len(one.ids) for one in encodings]
    if side is not None and len(set(widths)) > 1:
        raise ValueError(f"rows of {min(widths)} to {max(widths)} slots in a batch that is padded")
    tokens, width = tuple(sum(one.attention_mask) for one in encodings), max(widths)
    slots = width * len(tokens)
    padding = slots - sum(tokens)
    longest = max(tokens)
    # Where rows are wider than the longest text, a setting made them so.
    alone = tokens.count(longest) == 1 and longest == width
    culprit = tokens.index(longest) if alone and padding > 0 else None
    rest = [count for row, count in enumerate(tokens) if row != culprit]
    saved = (width - max(rest)) * len(rest) if culprit is not None and rest else 0
    return BatchReading(
        tokens=tokens,
        width=width,
        truncated=tuple(bool(one.overflowing) for one in encodings),
        padding_ratio=padding / slots if slots else 0.0,
        culprit=culprit,
        culprit_ratio=saved / slots if slots else 0.0,
        side=side,
    )


def padding_side(tokenizer: Any) -> Side | None:
    """Return where a tokenizer puts padding: of `tokenizers` by its settings, of transformers' by its own word.

    Args:
        tokenizer: The tokenizer.
    """
    padding = getattr(tokenizer, "padding", None)
    told = padding.get("direction") if isinstance(padding, dict) else getattr(tokenizer, "padding_side", None)
    if told == "left":
        return "left"
    return "right" if told == "right" else None


class TokenizerProbe:
    """A tokenizer of `tokenizers` that says what it did, in the rows of the requests where there are some.

    Args:
        tokenizer: Has `encode_batch(texts)`; everything else is passed on to it.
        stage: Name of the stage in the rows; as `sentiment.tokenizer` the shipped rule and steps read it.
        clock: Nanoseconds.
    """

    def __init__(
        self, tokenizer: Any, stage: str = "tokenizer", clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._tokenizer = tokenizer
        self._stage = stage
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode_batch(
        self, texts: Sequence[Text], rows: Sequence[Row | None] = (), **options: Any
    ) -> tuple[list[Encoding], BatchReading | None, float]:
        """Return the encodings, what became of the batch, and the seconds that it took.

        Args:
            texts: The texts.
            rows: Each text's row, or None; none at all by default.
            options: Passed on.

        Raises:
            ValueError: If there are rows, but not one for each text. What the tokenizer raises goes through.
        """
        if rows and len(rows) != len(texts):
            raise ValueError(f"{len(rows)} rows for {len(texts)} texts")
        with ExitStack() as running:
            # The call is a part of each of these requests: each waits for all of it.
            stages = [None if row is None else running.enter_context(row.stage(self._stage)) for row in rows]
            started = self._clock()
            encodings: list[Encoding] = self._tokenizer.encode_batch(texts, **options)
            seconds = (self._clock() - started) / 1e9
            reading = read_batch(encodings, padding_side(self._tokenizer))
            if reading is not None:
                for number, stage in enumerate(stages):
                    if stage is not None:
                        _tell(stage, reading, number)
        return encodings, reading, seconds


def _tell(stage: StageOfRow, reading: BatchReading, number: int) -> None:
    """Write a row's part of the batch."""
    stage.set(
        tokens=reading.tokens[number],
        truncated=reading.truncated[number],
        seq_len=reading.width,
        padding_ratio=1.0 - reading.tokens[number] / reading.width if reading.width else 0.0,
        widest=reading.culprit == number,
    )
    if reading.side is not None:
        stage.set(padding_side=reading.side)


@dataclass(frozen=True)
class CacheReading:
    """A cache.

    Attributes:
        entries: How many it holds.
        bound: Most that it may hold; None: it has no bound, and grows with every new text.
        hit_ratio: Share of look-ups that it answered; None before the first.
    """

    entries: int
    bound: int | None
    hit_ratio: float | None


def read_cache(cached: Any) -> CacheReading:
    """Return what a function's cache holds.

    Args:
        cached: A function behind `functools.lru_cache` or `functools.cache`.
    """
    info = cached.cache_info()
    asked = info.hits + info.misses
    return CacheReading(info.currsize, info.maxsize, info.hits / asked if asked else None)


@dataclass
class LoadReading:
    """One load.

    Attributes:
        seconds: How long it took; None while it runs.
        beside: Most loads that ran at the same time, this one apart.
        failed: Whether it raised.
    """

    seconds: float | None = None
    beside: int = 0
    failed: bool = False


class Loads:
    """Times loads, and tells how many ran at the same time: behind one lock each waits for all others.

    Memory: the loads that run, and the last 32.

    Args:
        clock: Nanoseconds.
    """

    KEPT: Final = 32

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running: list[LoadReading] = []
        self._ended: list[LoadReading] = []

    @property
    def ended(self) -> tuple[LoadReading, ...]:
        """The last loads, oldest first."""
        with self._lock:
            return tuple(self._ended)

    @contextmanager
    def timed(self) -> Generator[LoadReading]:
        """Time what is loaded inside, from any thread; yields the reading, which is whole afterwards."""
        mine = LoadReading()
        with self._lock:
            self._running.append(mine)
            for one in self._running:
                one.beside = max(one.beside, len(self._running) - 1)
        started = self._clock()
        try:
            yield mine
        except BaseException:
            mine.failed = True
            raise
        finally:
            mine.seconds = (self._clock() - started) / 1e9
            with self._lock:
                # by identity: two readings can be equal
                self._running = [one for one in self._running if one is not mine]
                self._ended = [*self._ended, mine][-self.KEPT :]
