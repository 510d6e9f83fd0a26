"""Somebody else's metrics are named once, apart from ours."""

from __future__ import annotations

import pytest

from exporters.names import METRICS
from exporters.names_kubernetes import KUBERNETES, KUBERNETES_JOB, resource_label


def test_they_are_not_ours() -> None:
    """No exporter of ours shows them, and each is told with its job and its labels."""
    assert set() == KUBERNETES.keys() & METRICS.keys()
    assert {KUBERNETES_JOB} == {metric.job for metric in KUBERNETES.values()}
    assert all(name == one.name and one.labels and name.startswith("kube_") for name, one in KUBERNETES.items())


@pytest.mark.parametrize(
    ("resource", "label"),
    [("nvidia.com/gpu", "nvidia_com_gpu"), ("nvidia.com/mig-1g.10gb", "nvidia_com_mig_1g_10gb"), ("cpu", "cpu")],
)
def test_a_resource_is_written_with_underscores(resource: str, label: str) -> None:
    """As a label of Prometheus cannot hold dots and slashes in a name, which it is in one of its metrics."""
    assert label == resource_label(resource)
