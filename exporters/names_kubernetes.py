"""Metrics of kube-state-metrics that rules and runbooks read: not ours, so they are told apart from `METRICS`.

Names and labels as its own pages have them (kubernetes/kube-state-metrics, docs/metrics: workload and cluster),
all but `uid`, which tells nobody anything here. It writes extended resources with underscores: nvidia_com_gpu.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.metric import Metric

__all__ = ["KUBERNETES", "KUBERNETES_JOB", "KUBERNETES_NAMESPACE", "resource_label"]

KUBERNETES_JOB: Final = "kube-state-metrics"
# Where deploy/k8s puts our objects, and so where rules look: other people's pods are not our business.
KUBERNETES_NAMESPACE: Final = "inferdeck"

_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_DEPLOYMENT: Final[Mapping[str, tuple[str, ...]]] = {"namespace": (), "deployment": ()}
_POD: Final[Mapping[str, tuple[str, ...]]] = {"namespace": (), "pod": ()}


def _gauge(name: str, unit: str, text: str, labels: Mapping[str, tuple[str, ...]]) -> Metric:
    return Metric(name, "gauge", unit, text, labels=labels, source="kube-state-metrics", job=KUBERNETES_JOB)


KUBERNETES: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        _gauge("kube_deployment_spec_replicas", "pods", "Pods that are wanted.", _DEPLOYMENT),
        _gauge(
            "kube_deployment_status_replicas", "pods", "Pods that there are, those of a rollout included.", _DEPLOYMENT
        ),
        _gauge("kube_deployment_status_replicas_ready", "pods", "Pods whose readiness probe succeeds.", _DEPLOYMENT),
        _gauge("kube_deployment_status_replicas_available", "pods", "Pods that are ready long enough.", _DEPLOYMENT),
        _gauge(
            "kube_deployment_status_observed_generation",
            "generations",
            "Which state of the object the deployment controller works on: it changes with each rollout.",
            _DEPLOYMENT,
        ),
        _gauge("kube_pod_status_phase", "state", "1 for the phase that a pod is in.", {**_POD, "phase": _PHASES}),
        _gauge("kube_pod_status_unschedulable", "state", "1 while the scheduler finds no node for a pod.", _POD),
        _gauge(
            "kube_pod_container_resource_requests",
            "units of the resource",
            "What a container asks for.",
            {**_POD, "container": (), "node": (), "resource": (), "unit": ()},
        ),
        _gauge(
            "kube_node_status_allocatable",
            "units of the resource",
            "What a node can give to pods.",
            {"node": (), "resource": (), "unit": ()},
        ),
    )
}


def resource_label(resource: str) -> str:
    """Return a resource's name as kube-state-metrics writes it into the label `resource`."""
    return "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in resource)
