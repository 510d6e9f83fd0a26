"""What the rows of a window say about inputs and answers, as small numpy columns: a million rows in some 100 MB.

Source    rings and archive, each row once; answered requests alone, as drift compares them.
Absent    NaN for a number; the word "" for a text.
Bounded   `most` rows, the latest; 64 words a column, the most frequent, all others are one (`OTHER`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.archive.blocks import Part
from exporters.archive.reader import Archive
from exporters.drift.columns import answered, label_of
from exporters.labels import INPUT_BUCKETS, input_bucket
from exporters.ring_folder import READ_ERRORS, open_rings
from probes.reader import Header, RingFile

__all__ = ["MOST_RECORDS", "MOST_WORDS", "NUMBERS", "OTHER", "Codes", "FeatureRecords", "derived", "read_features"]

MOST_RECORDS: Final = 1_000_000
MOST_WORDS: Final = 64
OTHER: Final = "(other)"

# Columns of rows; a feature bears the name without its stage.
NUMBERS: Final = (
    "input_length",
    "tokens",
    "sentiment.tokenizer/unknown_ratio",
    "sentiment.preprocess/non_ascii_ratio",
    "sentiment.preprocess/digit_ratio",
    "sentiment.preprocess/mark_ratio",
    "confidence",
)
_WORDS: Final = (
    "device_type",
    "client_release",
    "agent_family",
    "model_version",
    "label",
    "sentiment.preprocess/language",
    "request/product_line",
)
_PER_WORKER: Final = ("build", "config", "model")
_READ_AT_ONCE: Final = 16384
# Beyond this length every text is in the last bucket.
_LONGEST: Final = 4096

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Codes:
    """A column of words.

    Attributes:
        places: Per record the word's place.
        words: The words.
    """

    places: npt.NDArray[np.int16]
    words: tuple[str, ...]


@dataclass(frozen=True)
class FeatureRecords:
    """Records of a window, the oldest first.

    Attributes:
        at: When each request started, unix seconds.
        numbers: Feature -> values, NaN where absent.
        words: Dimension -> words by record.
        losses: Why something is missing -> how many.
        cut: Whether there were more than fit.
    """

    at: npt.NDArray[np.float64]
    numbers: Mapping[str, npt.NDArray[np.float32]]
    words: Mapping[str, Codes]
    losses: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False

    def __len__(self) -> int:
        return len(self.at)


class _Gatherer:
    """Collects parts until there is no more room."""

    def __init__(self, since_ns: int, until_ns: int, most: int) -> None:
        self._since_ns, self._until_ns, self._room = since_ns, until_ns, most
        self.at: list[npt.NDArray[np.float64]] = []
        self.numbers: dict[str, list[npt.NDArray[np.float32]]] = {label_of(name): [] for name in NUMBERS}
        self.places: dict[str, list[npt.NDArray[np.int32]]] = {label_of(name): [] for name in (*_WORDS, *_PER_WORKER)}
        self.known: dict[str, dict[str, int]] = {name: {} for name in self.places}
        self.cut = False

    @property
    def full(self) -> bool:
        return self._room <= 0

    def take(self, rows: Array, header: Header, strings: Sequence[str]) -> None:
        """Take the rows of the window, the latest ones when not all fit."""
        starts = rows["start_unix_ns"]
        rows = answered(rows[(starts >= self._since_ns) & (starts <= self._until_ns)])
        if len(rows) > self._room:
            rows, self.cut = rows[len(rows) - self._room :], True
        if not len(rows):
            return
        self._room -= len(rows)
        self.at.append(rows["start_unix_ns"] / 1e9)
        for name in NUMBERS:
            self.numbers[label_of(name)].append(_number(rows, name))
        for name in _WORDS:
            self.places[label_of(name)].append(self._coded(label_of(name), rows, name, strings))
        for name in _PER_WORKER:
            place = self._place(name, str(getattr(header, name)))
            self.places[name].append(np.full(len(rows), place, dtype=np.int32))

    def _place(self, dimension: str, word: str) -> int:
        known = self.known[dimension]
        return known.setdefault(word, len(known))

    def _coded(self, dimension: str, rows: Array, column: str, strings: Sequence[str]) -> npt.NDArray[np.int32]:
        if column not in (rows.dtype.names or ()) or rows.dtype[column].kind != "u":
            return np.full(len(rows), self._place(dimension, ""), dtype=np.int32)
        found, where = np.unique(rows[column], return_inverse=True)
        words = [strings[index] if index < len(strings) else "" for index in found.tolist()]
        return np.array([self._place(dimension, word) for word in words], dtype=np.int32)[where]


def read_features(
    ring_dir: Path, archive_dir: Path | None, since_ns: int, until_ns: int, most: int = MOST_RECORDS
) -> FeatureRecords:
    """Return the answered requests of a window.

    Args:
        ring_dir: Folder of ring files; a missing one has none.
        archive_dir: Folder of the archive; None for the rings alone.
        since_ns: First start, ns since 1970.
        until_ns: Last start.
        most: Records, at most; the latest are taken.
    """
    gatherer = _Gatherer(since_ns, until_ns, most)
    losses = {"torn": 0, "unreadable": 0, "segments": 0}
    held: dict[str, Array] = {}
    for ring in open_rings(ring_dir):
        try:
            if not isinstance(ring, RingFile):
                raise ValueError("no ring file")
            rows, torn = _latest(ring, most)
            held[ring.path.name] = rows["seq"].copy()
            losses["torn"] += torn
            gatherer.take(rows, ring.header, ring.strings())
        except READ_ERRORS:
            losses["unreadable"] += 1
    if archive_dir is not None:
        archive = Archive(archive_dir)
        for part in _not_held(archive.window(since_ns, until_ns), held):
            if gatherer.full:
                gatherer.cut = True
                break
            gatherer.take(part.rows, part.header, part.strings)
        losses["segments"] = len(archive.unreadable)
    return _joined(gatherer, losses)


def _latest(ring: RingFile, most: int) -> tuple[Array, int]:
    """Return a ring's latest rows and how many were torn."""
    head = ring.head()
    cursor, parts, torn = max(0, head - most), [], 0
    while cursor < head:
        batch = ring.read(cursor, _READ_AT_ONCE)
        parts.append(batch.rows)
        cursor, torn = batch.cursor, torn + batch.torn
    if parts and all(part.dtype == parts[0].dtype for part in parts):
        return np.concatenate(parts), torn
    # Empty, or the schema grew between two reads: once more in the newest form.
    whole = ring.read(max(0, head - most), ring.layout.ring_rows)
    return whole.rows, torn + whole.torn


