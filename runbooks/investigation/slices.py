"""Which slice of the traffic changed, at what time: every slice and feature is looked at, the answer corrected for it.

Of each slice (a word of a dimension, or all traffic) the time is found at which its own distribution changes most. What
it explains is how much smaller the change of all traffic is without it. A slice is named by effect times explained:
a wider slice that holds the changed one has a smaller effect, a narrower one explains less.

Cost   one counting of all records per dimension and feature, on a grid of 64 times and 64 cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.feature_records import OTHER, FeatureRecords
from runbooks.investigation.cells import ABSENT, CELLS, distance, looks_p

__all__ = [
    "ALL",
    "BINS",
    "DIMENSIONS",
    "LEAST_ROWS",
    "Found",
    "Mix",
    "TimeGrid",
    "find_mix",
    "find_slices",
    "find_standing",
]

BINS: Final = 64
ALL: Final = "all"
LEAST_ROWS: Final = 50
LEAST_EFFECT: Final = 0.15
MOST_P: Final = 0.001
# A word that nearly all records have is all traffic.
_NEARLY_ALL: Final = 0.95
# A word is new when none came where so many were to be expected.
_EXPECTED_BEFORE: Final = 20
DIMENSIONS: Final = (
    "device_type",
    "client_release",
    "agent_family",
    "model_version",
    "language",
    "input_bucket",
    "product_line",
    "hour",
)
# Words that are made of the very texts: a mix of them explains nothing, it says the same once more.
_MADE_OF_TEXTS: Final = ("language", "input_bucket", "hour")

Counts = npt.NDArray[Any]


@dataclass(frozen=True)
class Found:
    """One slice and feature that changed.

    Attributes:
        dimension: Which column; `ALL` for all traffic.
        value: Its word; empty for all traffic.
        feature: What changed.
        effect: Distance of its distribution before and after, 0..1.
        explained: Share of all traffic's change that goes without the slice, 0..1.
        p: Corrected for all looks.
        before, after: Observations on both sides.
        share: Of the observations after.
        split: First bin of time that counts as after.
        against: Whose distribution it is compared with: its `own` before, `all` traffic's before, or the `training`.
    """

    dimension: str
    value: str
    feature: str
    effect: float
    explained: float
    p: float
    before: int
    after: int
    share: float
    split: int
    against: str

    @property
    def score(self) -> float:
        """Effect times explained; all traffic a little ahead, as the shorter answer."""
        return self.effect * self.explained * (1.1 if self.dimension == ALL else 1.0)


@dataclass(frozen=True)
class Mix:
    """Shares of slices that moved, while none of them changed itself.

    Attributes:
        dimension: Which column.
        explained: Share of all traffic's change that the new shares alone bring about, 0..1.
        moved: Word -> share before and after, those that moved most.
    """

    dimension: str
    explained: float
    moved: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class TimeGrid:
    """Bins of time with about the same number of records each.

    Attributes:
        places: Each record's bin.
        starts: When each bin begins, unix seconds.
    """

    places: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.float64]

    @staticmethod
    def of(at: npt.NDArray[np.float64]) -> TimeGrid:
        """Return the bins of ordered times."""
        places = (np.arange(len(at), dtype=np.int64) * BINS // max(1, len(at))).astype(np.uint8)
        firsts = np.searchsorted(places, np.arange(BINS))
        return TimeGrid(places, at[np.minimum(firsts, len(at) - 1)] if len(at) else np.zeros(BINS))


def _table(records: FeatureRecords, dimension: str, times: TimeGrid, cells: npt.NDArray[np.uint8]) -> Counts:
    """Return counts by word, bin and cell; what has no value is left out."""
    codes = records.words[dimension]
    width = CELLS + 1
    flat = (codes.places.astype(np.int32) * BINS + times.places) * width + cells
    table = np.bincount(flat, minlength=len(codes.words) * BINS * width)
    return table.reshape(len(codes.words), BINS, width)[:, :, :ABSENT]


def _best_split(table: Counts) -> tuple[int, float, int, int]:
    """Return the first bin after the largest change of one slice, its distance, and the observations on both sides."""
    upto = np.cumsum(table, axis=0)
    whole = upto[-1]
    before, after = upto[:-1], whole - upto[:-1]
    n, m = before.sum(axis=1), after.sum(axis=1)
    effects = distance(before, after)
    weight = np.where((n >= LEAST_ROWS) & (m >= LEAST_ROWS), np.sqrt(n * m / np.maximum(1, n + m)), 0.0)
    at = int(np.argmax(effects * weight))
    return at + 1, float(effects[at]) if weight[at] else 0.0, int(n[at]), int(m[at])


@dataclass(frozen=True)
class _Whole:
    """All traffic's counts of one feature."""

    table: Counts

    def before(self, split: int) -> Counts:
        return np.asarray(self.table[:split].sum(axis=0))

    def after(self, split: int) -> Counts:
        return np.asarray(self.table[split:].sum(axis=0))

    def explained(self, one: Counts, split: int, baseline: Counts | None) -> float:
        """Return the share of the change that is gone without one slice's counts (by bin and cell)."""
        rest_after = self.after(split) - one[split:].sum(axis=0)
        if baseline is None:
            whole = float(distance(self.before(split), self.after(split)))
            rest_before = self.before(split) - one[:split].sum(axis=0)
            without = float(distance(rest_before, rest_after)) if rest_before.sum() else 0.0
        else:
            whole, without = float(distance(baseline, self.after(split))), float(distance(baseline, rest_after))
        if rest_after.sum() < LEAST_ROWS:
            without = 0.0
        return max(0.0, 1 - without / whole) if whole > 0 else 0.0


