"""Two formats of masks are told, with what parts them; more personal data in one format is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Window
from runbooks.rows import Rows
from runbooks.sources import Sources
from runbooks.steps import masking

T0 = 1_780_000_000.0


def masked(rows: Rows, *, every: int = 5, new_workers: int = 1, before: bool = True) -> Rows:
    """Return the rows of four workers, every so many with personal data; some workers have a new format from T0 on."""
    count = len(rows)
    # two numbers without a common divisor, so that all workers get some
    workers = np.arange(count) // every % 4
    has = (np.arange(count) % every == 0) & (before | (rows.start_s >= T0))
    new = (workers < new_workers) & (rows.start_s >= T0)
    formats = np.where(has, np.where(new, "2", "1"), "").astype(object)
    labels = {
        "worker": workers.astype(str).astype(object),
        "config": np.where(workers < new_workers, "new", "old").astype(object),
        "request/pii_mask_format": formats,
    }
    return replace(rows, labels={**rows.labels, **labels})


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Rows:
        """Return them."""
        del since, until
        return self.rows


def verdict(rows: Rows) -> Any:
    """Return what triage of rows alone names, told the alert."""
    sources = Sources(None, FakeRows(rows))
    found = triage(sources, alert="PiiMaskMismatch", at=T0 + 60.0, clock=lambda: T0 + 61.0)
    return found["verdict"]["slug"]


def test_a_half_finished_deploy_is_named(requests: Callable[..., Rows]) -> None:
    """One worker of four, or three."""
    assert "pii_mask_mismatch" == verdict(masked(requests(), new_workers=1))
    assert "pii_mask_mismatch" == verdict(masked(requests(), new_workers=3, every=10))


def test_one_format_is_not_named_however_much_is_masked(requests: Callable[..., Rows]) -> None:
    """More personal data than before, or a deploy that reached all."""
    assert verdict(masked(requests(), new_workers=0, every=2)) is None
    assert verdict(masked(requests(), new_workers=0, every=1, before=False)) is None
    assert verdict(masked(requests(), new_workers=4, before=False)) is None


def test_what_parts_the_formats_is_named(requests: Callable[..., Rows], evidence: Callable[..., Evidence]) -> None:
    """The configuration before the worker, since it says why; without it the worker."""
    rows = masked(requests())
    known = evidence(rows)
    without = replace(rows, labels={name: column for name, column in rows.labels.items() if name != "config"})

    assert 2.0 == masking.formats(known).value
    assert 1.0 == masking.formats_before(known).value
    assert float(masking.other_share(known).value or 0) == pytest.approx(0.25, abs=0.05)
    assert "config" == masking.parted_by(known).value
    assert "config new has format 2" in masking.parted_by(known).detail
    assert "worker" == masking.parted_by(evidence(without)).value


def test_formats_that_nothing_parts_are_said_to_be_so(
    requests: Callable[..., Rows], evidence: Callable[..., Evidence]
) -> None:
    """The same worker writes both: its format was changed under way."""
    rows = masked(requests(), new_workers=4)
    rows = replace(rows, labels={**rows.labels, "config": np.full(len(rows), "one", dtype=object)})
    at = Evidence(Window(T0 - 60.0, T0 + 60.0, T0 - 30.0, T0 + 60.0), None, rows)

    assert 2.0 == masking.formats(at).value
    assert masking.parted_by(at).value is None


def test_prometheus_alone_tells_formats_and_share(
    evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """A format that no longer grows is none."""
    series = {
        signals.PII_MASKED: (
            growing({"kind": "phone", "mask_format": "1"}, 1.0, 0.6),
            growing({"kind": "phone", "mask_format": "2"}, 0.0, 0.4),
            growing({"kind": "email", "mask_format": "other"}, 0.0, 0.0),
        )
    }
    known = evidence(None, series)

    assert 2.0 == masking.formats(known).value
    assert masking.other_share(known).value == pytest.approx(0.4, abs=0.03)
    assert 1.0 == masking.formats_before(known).value


@pytest.mark.parametrize("name", masking.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(masking, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"masking.{name}" == found.step
