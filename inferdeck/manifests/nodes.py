"""Nodes as the scheduler looks at them: what is left to give, labels, taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inferdeck.manifests.quantity import quantity
from inferdeck.manifests.read import Document, of_kind

__all__ = ["Node", "nodes_of", "refusal"]


@dataclass(frozen=True)
class Node:
    """One node.

    Attributes:
        name: Its name.
        allocatable: Resource -> how much pods may have of it, in the resource's base unit.
        labels: Its labels.
        taints: Those that keep pods away.
    """

    name: str
    allocatable: Mapping[str, float]
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]


def nodes_of(documents: Iterable[Document]) -> list[Node]:
    """Return the nodes among objects (`kubectl get nodes -o yaml`); those that take no pods at all are left out."""
    found = []
    for one in of_kind(documents, "Node"):
        spec, status = one.get("spec") or {}, one.get("status") or {}
        if spec.get("unschedulable"):
            continue
        given = status.get("allocatable") or status.get("capacity") or {}
        taints = tuple(taint for taint in spec.get("taints") or () if taint.get("effect") != "PreferNoSchedule")
        metadata = one.get("metadata") or {}
        allocatable = {str(name): quantity(value) for name, value in given.items()}
        found.append(Node(str(metadata.get("name", "?")), allocatable, metadata.get("labels") or {}, taints))
    return found


def refusal(node: Node, pod: Mapping[str, Any], requests: Mapping[str, float]) -> str | None:
    """Return why a pod cannot run on an empty node, or None; affinities and what runs there already are not looked at.

    Args:
        node: The node.
        pod: The pod's spec.
        requests: What the pod asks for, by resource.
    """
    for key, value in (pod.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            return f"has no label {key}={value}"
    for taint in node.taints:
        if not any(_tolerates(one, taint) for one in pod.get("tolerations") or ()):
            return f"has the taint {taint.get('key')}:{taint.get('effect')}, which is not tolerated"
    for name, wanted in requests.items():
        if wanted > node.allocatable.get(name, 0.0):
            return f"has {node.allocatable.get(name, 0.0):g} {name}, and {wanted:g} is asked for"
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