def find_slices(
    records: FeatureRecords,
    times: TimeGrid,
    cells: Mapping[str, npt.NDArray[np.uint8]],
) -> tuple[list[Found], dict[str, Found]]:
    """Return the slices that changed, the one that explains most first; and all traffic's own change by feature.

    Args:
        records: Records in order of time.
        times: Their bins.
        cells: Feature -> each record's cell.
    """
    looks = len(cells) * sum(len(records.words[name].words) for name in DIMENSIONS if name in records.words) * BINS
    found: list[Found] = []
    whole: dict[str, Found] = {}
    for feature, places in cells.items():
        table = np.bincount(times.places.astype(np.int32) * (CELLS + 1) + places, minlength=BINS * (CELLS + 1))
        all_counts = table.reshape(BINS, CELLS + 1)[:, :ABSENT]
        split, effect, n, m = _best_split(all_counts)
        p = looks_p(effect, n, m, looks)
        traffic = _Whole(all_counts)
        whole[feature] = Found(ALL, "", feature, effect, 1.0, p, n, m, 1.0, split, "own")
        found.append(whole[feature])
        for dimension in (name for name in DIMENSIONS if name in records.words):
            by_word = _table(records, dimension, times, places)
            words = records.words[dimension].words
            found += _of_dimension(dimension, words, by_word, feature, traffic, looks)
    certain = [one for one in found if one.p < MOST_P and one.effect >= LEAST_EFFECT]
    return sorted(certain, key=lambda one: one.score, reverse=True), whole


def _of_dimension(  # noqa: PLR0917 - one place calls it
    dimension: str, words: tuple[str, ...], by_word: Counts, feature: str, traffic: _Whole, looks: int
) -> Iterator[Found]:
    """Yield each word's change: against its own time before, of a new word against all traffic's."""
    most = _NEARLY_ALL * int(traffic.table.sum())
    for place, word in enumerate(words):
        one = by_word[place]
        rows = int(one.sum())
        if not word or word == OTHER or not LEAST_ROWS <= rows <= most:
            continue
        split, effect, n, m = _best_split(one)
        against = "own"
        if looks_p(effect, n, m, looks) >= MOST_P:
            split = int(np.argmax(one.sum(axis=1) > 0))
            n, m = int(traffic.before(split).sum()), rows
            # Of one that was always there, as many as this would have come before by its share.
            if split == 0 or n * m / max(1, int(traffic.after(split).sum())) < _EXPECTED_BEFORE:
                continue
            effect, against = float(distance(traffic.before(split), one.sum(axis=0))), "all"
        after = int(traffic.after(split).sum())
        explained = traffic.explained(one, split, None)
        p = looks_p(effect, n, m, looks)
        yield Found(dimension, word, feature, effect, explained, p, n, m, m / max(1, after), split, against)


