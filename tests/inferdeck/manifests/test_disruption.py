"""A drain that takes every pod, or never ends, is told."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.manifests.disruption import drain_findings
from inferdeck.manifests.workload import workload_of


def budget(**spec: Any) -> dict[str, Any]:
    """Return a budget for the Deployment's pods."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "inferdeck"},
        "spec": {"selector": {"matchLabels": {"app": "sentiment"}}, **spec},
    }


def found(deployment: Any, *budgets: Any) -> list[str]:
    """Return the states of what is found."""
    deployment["spec"]["template"]["metadata"] = {"labels": {"app": "sentiment", "version": "2"}}
    return [one.state for one in drain_findings(deployment, workload_of(deployment), [deployment, *budgets])]


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ({"maxUnavailable": 1}, "ok"),
        ({"minAvailable": "50%"}, "ok"),
        ({"maxUnavailable": 0}, "fail"),
        ({"minAvailable": 2}, "fail"),
        ({"minAvailable": "100%"}, "fail"),
        ({"maxUnavailable": "100%"}, "fail"),
        ({"minAvailable": 0}, "fail"),
    ],
)
def test_a_budget_spares_some_and_never_all(deployment: Any, spec: dict[str, Any], state: str) -> None:
    """Of two pods, by number or percentage, which the disruption controller rounds up."""
    assert [state] == found(deployment, budget(**spec))


def test_no_budget_is_warned_of_and_somebody_elses_is_none(deployment: Any) -> None:
    """By labels and by namespace."""
    other = budget(maxUnavailable=0)
    other["metadata"]["namespace"] = "batch"

    assert ["warn"] == found(deployment)
    assert ["warn"] == found(deployment, other)


def test_nothing_to_drain_is_not_judged(deployment: Any) -> None:
    """A Deployment that is scaled to nothing."""
    deployment["spec"]["replicas"] = 0

    assert [] == found(deployment)
