from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.postprocess.confidence import InProcess, softmax, verdict

pytestmark = pytest.mark.anyio
LOGITS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=10)


@given(LOGITS, st.floats(0.01, 100))
def test_probabilities_add_up_and_the_largest_logit_wins(logits: list[float], temperature: float) -> None:
    """Whatever the logits are, nothing overflows and the order stays."""
    found = verdict(logits, temperature, [str(place) for place in range(len(logits))])

    assert math.isclose(sum(softmax(logits, temperature)), 1.0, rel_tol=1e-9)
    assert logits[int(found.label)] == pytest.approx(max(logits), abs=1e-6)
    assert 1 / len(logits) - 1e-9 <= found.confidence <= 1 + 1e-9


async def test_in_process_says_that_it_was() -> None:
    """The row has no attribute for the ordinary case; this is how it is told."""
    found, where = await InProcess().judge([0.0, 2.0], 1.0, ["no", "yes"])

    assert ("yes", "process") == (found.label, where)
    assert found.confidence == pytest.approx(math.exp(2) / (1 + math.exp(2)))
