from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.character_classes import character_shares


@settings(deadline=None)
@given(st.text(min_size=1, max_size=80))
def test_shares_are_counts_of_characters_over_the_length(text: str) -> None:
    """Whatever comes, lone surrogates and combining marks included; compared with counting one by one."""
    expected = (
        sum(c > "\x7f" for c in text) / len(text),
        sum(c in string.digits for c in text) / len(text),
        sum(c <= "\x7f" and c not in string.ascii_letters + string.digits for c in text) / len(text),
    )
    found = character_shares(text)
    assert found is not None
    assert expected == pytest.approx(tuple(found), abs=1e-12)


def test_an_empty_text_has_no_shares() -> None:
    """Absent, not 0."""
    assert character_shares("") is None
