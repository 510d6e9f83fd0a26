"""What the cluster says of our pods, by hand-made series of kube-state-metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import cluster_queries as queries
from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import kubernetes as steps
from runbooks.steps.registry import STEPS

T0 = 1_780_000_000.0
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)


def series(before: float | None, during: float | None, **labels: str) -> Series:
    """Return a series that changes at T0; None is no sample."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    values = np.array([before if time < T0 else during for time in times], dtype=float)
    seen = ~np.isnan(values)
    return Series(labels, times[seen], values[seen])


def cluster(**changed: tuple[Series, ...]) -> dict[str, tuple[Series, ...]]:
    """Return two pods that are well, and one node with two cards; what is told otherwise replaces it."""
    ours = {"namespace": "inferdeck", "deployment": "sentiment"}
    return {
        queries.WANTED: (series(2, 2, **ours),),
        queries.EXISTING: changed.get("existing", (series(2, 2, **ours),)),
        queries.READY: changed.get("ready", (series(2, 2, **ours),)),
        queries.AVAILABLE: changed.get("available", (series(2, 2, **ours),)),
        queries.GENERATION: changed.get("generation", (series(1, 1, **ours),)),
        queries.LARGEST: (series(2, 2, resource="nvidia_com_gpu"), series(4, 4, resource="cpu")),
        queries.UNSCHEDULABLE: changed.get("unschedulable", ()),
        queries.REQUESTED: changed.get("requested", ()),
        signals.PHASE: changed.get("phase", (series(0, 0, phase="warming_up"), series(1, 1, phase="ready"))),
    }


@pytest.mark.parametrize("step", EVERY)
def test_without_kube_state_metrics_nothing_is_seen(step: Callable[[Evidence], StepResult], evidence: Make) -> None:
    """Not even that all is well."""
    assert step(evidence(None, {})).value is None
    assert step(evidence(None, None)).value is None


def test_a_cluster_that_is_well_shows_nothing(evidence: Make) -> None:
    """Each step says so."""
    seen = evidence(None, cluster())

    assert [2.0, "", 0.0, 0.0, False, 0.0] == [step(seen).value for step in EVERY]


def waiting(resource: str, wanted: float) -> dict[str, tuple[Series, ...]]:
    """Return a pod that asks for something and waits since T0."""
    pod = {"namespace": "inferdeck", "pod": "sentiment-6c5-x2"}
    return cluster(
        unschedulable=(series(None, 1, **pod),),
        requested=(series(None, wanted, **pod, resource=resource), series(None, 1, **pod, resource="cpu")),
    )


@pytest.mark.parametrize(
    ("resource", "wanted", "lacks", "told"),
    [
        ("nvidia_com_gpus", 1, "nvidia_com_gpus", "which no node has; nodes have nvidia_com_gpu"),
        ("nvidia_com_gpu", 4, "nvidia_com_gpu", "the largest node can give 2"),
        ("nvidia_com_gpu", 2, "", "labels, taints or other pods are in the way"),
    ],
)
def test_a_pod_without_a_node_is_seen_with_what_it_lacks(
    resource: str, wanted: float, lacks: str, told: str, evidence: Make
) -> None:
    """A name that no node has, more than any node has, or neither: something else is in the way."""
    seen = evidence(None, waiting(resource, wanted))
    found = steps.lacking_resource(seen)

    assert (1.0, 60.0) == (steps.unschedulable_pods(seen).value, steps.pending_seconds(seen).value)
    assert "sentiment-6c5-x2" in steps.unschedulable_pods(seen).detail
    assert lacks == found.value
    assert told in found.detail


def test_a_pod_that_found_its_node_waits_no_more(evidence: Make) -> None:
    """A minute before the end its series is gone."""
    pod = {"namespace": "inferdeck", "pod": "sentiment-6c5-x2"}
    seen = evidence(None, cluster(unschedulable=(series(1, None, **pod),)))

    assert (0.0, 0.0) == (steps.unschedulable_pods(seen).value, steps.pending_seconds(seen).value)


