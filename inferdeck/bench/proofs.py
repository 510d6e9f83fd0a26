"""Judges whether everything that a variant claims to do was done in a window: nothing is switched off to be fast.

The load generator ends with requests in flight: the server answers them, nobody counts them. So what was recorded must
lie between the answered and the sent requests; they differ by the open connections.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from inferdeck.bench.load import Load
from inferdeck.bench.variants import HISTOGRAMS, REQUESTS_SAMPLE, Variant

__all__ = ["MIN_ATTRIBUTES", "MIN_STAGES", "Evidence", "Proof", "prove", "share_bounds"]

MIN_STAGES = 6
MIN_ATTRIBUTES = 21  # issue 3, item 1: five stages with four attributes each, and the sixth with one
# A sampled share is random: six standard deviations of the binomial, 1 in 5e8 windows fails by chance.
SIGMAS = 6.0


@dataclass(frozen=True)
class Evidence:
    """What was counted outside the variant's own process during one window.

    Attributes:
        rows_read: Rows that our exporter read.
        rows_lost: Rows that it or the recorder counted as lost.
        rows_checked: Rows of the window that were looked at one by one.
        stages: Fewest stages of a checked row.
        attributes: Fewest attributes of a checked row.
        inputs: Quality and drift inputs were present in every checked row.
        spans: Spans that the sink received.
        roots: Traces that the sink received: spans without a parent.
        kept: Traces that our exporter kept, for whatever reason; slow requests are kept whatever the share.
        kept_by_chance: Those of them that nothing but the share kept.
        samples: Growth of the peers' counters on their /metrics, by name.
    """

    rows_read: int = 0
    rows_lost: int = 0
    rows_checked: int = 0
    stages: int = 0
    attributes: int = 0
    inputs: bool = False
    spans: int = 0
    roots: int = 0
    kept: int = 0
    kept_by_chance: int = 0
    samples: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """One claim about one window, what was found, and whether it holds."""

    variant: str
    claim: str
    found: str
    holds: bool


def share_bounds(share: float, answered: int, sent: int) -> tuple[float, float]:
    """Return how many traces may arrive when *share* of the requests is kept.

    Args:
        share: 0..1; 1 means every request, exactly.
        answered: Requests with an answer.
        sent: Requests written.

    Returns:
        Lower and upper bound, in traces.
    """
    if share >= 1:
        return float(answered), float(sent)
    spread = SIGMAS * math.sqrt(max(answered, 1) * share * (1 - share))
    return max(0.0, answered * share - spread), sent * share + spread


def prove(variant: Variant, load: Load, evidence: Evidence) -> list[Proof]:
    """Return every claim of *variant* about a window of *load*, judged by *evidence*.

    Args:
        variant: What it says it does.
        load: What the load generator counted.
        evidence: What others counted.
    """
    claims = [*_answers(load)]
    if variant.ours:
        claims += _rows(load, evidence)
    if variant.span_share is not None:
        claims += _spans(variant, variant.span_share, load, evidence)
    names = [*([REQUESTS_SAMPLE[0]] if variant.counter else []), *(HISTOGRAMS if variant.histograms else ())]
    for name in names:
        grown = evidence.samples.get(name, 0.0)
        claims.append((f"{name} grows by the requests", _of(grown, load), load.answered <= grown <= load.sent))
    return [Proof(variant.name, claim, found, holds) for claim, found, holds in claims]


def _of(found: float, load: Load) -> str:
    return f"{found:.0f} of {load.answered}..{load.sent}"


def _answers(load: Load) -> Iterator[tuple[str, str, bool]]:
    errors = load.refused + load.broken
    yield "every request is answered 200", f"{errors} errors in {load.answered}", errors == 0 and load.answered > 0


def _rows(load: Load, evidence: Evidence) -> Iterator[tuple[str, str, bool]]:
    read = evidence.rows_read
    yield "rows read = requests", _of(read, load), load.answered <= read <= load.sent
    yield "no row is lost", f"{evidence.rows_lost} lost", evidence.rows_lost == 0
    yield "rows were looked at", f"{evidence.rows_checked} rows", evidence.rows_checked > 0
    stages, attributes = evidence.stages, evidence.attributes
    yield f"{MIN_STAGES} stages in every row", f"{stages} stages", stages >= MIN_STAGES
    yield f"{MIN_ATTRIBUTES} attributes in every row", f"{attributes} attributes", attributes >= MIN_ATTRIBUTES
    yield "quality and drift inputs in every row", str(evidence.inputs), evidence.inputs


def _spans(variant: Variant, share: float, load: Load, evidence: Evidence) -> Iterator[tuple[str, str, bool]]:
    low, high = share_bounds(share, load.answered, load.sent)
    # our exporter also keeps what is slow: a sampled share is judged by what chance kept, the sink by all that was kept
    chosen = evidence.kept_by_chance if variant.ours and share < 1 else evidence.roots
    yield f"{share:.0%} of the requests as spans", f"{chosen} traces of {low:.0f}..{high:.0f}", low <= chosen <= high
    if variant.ours:
        received = f"{evidence.roots} of {evidence.kept} traces"
        yield "the sink received every trace kept", received, evidence.roots == evidence.kept
    each = variant.spans_per_trace
    whole = evidence.spans >= each * evidence.roots if variant.ours else evidence.spans == each * evidence.roots
    yield f"{each} spans a trace", f"{evidence.spans} spans in {evidence.roots} traces", whole and evidence.roots > 0
