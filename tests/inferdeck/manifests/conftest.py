"""A Deployment that is right, to be broken in one place, and the nodes of a small cluster."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

Document = dict[str, Any]

_EXPORTER = {
    "name": "exporter",
    "image": "inferdeck/console",
    "restartPolicy": "Always",
    "env": [{"name": "INFERDECK_RING_DIR", "value": "/rows/ring"}],
    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
    "volumeMounts": [{"name": "rows", "mountPath": "/rows"}],
}
_SERVICE = {
    "name": "service",
    "image": "inferdeck/service",
    "env": [{"name": "INFERDECK_RING_DIR", "value": "/rows/ring"}],
    "startupProbe": {"httpGet": {"path": "/healthz/ready", "port": 8081}, "periodSeconds": 2, "failureThreshold": 60},
    "readinessProbe": {"httpGet": {"path": "/healthz/ready", "port": 8081}},
    "livenessProbe": {"httpGet": {"path": "/healthz/live", "port": 8081}},
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
    "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"nvidia.com/gpu": 1}},
    "volumeMounts": [{"name": "rows", "mountPath": "/rows"}],
}
_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "sentiment", "namespace": "inferdeck"},
    "spec": {
        "replicas": 2,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "spec": {
                "terminationGracePeriodSeconds": 45,
                "nodeSelector": {"nvidia.com/gpu.present": "true"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "initContainers": [_EXPORTER],
                "containers": [_SERVICE],
                "volumes": [{"name": "rows", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}}],
            }
        },
    },
}


def node(name: str, gpus: int, **changes: Any) -> Document:
    """Return a node with so many cards."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true"} if gpus else {}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}] if gpus else []},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}
            | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
        },
    } | changes


@pytest.fixture
def deployment() -> Document:
    """Return a Deployment with nothing to find, to be changed."""
    return deepcopy(_DEPLOYMENT)


@pytest.fixture
def pod(deployment: Document) -> Any:
    """Return its pod."""
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def service(pod: Any) -> Any:
    """Return its main container."""
    return pod["containers"][0]


@pytest.fixture
def nodes() -> list[Document]:
    """Return a node without a card and two with two."""
    return [node("plain", 0), node("card-1", 2), node("card-2", 2)]
