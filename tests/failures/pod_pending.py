"""A rollout asks for a GPU by a name that no node has; the pods are of a played cluster, the service is real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from inferdeck.drill.played_cluster import played
from inferdeck.manifests.nodes import Node

SLUG = "pod_pending"
SIMULATED = True

BASE = Path(__file__).resolve().parents[2] / "deploy" / "k8s" / "base" / "deployment.yaml"
NODES = [
    Node(f"card-{number}", {"cpu": 8.0, "memory": 32 * 2.0**30, "nvidia.com/gpu": 2.0}, {}, ()) for number in (1, 2)
]


def objects(resource: str) -> dict[str, Any]:
    """Return the shipped Deployment, asking for one of a resource.

    Args:
        resource: The device's name.
    """
    document: dict[str, Any] = yaml.safe_load(BASE.read_text(encoding="utf-8"))
    document["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][resource] = 1
    return document


def right() -> dict[str, Any]:
    """Return it as the device plugin names the cards."""
    return objects("nvidia.com/gpu")


def wrong() -> dict[str, Any]:
    """Return it with the plural that somebody typed."""
    return objects("nvidia.com/gpus")


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the wrong name out: the new pod waits for a node that never comes.

    Args:
        stack: The drill's handle on the stack.
    """
    with played(stack, right(), NODES) as cluster:
        cluster.roll_out(wrong())
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll out a pod with the right name, which gets its node.

    Args:
        stack: The drill's handle on the stack.
    """
    with played(stack, right(), NODES) as cluster:
        cluster.roll_out(right())
        yield
