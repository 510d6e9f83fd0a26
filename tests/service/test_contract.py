"""The judgement of a body, apart from HTTP."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.contract import read_request
from service.errors import REASONS, Refusal
from service.text.contract import ALLOWED_PATTERN, MAX_CHARACTERS

KEYS = st.sampled_from(["text", "product_id", "other"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def judged(body: bytes) -> tuple[int, str]:
    """Return status and reason for a body; 200 when it is in the contract."""
    try:
        read_request(body)
    except Refusal as raised:
        refusal = raised
    else:
        return 200, ""
    assert refusal.reason in REASONS
    assert 0 < len(refusal.message) <= 400
    return refusal.status, refusal.reason


def test_reads_text_and_product_id() -> None:
    """What is in the contract comes out as it was sent."""
    request = read_request('{"product_id": "AB12345678", "text": " 好！ok "}'.encode())
    assert (request.text, request.product_id) == (" 好！ok ", "AB12345678")


@given(st.binary(max_size=400))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    """No sequence of bytes raises anything but a refusal."""
    assert judged(body)[0] in {200, 400, 422}


@given(st.dictionaries(KEYS, VALUES, max_size=3))
def test_any_document_gets_an_answer(document: dict[str, Any]) -> None:
    """No JSON document, NaN and lone surrogates included, raises anything but a refusal."""
    assert judged(json.dumps(document).encode())[0] in {200, 400, 422}


@given(st.text(min_size=1, max_size=1100))
def test_text_is_judged_as_the_documented_pattern_says(text: str) -> None:
    """The code and the contract's schema agree about every text."""
    status, reason = judged(json.dumps({"text": text, "product_id": "AB12345678"}).encode())
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert (status, reason) == (400, "schema")
    elif len(text) > MAX_CHARACTERS:
        assert (status, reason) == (422, "too_long")
    else:
        # `$` of Python's re also matches before a line end, which is allowed here anyway.
        assert (status == 200) == (re.search(ALLOWED_PATTERN, text) is not None)


@given(st.text(st.sampled_from("abcdAB1 好。!?"), min_size=1, max_size=MAX_CHARACTERS))
def test_allowed_text_is_in_the_contract(text: str) -> None:
    """Letters, digits, white space and the marks of row B1 pass in any order."""
    assert judged(json.dumps({"text": text, "product_id": "ZZ00000000"}, ensure_ascii=False).encode()) == (200, "")


@given(st.permutations(["text", "product_id", "text"]))
def test_key_there_twice_is_refused_wherever_it_stands(keys: list[str]) -> None:
    """Parsers disagree about which of two wins, so neither does."""
    values = {"text": '"good"', "product_id": '"AB12345678"'}
    body = "{" + ",".join(f'"{key}":{values[key]}' for key in keys) + "}"
    assert judged(body.encode()) == (400, "schema")


@pytest.mark.parametrize(
    "product_id", ["AB1234567", "AB123456789", "A112345678", "äB12345678", "AB1234567８", " AB12345678"]
)
def test_other_product_ids_are_refused(product_id: str) -> None:
    """Two capital letters of ASCII and eight digits of ASCII, nothing around them."""
    assert judged(json.dumps({"text": "good", "product_id": product_id}).encode()) == (400, "schema")
