from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.lookup import slowest
from exporters.merge import view_of

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

NO_TRACE = (KeyError, TypeError, ValueError, AttributeError)


def test_a_trace_survives_the_way_over_the_network(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """What an exporter shows of a row is what its reader shows, spans and attributes included."""
    fly().row(stages={"sentiment.tokenizer": (1, 2)}, columns={"sentiment.tokenizer/padding_ratio": 0.5})
    (view,) = slowest(ring_dir)
    assert view == view_of(view.to_dict())
    assert view == view_of(view.to_dict() | {"new_key": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"trace_id": "x"},
        {"trace_id": None},
        {"spans": None},
        {"spans": [{}]},
        {"duration_s": "long"},
        {"worker": []},
        {"pid": math.inf},
        {"duration_s": math.nan},
    ],
)
def test_what_is_no_trace_is_refused(ring_dir: Path, fly: Callable[..., Flight], change: dict[str, Any]) -> None:
    """With an error that the caller expects."""
    fly().row()
    (view,) = slowest(ring_dir)
    with pytest.raises(NO_TRACE):
        view_of(view.to_dict() | change)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["trace_id", "spans", "x"]), inner),
        max_leaves=8,
    )
)
def test_any_json_is_a_trace_or_refused(form: Any) -> None:
    """Nothing else is raised, whatever another process sends."""
    with pytest.raises(NO_TRACE):
        view_of(form)
