"""What rows tell of two versions of the model: by the version that was asked, and by the one that answered."""

from __future__ import annotations

from typing import Any

import numpy as np

from exporters import names_canary
from exporters.aggregate import NEVER, aggregate
from probes.schema import FIXED_COLUMNS, KINDS
from service.canary import choice, route, state, versions

STRINGS = ["", "stable", "canary", "nan", "late", "model_error", "same", "flipped", "positive", "shed"]
DTYPE = np.dtype(
    [(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS]
    + [
        ("model.forward/start_ns", "<u8"),
        ("model.forward/duration_ns", "<u8"),
        ("request/version_role", "<u4"),
        ("request/version_failed", "<u4"),
        ("request/canary_comparison", "<u4"),
        ("request/canary_distance", "<f8"),
    ]
)


def rows(*found: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Answered rows of 2 ms in the model, and what differs; texts by their words."""
    names = DTYPE.names or ()
    made = np.zeros(len(found), dtype=DTYPE)
    made["model.forward/duration_ns"] = 2_000_000
    made["confidence"], made["label"] = 0.9, STRINGS.index("positive")
    made["request/canary_distance"] = np.nan
    for index, values in enumerate(found):
        for name, value in values.items():
            column = name if name in names or "/" in name else f"request/{name}"
            made[column][index] = STRINGS.index(value) if isinstance(value, str) else value
    return made


def test_words_and_sets_are_the_services() -> None:
    """Written once on either side of the border, and equal."""
    assert choice.ROLES == names_canary.ROLES
    assert ("ok", *route.FAILURES) == names_canary.VERSION_RESULTS
    assert route.COMPARISONS == names_canary.COMPARISONS
    assert state.ROLLBACK_REASONS == names_canary.ROLLBACK_REASONS
    (states,) = (m.labels["state"] for m in names_canary.CANARY if m.name == "model_canary_state")
    assert versions.STATES == states


def test_requests_count_for_the_version_that_was_asked() -> None:
    """A NaN that the stable version answered for is the canary's; its time in the model is nobody's."""
    counted = aggregate(
        rows(
            {"version_role": "stable"},
            {"version_role": "stable", "reason": "model_error", "outcome": 3},
            {"version_role": "canary"},
            {"version_role": "canary", "version_failed": "nan"},
            {"version_role": "canary", "version_failed": "late"},
            {"version_role": "canary", "model.forward/start_ns": NEVER},
            {"outcome": 1},
        ),
        STRINGS,
        ["model.forward"],
    )
    expected = {
        ("stable", "ok"): 1,
        ("stable", "error"): 1,
        ("canary", "ok"): 2,
        ("canary", "nan"): 1,
        ("canary", "late"): 1,
    }
    assert expected == counted.counters["model_version_requests_total"]
    seconds = counted.histograms["model_version_seconds"]
    assert {("stable",): 1, ("canary",): 1} == {role: sum(found.counts) for role, found in seconds.items()}


def test_confidence_counts_for_the_version_that_answered() -> None:
    """Rows of a service with one version are the stable one's."""
    counted = aggregate(
        rows(
            {},
            {"version_role": "stable"},
            {"version_role": "canary"},
            {"version_role": "canary", "version_failed": "nan"},
        ),
        STRINGS,
        [],
    )
    found = counted.histograms["model_output_confidence"]
    assert {("positive", "stable"): 3, ("positive", "canary"): 1} == {k: sum(v.counts) for k, v in found.items()}


def test_comparisons_are_counted_with_their_distance() -> None:
    """One that was left out has none."""
    counted = aggregate(
        rows(
            {"version_role": "canary", "canary_comparison": "same", "canary_distance": 0.02},
            {"version_role": "canary", "canary_comparison": "flipped", "canary_distance": 0.7},
            {"version_role": "canary", "canary_comparison": "shed"},
        ),
        STRINGS,
        [],
    )
    assert {("same",): 1, ("flipped",): 1, ("shed",): 1} == counted.counters["model_version_comparisons_total"]
    assert 720_000_000 == counted.histograms["model_version_distance_ratio"][()].total
