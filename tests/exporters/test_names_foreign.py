"""Names of other programs are told apart from ours, each with where it is written down."""

from __future__ import annotations

from exporters.names import FOREIGN, METRICS


def test_no_foreign_name_is_one_of_ours() -> None:
    """A name has one owner."""
    assert set() == FOREIGN.keys() & METRICS.keys()


def test_each_says_where_it_is_from() -> None:
    """Nobody can look it up in this repository."""
    assert all(metric.name == name and len(metric.source) > 20 for name, metric in FOREIGN.items())
    assert {"counter", "gauge"} == {metric.kind for metric in FOREIGN.values()}