def test_pods_that_count_as_ready_while_they_start_are_seen(evidence: Make) -> None:
    """From T0 on every pod is ready for Kubernetes, and one warms up for the whole minute."""
    ours = {"namespace": "inferdeck", "deployment": "sentiment"}
    warming = (series(0, 1, phase="warming_up"),)
    early = evidence(None, cluster(phase=warming, generation=(series(1, 2, **ours),)))
    right = evidence(None, cluster(phase=warming, ready=(series(2, 1, **ours),), generation=(series(1, 2, **ours),)))

    surging = evidence(None, cluster(phase=warming, existing=(series(2, 3, **ours),)))

    assert (60.0, True) == (steps.ready_but_starting_seconds(early).value, steps.rolled_out(early).value)
    assert (0.0, True) == (steps.ready_but_starting_seconds(right).value, steps.rolled_out(right).value)
    assert 0.0 == steps.ready_but_starting_seconds(surging).value


def test_a_service_that_tells_no_phase_hides_it(evidence: Make) -> None:
    """Then only what is available can be seen."""
    assert steps.ready_but_starting_seconds(evidence(None, cluster(phase=()))).value is None


def test_a_rollout_that_leaves_no_pod_is_seen(evidence: Make) -> None:
    """The fewest that were available in the incident; a deployment that is scaled to nothing does not count."""
    ours = {"namespace": "inferdeck", "deployment": "sentiment"}
    gone = evidence(None, cluster(available=(series(2, 0, **ours),)))
    idle = cluster(available=(series(0, 0, **ours),))
    idle[queries.WANTED] = (series(0, 0, **ours),)

    assert 0.0 == steps.fewest_available(gone).value
    assert "0 of 2 pods of sentiment" in steps.fewest_available(gone).detail
    assert steps.fewest_available(evidence(None, idle)).value is None


def test_a_rollout_of_last_week_is_none_of_now(evidence: Make) -> None:
    """The generation is a number that stays."""
    ours: Any = {"namespace": "inferdeck", "deployment": "sentiment"}

    assert False is steps.rolled_out(evidence(None, cluster(generation=(series(7, 7, **ours),)))).value


OURS = {"namespace": "inferdeck", "deployment": "sentiment"}
WARMING = (series(0, 1, phase="warming_up"),)
CHANGED = (series(1, 2, **OURS),)


@pytest.mark.parametrize(
    ("slug", "seen", "named"),
    [
        ("pod_pending", waiting("nvidia_com_gpus", 1), True),
        ("pod_pending", waiting("nvidia_com_gpu", 2), True),
        ("pod_pending", cluster(), False),
        ("pod_pending", {}, False),
        ("rollout_cuts_off", cluster(phase=WARMING, generation=CHANGED), True),
        ("rollout_cuts_off", cluster(available=(series(2, 0, **OURS),), generation=CHANGED), True),
        ("rollout_cuts_off", cluster(phase=WARMING, generation=CHANGED, existing=(series(2, 3, **OURS),)), False),
        ("rollout_cuts_off", cluster(phase=WARMING, generation=CHANGED, ready=(series(2, 1, **OURS),)), False),
        ("rollout_cuts_off", cluster(available=(series(2, 0, **OURS),)), False),
        ("rollout_cuts_off", cluster(generation=CHANGED), False),
        ("rollout_cuts_off", {signals.PHASE: WARMING}, False),
    ],
)
def test_the_pages_name_what_is_there_and_nothing_else(
    slug: str, seen: dict[str, tuple[Series, ...]], named: bool, evidence: Make
) -> None:
    """Their own steps, weighed as triage does; a healthy rollout, a crash without one, and no cluster are not named."""
    page = load_pages()[slug]
    measured = {step.run: STEPS[step.run](evidence(None, seen)) for step in page.steps}

    assert named == score_page(page, measured).nameable
