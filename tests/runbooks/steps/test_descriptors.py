"""No descriptor left, and what those are that are open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import descriptors, symptoms

SOCKETS = {"socket": 90, "file": 5, "other": 5}


def known(world: Callable[..., Any], refused: float, used: int, kinds: Any = None) -> Evidence:
    """Return the evidence of a worker with a limit of 100: looks at which none was left, and how many are open."""
    here = world(during=40.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    rows = here.rows()
    status = {**rows.rings[0].status, "fds": used, "fd_limit": 100} | ({"fd_kinds": kinds} if kinds else {})
    ring = replace(rows.rings[0], status=status, last_sign_s=window.until)
    scrapes = np.arange(window.since, window.until + 1.0, 5.0)
    grown = np.clip((scrapes - here.onset) / 40.0, 0.0, 1.0) * refused
    series = {signals.DESCRIPTORS_REFUSED: (Series({}, scrapes, 7.0 + grown),)}
    return Evidence(window, series, replace(rows, rings=(ring,)))


def nameable(evidence: Evidence) -> bool:
    """Return whether the page of this failure fits."""
    modules = {"descriptors": descriptors, "symptoms": symptoms}
    page = load_pages()["file_descriptors_exhausted"]
    measured = {
        step.run: getattr(modules[step.run.split(".")[0]], step.run.split(".")[1])(evidence) for step in page.steps
    }
    return score_page(page, measured).nameable


def test_a_worker_without_a_descriptor_is_named_with_what_it_holds(world: Callable[..., Any]) -> None:
    """How often none was left, and that they are sockets."""
    evidence = known(world, 30.0, 100, SOCKETS)

    assert 30.0 == descriptors.refused_looks(evidence).value
    assert ("socket", 0.9) == (descriptors.biggest_kind(evidence).value, descriptors.kind_share(evidence).value)
    assert nameable(evidence)


@pytest.mark.parametrize(("refused", "used"), [(0.0, 20), (0.0, 95), (2.0, 40)])
def test_a_worker_with_room_is_none_however_near_it_came(world: Callable[..., Any], refused: float, used: int) -> None:
    """Few, many, and a burst that was over at once."""
    assert not nameable(known(world, refused, used))


def test_a_worker_that_died_before_tells_nothing(world: Callable[..., Any]) -> None:
    """What it held then is no sign of it now; nor is a page of another kind."""
    evidence = known(world, 30.0, 100, SOCKETS)
    assert evidence.rows is not None
    ring = evidence.rows.rings[0]
    dead = replace(ring, last_sign_s=evidence.window.incident[0] - 1.0)
    odd = replace(ring, status={**ring.status, "fd_kinds": {"socket": "many"}})

    assert None is descriptors.biggest_kind(replace(evidence, rows=replace(evidence.rows, rings=(dead,)))).value
    assert None is descriptors.biggest_kind(replace(evidence, rows=replace(evidence.rows, rings=(odd,)))).value


@pytest.mark.parametrize("name", descriptors.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(descriptors, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"descriptors.{name}" == found.step