def _not_held(parts: Iterator[Part], held: Mapping[str, Array]) -> Iterator[Part]:
    """Yield the archive's parts without the rows that a ring gave already."""
    for part in parts:
        here = held.get(part.ring)
        if here is None:
            yield part
        else:
            yield replace(part, rows=part.rows[~np.isin(part.rows["seq"], here)])


def _number(rows: Array, column: str) -> npt.NDArray[np.float32]:
    if column not in (rows.dtype.names or ()) or rows.dtype[column].kind not in "fiu":
        return np.full(len(rows), np.nan, dtype=np.float32)
    values = rows[column]
    found: npt.NDArray[np.float32] = values.astype(np.float32)
    if values.dtype.kind != "f":
        # Whole numbers here are counts: what is absent is negative.
        found[values < 0] = np.nan
    return found


def _joined(gatherer: _Gatherer, losses: Mapping[str, int]) -> FeatureRecords:
    at = np.concatenate(gatherer.at) if gatherer.at else np.zeros(0)
    order = np.argsort(at, kind="stable")
    numbers = {
        name: (np.concatenate(parts)[order] if parts else np.zeros(0, dtype=np.float32))
        for name, parts in gatherer.numbers.items()
    }
    words = {}
    for name, parts in gatherer.places.items():
        places = np.concatenate(parts)[order] if parts else np.zeros(0, dtype=np.int32)
        words[name] = _bounded(places, list(gatherer.known[name]))
        parts.clear()
    words |= derived(at[order], numbers["input_length"])
    return FeatureRecords(at[order], numbers, words, losses, gatherer.cut)


def derived(at: npt.NDArray[np.float64], lengths: npt.NDArray[np.float32]) -> dict[str, Codes]:
    """Return the dimensions that are no columns of rows: bucket of the input's length, and hour of the day in UTC.

    Args:
        at: When each request started, unix seconds.
        lengths: Input lengths, NaN where absent.
    """
    buckets = tuple(INPUT_BUCKETS)
    # Buckets are intervals: the bounds between them are where the name changes.
    known = np.array([buckets.index(input_bucket(length)) for length in range(_LONGEST + 1)], dtype=np.int16)
    absent = np.int16(buckets.index(input_bucket(-1)))
    whole = np.nan_to_num(lengths, nan=-1.0)
    places = np.where(whole < 0, absent, known[np.clip(whole, 0, _LONGEST).astype(np.int64)]).astype(np.int16)
    hours = ((at // 3600) % 24).astype(np.int16)
    return {"input_bucket": Codes(places, buckets), "hour": Codes(hours, tuple(f"{hour:02d}" for hour in range(24)))}


def _bounded(places: npt.NDArray[np.int32], words: Sequence[str]) -> Codes:
    """Return the column with the most frequent words, all others as one."""
    if len(words) <= MOST_WORDS:
        return Codes(places.astype(np.int16), tuple(words))
    counts = np.bincount(places, minlength=len(words))
    chosen = np.sort(np.argsort(counts, kind="stable")[::-1][:MOST_WORDS])
    new = np.full(len(words), MOST_WORDS, dtype=np.int16)
    new[chosen] = np.arange(MOST_WORDS, dtype=np.int16)
    return Codes(new[places], (*(words[place] for place in chosen), OTHER))
