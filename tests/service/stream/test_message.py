"""What the contract takes and what it refuses, and what makes two messages one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stream.message import LETTER_REASONS, Refused, read_query
from tests.service.stream._queries import message, query, raw

MOST = 16 * 1024


def refusal(value: bytes | None) -> tuple[str, str | None]:
    """Return why a message is refused."""
    with pytest.raises(Refused) as caught:
        read_query(message(value), MOST)
    return caught.value.reason, caught.value.field


def test_a_message_of_the_contract_is_read() -> None:
    """With its own time, in whatever zone it is told."""
    read = read_query(message(raw(1, timestamp="2026-12-01T20:00:30.25+08:00")), MOST)

    assert "web" == read.query.device_type
    assert 1_796_126_430_250_000_000 == read.event_ns


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"session_id": "a" * 15}, "session_id"),
        ({"session_id": "a" * 33}, "session_id"),
        ({"session_id": "session 0123456789"}, "session_id"),
        ({"session_id": "session-01234567\n"}, "session_id"),
        ({"utterance": ""}, "utterance"),
        ({"utterance": "x" * 513}, "utterance"),
        ({"utterance": 5}, "utterance"),
        ({"device_type": "tv"}, "device_type"),
        ({"device_type": None}, "device_type"),
        ({"timestamp": 1796126430}, "timestamp"),
        ({"timestamp": "1796126430"}, "timestamp"),
        ({"timestamp": "2026-12-01T12:00:30"}, "timestamp"),
        ({"timestamp": "2026-02-30T12:00:30Z"}, "timestamp"),
        ({"timestamp": "2026-12-01T24:00:30Z"}, "timestamp"),
        ({"extra": 1}, None),
    ],
)
def test_what_is_not_the_schema_is_refused(changed: dict[str, Any], field: str | None) -> None:
    """The field at fault is named where it is one of the contract's."""
    assert ("schema", field) == refusal(raw(1, **changed))


@pytest.mark.parametrize("missing", ["session_id", "utterance", "timestamp", "device_type"])
def test_every_field_must_be_there(missing: str) -> None:
    """None has a default."""
    document = query(1)
    del document[missing]

    assert ("schema", missing) == refusal(json.dumps(document).encode())


@pytest.mark.parametrize("value", [None, b"", b"hello", b'{"session_id"', b"\xff\xfe", b'{"a": NaN'])
def test_what_is_no_json_is_told_apart(value: bytes | None) -> None:
    """Tombstones as well."""
    assert ("not_json", None) == refusal(value)


def test_a_field_that_is_there_twice_is_refused() -> None:
    """Parsers differ in which of them counts."""
    assert ("schema", None) == refusal(raw(1)[:-1] + b', "device_type": "app"}')


def test_limits_are_the_last_that_fit() -> None:
    """512 characters, not bytes; quotes in the text are no keys."""
    read = read_query(message(raw(1, utterance="字" * 510 + '""', session_id="b" * 32)), MOST)

    assert 512 == len(read.query.utterance)


def test_a_large_message_is_not_looked_at() -> None:
    """Ten megabytes of it."""
    assert ("too_large", None) == refusal(b"[" * (10 << 20))


@given(st.binary(max_size=300))
def test_nothing_else_is_raised(value: bytes) -> None:
    """Whatever comes is refused by a word of the list: no bytes by chance are a message."""
    assert refusal(value)[0] in LETTER_REASONS


def test_the_same_message_is_the_same_in_other_words() -> None:
    """Order of fields and zones are no difference; every field is one."""
    key = b"k" * 16
    first = read_query(message(raw(1, timestamp="2026-12-01T12:00:30Z")), MOST).identity(key)
    backwards = dict(reversed(query(1, timestamp="2026-12-01T20:00:30.000+08:00").items()))

    assert first == read_query(message(json.dumps(backwards).encode()), MOST).identity(key)
    others: list[dict[str, Any]] = [
        {"utterance": "other"},
        {"session_id": "b" * 20},
        {"device_type": "app"},
        {"timestamp": "2026-12-01T12:00:31Z"},
    ]
    for changed in others:
        document = query(1, timestamp="2026-12-01T12:00:30Z") | changed
        assert first != read_query(message(json.dumps(document).encode()), MOST).identity(key)
    assert first != read_query(message(raw(1, timestamp="2026-12-01T12:00:30Z")), MOST).identity(b"l" * 16)
