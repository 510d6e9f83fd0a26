"""What a bundle's texts may not hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.bundle.redact import Redactor

ID = "abcdefghijklmnop1234"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"request of {ID} failed", "request of 0000000000000abc failed"),
        (f"x{ID}", f"x{ID}"),
        ("session_id=other-session-of-us", "session_id=(removed)"),
        ('{"X-Session-Id": "q1w2e3"}', '{"X-Session-Id": "(removed)"}'),
        ("INFERDECK_TRIAGE_TOKEN=abc", "INFERDECK_TRIAGE_TOKEN=abc"),
        ("password: hunter2", "password: (removed)"),
        ("Authorization: Bearer abcdefghijk", "Authorization: (removed)"),
        ("mail to who@example.org", "mail to (removed)"),
        ("nothing here", "nothing here"),
    ],
)
def test_ids_become_hashes_and_secrets_go(text: str, masked: str) -> None:
    """Whole tokens are ids; whatever is called a session or a secret goes, known or not."""
    assert masked == Redactor([(ID, 0xABC)]).text(text)


@given(st.text(), st.from_regex(r"[A-Za-z0-9_-]{16,32}", fullmatch=True), st.text())
def test_a_known_id_never_survives_as_a_token(before: str, session: str, after: str) -> None:
    """Whatever stands around it."""
    assert f" {session} " not in Redactor([(session, 1)]).text(f"{before} {session} {after}")


def test_values_are_masked_with_their_keys() -> None:
    """Numbers and shapes stay."""
    redactor = Redactor()
    redactor.know([(ID, 1)])

    assert {"0000000000000001": [1, None, "0000000000000001"]} == redactor.value({ID: [1, None, ID]})
