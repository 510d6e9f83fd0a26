from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.incoming import agent_family, client_release, parse_traceparent, valid_session

TRACE = b"4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = b"00f067aa0ba902b7"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 255))
def test_every_valid_traceparent_is_read_back(trace: int, span: int, flags: int) -> None:
    """Trace id, parent and the sampled flag come out as they were written."""
    header = b"00-%032x-%016x-%02x" % (trace, span, flags)

    assert (trace, span, bool(flags & 1)) == parse_traceparent(header)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"00",
        b"00-%s-%s" % (TRACE, SPAN),
        b"00-%s-%s-1" % (TRACE, SPAN),
        b"00-%s-%s-01-more" % (TRACE, SPAN),
        b"00-%s-%s-01\n" % (TRACE, SPAN),
        b" 00-%s-%s-01" % (TRACE, SPAN),
        b"ff-%s-%s-01" % (TRACE, SPAN),
        b"00-%s-%s-01" % (TRACE.upper(), SPAN),
        b"00-%s-%s-01" % (b"0" * 32, SPAN),
        b"00-%s-%s-01" % (TRACE, b"0" * 16),
        b"00-%s-%s-0x" % (TRACE, SPAN),
        b"00-%s_-%s-01" % (TRACE[:31], SPAN),
        b"00-" + b"\xff" * 60,
        b"01-%s-%s-01-" % (TRACE, SPAN) + b"x" * 100_000,
    ],
)
def test_a_bad_traceparent_is_none_at_all(header: bytes) -> None:
    """W3C Trace Context: a header that is not valid starts a new trace."""
    assert parse_traceparent(header) is None


def test_a_traceparent_of_a_later_version_is_read_as_far_as_we_know_it() -> None:
    """Later versions may append fields."""
    assert parse_traceparent(b"cc-%s-%s-01-what-the-future-brings" % (TRACE, SPAN)) == (
        int(TRACE, 16),
        int(SPAN, 16),
        True,
    )


@given(st.binary(max_size=200))
def test_no_bytes_of_a_header_raise(raw: bytes) -> None:
    """Whatever comes, the parsers answer."""
    parse_traceparent(raw)
    assert valid_session(raw) in (True, False)
    assert len(client_release(raw)) <= 40
    assert agent_family(raw)


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (b"a" * 15, False),
        (b"a" * 16, True),
        (b"aZ09_-" * 5, True),
        (b"a" * 32, True),
        (b"a" * 33, False),
        (b"a" * 16 + b"\n", False),
        (b"a" * 16 + b" ", False),
        (b"\xe6\x88\x91" * 8, False),
    ],
)
def test_a_session_id_is_16_to_32_letters_digits_or_dashes(session: bytes, expected: bool) -> None:
    """Requirements row B3; a line break at the end is no part of a valid one."""
    assert expected == valid_session(session)


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (b"Mozilla/5.0 (iPhone; CPU iPhone OS 9_3 like Mac OS X) AppleWebKit Safari/601.1", "safari_ios"),
        (b"Mozilla/5.0 (X11; Linux) AppleWebKit Chrome/120 Safari/537.36 Edg/120", "edge"),
        (b"Mozilla/5.0 (X11; Linux) AppleWebKit Chrome/120 Safari/537.36", "chrome"),
        (b"python-httpx/0.27", "python"),
        (b"\xff\xfe", "other"),
        (b"", "other"),
    ],
)
def test_user_agents_become_one_of_few_families(agent: bytes, expected: str) -> None:
    """A closed list: clients cannot make new labels."""
    assert expected == agent_family(agent)
