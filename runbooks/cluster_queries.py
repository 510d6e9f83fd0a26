"""What triage asks Prometheus about the cluster, by way of kube-state-metrics: of our own pods, and never of all."""

from __future__ import annotations

from typing import Final

from exporters.names_kubernetes import KUBERNETES_NAMESPACE

__all__ = [
    "AVAILABLE",
    "CLUSTER_QUERIES",
    "EXISTING",
    "GENERATION",
    "LARGEST",
    "READY",
    "REQUESTED",
    "UNSCHEDULABLE",
    "WANTED",
]

_OURS: Final = f'namespace="{KUBERNETES_NAMESPACE}"'
WANTED: Final = f"kube_deployment_spec_replicas{{{_OURS}}}"
# Beyond what is wanted while a rollout surges.
EXISTING: Final = f"kube_deployment_status_replicas{{{_OURS}}}"
READY: Final = f"kube_deployment_status_replicas_ready{{{_OURS}}}"
AVAILABLE: Final = f"kube_deployment_status_replicas_available{{{_OURS}}}"
GENERATION: Final = f"kube_deployment_status_observed_generation{{{_OURS}}}"
# A hundred pods that wait tell as much as a thousand; an answer that is too large would cost all of Prometheus.
UNSCHEDULABLE: Final = f"topk(100, kube_pod_status_unschedulable{{{_OURS}}} == 1)"
REQUESTED: Final = (
    f"topk(500, sum by (namespace, pod, resource) (kube_pod_container_resource_requests{{{_OURS}}}) "
    f"and on (namespace, pod) kube_pod_status_unschedulable{{{_OURS}}} == 1)"
)
# By resource and not by node, for the same reason.
LARGEST: Final = "max by (resource) (kube_node_status_allocatable)"

CLUSTER_QUERIES: Final = (WANTED, EXISTING, READY, AVAILABLE, GENERATION, UNSCHEDULABLE, REQUESTED, LARGEST)
