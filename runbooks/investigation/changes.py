"""What else was new at that time: builds, configurations, models and client releases, when they were seen first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from exporters.feature_records import OTHER, FeatureRecords

__all__ = ["Change", "changes_near"]

_WATCHED: Final = ("build", "config", "model", "model_version", "client_release", "agent_family")
NEAR_SECONDS: Final = 900.0
MOST_CHANGES: Final = 10


@dataclass(frozen=True)
class Change:
    """A word that was seen first within the window.

    Attributes:
        what: Which column: `build` and `config` tell of deploys.
        value: The word.
        at: When it was seen first, unix seconds.
        share: Of the records from then on.
    """

    what: str
    value: str
    at: float
    share: float


def changes_near(records: FeatureRecords, moment: float, near_seconds: float = NEAR_SECONDS) -> list[Change]:
    """Return what was new about a moment, the nearest first.

    Args:
        records: Records in order of time.
        moment: Unix seconds.
        near_seconds: How far from it counts as about then.
    """
    found = []
    for name in (name for name in _WATCHED if name in records.words):
        codes = records.words[name]
        seen, firsts = np.unique(codes.places, return_index=True)
        for place, first in zip(seen.tolist(), firsts.tolist(), strict=True):
            word = codes.words[place]
            # What the very first record has was there before, for all that is known.
            if first and word and word != OTHER and abs(float(records.at[first]) - moment) <= near_seconds:
                share = float((codes.places[first:] == place).mean())
                found.append(Change(name, word, float(records.at[first]), share))
    return sorted(found, key=lambda one: abs(one.at - moment))[:MOST_CHANGES]
