"""Bodies that lie, stream, stall and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.body_limit import Disconnected, declared_length, read_body, require_json
from service.errors import Refusal

pytestmark = pytest.mark.anyio


class Wire:
    """A client that sends parts, then nothing more, and counts what was read."""

    def __init__(self, parts: Iterable[bytes], *, end: bool = True) -> None:
        parts = list(parts)
        self.messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": not end or index < len(parts) - 1}
            for index, part in enumerate(parts)
        ]
        self.read = 0

    async def __call__(self) -> dict[str, Any]:
        """Return the next message, or wait for ever."""
        if self.read >= len(self.messages):
            await asyncio.Event().wait()
        self.read += 1
        return self.messages[self.read - 1]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8))
def test_parts_become_one_body_or_a_refusal(parts: list[bytes]) -> None:
    """However a body is cut, it is whole up to the limit and refused over it."""
    whole = b"".join(parts)
    if len(whole) <= 100:
        assert asyncio.run(read_body(Wire(parts), [], 100, 5)) == whole
    else:
        with pytest.raises(Refusal) as caught:
            asyncio.run(read_body(Wire(parts), [], 100, 5))
        assert caught.value.status == 413


async def test_declared_length_over_the_limit_is_refused_whatever_comes() -> None:
    """A client that says too much is not read into memory, even if it sends little."""
    wire = Wire([b"x"])
    with pytest.raises(Refusal) as caught:
        await read_body(wire, [(b"content-length", b"101")], 100, 5)
    assert (caught.value.status, caught.value.reason) == (413, "body_too_large")


async def test_client_that_asks_first_is_not_made_to_send() -> None:
    """With Expect: 100-continue nothing is read, so the server never says go on."""
    wire = Wire([b"x" * 101])
    with pytest.raises(Refusal):
        await read_body(wire, [(b"content-length", b"101"), (b"expect", b"100-continue")], 100, 5)
    assert wire.read == 0


async def test_declared_length_that_is_too_small_does_not_help() -> None:
    """What comes is what counts."""
    with pytest.raises(Refusal) as caught:
        await read_body(Wire([b"x" * 60, b"x" * 60]), [(b"content-length", b"10")], 100, 5)
    assert caught.value.status == 413


async def test_rest_of_a_refused_body_is_thrown_away_within_a_bound() -> None:
    """A client still sending gets to read the refusal, one that never stops does not hold the request."""
    endless = Wire([b"x" * 65536] * 1000)
    with pytest.raises(Refusal):
        await read_body(endless, [], 100, 5)
    assert endless.read <= 7


async def test_refused_body_that_stalls_does_not_hold_the_request() -> None:
    """The rest is waited for half a second at most."""
    with pytest.raises(Refusal):
        await asyncio.wait_for(read_body(Wire([b"x" * 200], end=False), [], 100, 60), 20)


async def test_body_that_stalls_is_408() -> None:
    """All of it has to be there in time, not only some."""
    with pytest.raises(Refusal) as caught:
        await read_body(Wire([b"x"], end=False), [], 100, 0.02)
    assert (caught.value.status, caught.value.headers) == (408, {"connection": "close"})


async def test_client_that_leaves_is_told_apart() -> None:
    """A disconnect is neither a body nor a refusal."""
    wire = Wire([b"x"], end=False)
    wire.messages.append({"type": "http.disconnect"})
    with pytest.raises(Disconnected):
        await read_body(wire, [], 100, 5)


@pytest.mark.parametrize(
    ("value", "length"), [(b"12", 12), (b"0", 0), (b"-1", None), (b"1e3", None), (b"", None), (b"9" * 5000, None)]
)
def test_content_length_is_a_plain_number_or_nothing(value: bytes, length: int | None) -> None:
    """Anything else is left to the count of bytes."""
    assert declared_length([(b"x", b"1"), (b"content-length", value)]) == length


@given(st.binary(max_size=60))
def test_any_content_type_gets_an_answer(value: bytes) -> None:
    """No header value raises anything but a refusal."""
    try:
        require_json([(b"content-type", value)])
    except Refusal as refusal:
        status = refusal.status
    else:
        status = 200
    assert status in {200, 415}


def test_content_types_that_contradict_are_refused() -> None:
    """Which of two is meant cannot be known."""
    with pytest.raises(Refusal):
        require_json([(b"content-type", b"application/json"), (b"content-type", b"text/plain")])
