"""What must have been done in a window, and how a variant that skips it is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.bench.load import Load
from inferdeck.bench.proofs import Evidence, Proof, prove, share_bounds
from inferdeck.bench.variants import HISTOGRAMS, REQUESTS_SAMPLE, VARIANTS

LOAD = Load(answered=1000, sent=1016, seconds=1.0, refused=0, broken=0, p50_s=0.001, p95_s=0.002, p99_s=0.003)
ROWS = Evidence(
    rows_read=1016,
    rows_lost=0,
    rows_checked=1016,
    stages=8,
    attributes=33,
    inputs=True,
    spans=9144,
    roots=1016,
    kept=1016,
)
SAMPLES = dict.fromkeys((REQUESTS_SAMPLE[0], *HISTOGRAMS), 1005.0)
PEER = Evidence(spans=9 * 1010, roots=1010, samples=SAMPLES)


def failed(variant: str, evidence: Evidence, load: Load = LOAD) -> list[str]:
    """Return the claims that do not hold."""
    return [proof.claim for proof in prove(VARIANTS[variant], load, evidence) if not proof.holds]


@pytest.mark.parametrize(
    ("variant", "evidence"),
    [
        ("bare", Evidence()),
        ("bare_aa", Evidence()),
        ("inferdeck_100pct", ROWS),
        ("inferdeck_1pct", replace(ROWS, spans=108, roots=12, kept=12, kept_by_chance=10)),
        ("parity", PEER),
        ("strongest", replace(PEER, spans=60, roots=10)),
        ("instrumentator", Evidence(samples=SAMPLES)),
    ],
)
def test_what_was_done_is_proven(variant: str, evidence: Evidence) -> None:
    """A window in which everything was recorded has no failed proof."""
    assert [] == failed(variant, evidence)


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        (replace(ROWS, rows_read=999), "rows read = requests"),
        (replace(ROWS, rows_read=1017), "rows read = requests"),
        (replace(ROWS, rows_lost=1), "no row is lost"),
        (replace(ROWS, stages=5), "6 stages in every row"),
        (replace(ROWS, attributes=20), "21 attributes in every row"),
        (replace(ROWS, inputs=False), "quality and drift inputs in every row"),
        (replace(ROWS, roots=999, kept=999), "100% of the requests as spans"),
        (replace(ROWS, roots=1015), "the sink received every trace kept"),
        (replace(ROWS, spans=6 * 1016), "7 spans a trace"),
    ],
)
def test_what_ours_left_out_is_named(evidence: Evidence, claim: str) -> None:
    """Each thing that our side could switch off to be faster fails the proof that names it, and no other."""
    assert [claim] == failed("inferdeck_100pct", evidence)


def test_rows_that_nobody_looked_at_prove_nothing() -> None:
    """Without a row to look at, the claims about rows fail."""
    assert "rows were looked at" in failed("inferdeck_1pct", Evidence(rows_read=1000, roots=10, spans=90))


@pytest.mark.parametrize("name", [REQUESTS_SAMPLE[0], *HISTOGRAMS])
def test_a_peer_that_skips_a_counter_is_named(name: str) -> None:
    """The peers prove their counters and histograms as we prove our rows."""
    assert [f"{name} grows by the requests"] == failed("parity", replace(PEER, samples={**SAMPLES, name: 0.0}))


def test_a_peer_that_drops_spans_is_named() -> None:
    """Spans dropped by a full queue are a failed proof, not a fast peer."""
    assert ["100% of the requests as spans"] == failed("parity", replace(PEER, spans=9 * 900, roots=900))
    assert ["9 spans a trace"] == failed("parity", replace(PEER, spans=9 * 1010 - 1))


def test_errors_fail_every_variant() -> None:
    """An answer that is not 200 is no answer, and a server that answers nothing is not fast."""
    assert ["every request is answered 200"] == failed("bare", Evidence(), replace(LOAD, refused=1))
    assert ["every request is answered 200"] == failed("bare", Evidence(), replace(LOAD, broken=2))
    assert ["every request is answered 200"] == failed("bare", Evidence(), replace(LOAD, answered=0))


def test_a_proof_says_what_was_found() -> None:
    """The reader sees the numbers beside the claim."""
    proofs = prove(VARIANTS["inferdeck_100pct"], LOAD, replace(ROWS, rows_read=7))

    assert Proof("inferdeck_100pct", "rows read = requests", "7 of 1000..1016", holds=False) in proofs


def test_slow_requests_are_kept_beside_the_share() -> None:
    """What is kept for being slow adds to the traces and is no failed proof: chance alone is held to the share."""
    slow = replace(ROWS, spans=9 * 110, roots=110, kept=110, kept_by_chance=10)

    assert [] == failed("inferdeck_1pct", slow)
    assert ["1% of the requests as spans"] == failed("inferdeck_1pct", replace(slow, kept_by_chance=110))


@given(answered=st.integers(1, 10**6), in_flight=st.integers(0, 64))
def test_everything_means_every_request(answered: int, in_flight: int) -> None:
    """A share of 1 leaves no room but the requests in flight."""
    assert (answered, answered + in_flight) == share_bounds(1.0, answered, answered + in_flight)


@given(share=st.floats(0.001, 0.5), answered=st.integers(1, 10**6))
def test_a_sampled_share_lies_within_its_bounds(share: float, answered: int) -> None:
    """The expected number is within the bounds, and half or twice a large one is not."""
    low, high = share_bounds(share, answered, answered)

    assert low <= answered * share <= high
    if answered * share > 400:
        assert low > answered * share / 2
        assert high < answered * share * 2


def test_nothing_received_fails_a_sampled_share() -> None:
    """A switched-off sender is caught even at 1%."""
    load = replace(LOAD, answered=9000, sent=9016)

    nothing_kept = replace(ROWS, rows_read=9000, spans=0, roots=0, kept=0)
    nothing_sent = replace(nothing_kept, kept=90, kept_by_chance=90)

    assert "1% of the requests as spans" in failed("inferdeck_1pct", nothing_kept, load)
    assert "the sink received every trace kept" in failed("inferdeck_1pct", nothing_sent, load)
    assert "1% of the requests as spans" in failed("strongest", replace(PEER, spans=0, roots=0), load)