def find_standing(
    records: FeatureRecords, cells: Mapping[str, npt.NDArray[np.uint8]], reference: Mapping[str, Counts]
) -> list[Found]:
    """Return the slices that differ from the training all the time, the one that explains most first.

    Args:
        records: Records.
        cells: Feature -> each record's cell.
        reference: Feature -> the training's counts by cell.
    """
    found = []
    still = TimeGrid(np.zeros(len(records), dtype=np.uint8), np.zeros(BINS))
    looks = len(cells) * sum(len(records.words[name].words) for name in DIMENSIONS if name in records.words)
    for feature, baseline in reference.items():
        size = int(baseline.sum())
        table = np.bincount(cells[feature], minlength=CELLS + 1)[:ABSENT]
        rows, effect = int(table.sum()), float(distance(baseline, table))
        found.append(
            Found(ALL, "", feature, effect, 1.0, looks_p(effect, size, rows, looks), size, rows, 1.0, 0, "training")
        )
        traffic = _Whole(table[None, :])
        for dimension in (name for name in DIMENSIONS if name in records.words):
            by_word = _table(records, dimension, still, cells[feature])[:, :1]
            for place, word in enumerate(records.words[dimension].words):
                one = by_word[place]
                m = int(one.sum())
                if not word or word == OTHER or not LEAST_ROWS <= m <= _NEARLY_ALL * rows:
                    continue
                effect = float(distance(baseline, one[0]))
                explained, p = traffic.explained(one, 0, baseline), looks_p(effect, size, m, looks)
                found.append(
                    Found(dimension, word, feature, effect, explained, p, size, m, m / max(1, rows), 0, "training")
                )
    certain = [one for one in found if one.p < MOST_P and one.effect >= LEAST_EFFECT]
    return sorted(certain, key=lambda one: one.score, reverse=True)


def find_mix(records: FeatureRecords, times: TimeGrid, cells: npt.NDArray[np.uint8], change: Found) -> Mix | None:
    """Return the dimension whose shares alone bring the change about, None if none brings half of it.

    Args:
        records: Records in order of time.
        times: Their bins.
        cells: The changed feature's cells.
        change: All traffic's change of that feature.
    """
    best: Mix | None = None
    for dimension in (name for name in DIMENSIONS if name in records.words and name not in _MADE_OF_TEXTS):
        table = _table(records, dimension, times, cells)
        before, after = table[:, : change.split].sum(axis=1), table[:, change.split :].sum(axis=1)
        n, m = before.sum(axis=1), after.sum(axis=1)
        if not n.sum() or not m.sum():
            continue
        old, new = n / n.sum(), m / m.sum()
        # A slice that has no before is taken as all traffic was: its own difference is no mix.
        shapes = np.where((n >= LEAST_ROWS)[:, None], before / np.maximum(1, n)[:, None], before.sum(axis=0) / n.sum())
        mixed = (new[:, None] * shapes).sum(axis=0) * 1e6
        whole = float(distance(before.sum(axis=0), after.sum(axis=0)))
        left = float(distance(mixed, after.sum(axis=0)))
        explained = max(0.0, 1 - left / whole) if whole else 0.0
        if explained >= 0.5 and (best is None or explained > best.explained):
            order = np.argsort(-np.abs(new - old))[:4]
            moved = {records.words[dimension].words[at]: (float(old[at]), float(new[at])) for at in order}
            best = Mix(dimension, explained, moved)
    return best
