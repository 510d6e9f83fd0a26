"""Can its pods run anywhere? Resource names, sizes, labels and taints against the nodes that there are."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from inferdeck.manifests.nodes import Node, refusal
from inferdeck.manifests.quantity import quantity
from inferdeck.manifests.rollout import Finding
from inferdeck.manifests.workload import Workload

__all__ = ["SLUG", "pod_requests", "scheduling_findings"]

SLUG: Final = "pod_pending"
_OWN: Final = re.compile(r"^(cpu|memory|ephemeral-storage|pods|hugepages-.+|(.+\.)?kubernetes\.io/.+)$")
# Names of the device plugins' own documentation; mig profiles and shared cards have names beyond them.
_PLUGINS: Final = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "google.com/tpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
)
_PLUGIN_FORM: Final = re.compile(r"^nvidia\.com/mig-[0-9]+g\.[0-9]+gb(\.me)?$")
_NODES: Final = "`kubectl get nodes -o yaml > nodes.yaml`, then --nodes nodes.yaml"


def pod_requests(pod: Mapping[str, Any]) -> dict[str, float]:
    """Return what the scheduler sets aside for a pod: containers and sidecars together, or one init container's more.

    Args:
        pod: The pod's spec.

    Raises:
        ValueError: If a quantity is none.
    """
    total: Counter[str] = Counter()
    alone: dict[str, float] = {}
    for one in pod.get("initContainers") or ():
        asked = _of(one)
        if one.get("restartPolicy") == "Always":
            total.update(asked)
        else:
            alone = {name: max(alone.get(name, 0.0), value) for name, value in (alone | asked).items()}
    for one in pod["containers"]:
        total.update(_of(one))
    return {name: max(total[name], alone.get(name, 0.0)) for name in sorted({*total, *alone})}


def _of(container: Mapping[str, Any]) -> dict[str, float]:
    resources = container.get("resources") or {}
    # A limit without a request is a request, too.
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {str(name): quantity(value) for name, value in asked.items()}


def scheduling_findings(workload: Workload, nodes: Sequence[Node] | None) -> Iterator[Finding]:
    """Yield what would leave pods of the workload Pending.

    Args:
        workload: The Deployment.
        nodes: Those of the cluster; None when nobody said.
    """
    requests = pod_requests(workload.pod)
    devices = sorted(name for name in requests if not _OWN.match(name))
    yield from _whole(workload)
    for name in devices:
        yield from _known(name, nodes)
    if nodes is None:
        yield Finding("absent", "the cluster's nodes are not known: sizes, labels and taints are not judged", _NODES)
    elif not nodes:
        yield Finding("fail", "no node takes pods", "add a node, or `kubectl uncordon` one")
    else:
        yield from _places(workload, requests, nodes, devices)


def _whole(workload: Workload) -> Iterator[Finding]:
    """Devices cannot be shared by asking for half of one, nor be asked for more than allowed."""
    for container in workload.containers:
        resources = container.get("resources") or {}
        limits, asked = resources.get("limits") or {}, resources.get("requests") or {}
        for name in sorted({*limits, *asked}):
            if _OWN.match(name):
                continue
            if name not in limits or quantity(asked.get(name, limits[name])) != quantity(limits[name]):
                detail = f"{container.get('name')} asks for {name} otherwise than it limits it: the API refuses that"
                yield Finding("fail", detail, "give it as a limit alone")
            elif quantity(limits[name]) % 1:
                yield Finding("fail", f"{container.get('name')} asks for {limits[name]} {name}", "devices come whole")


def _known(name: str, nodes: Sequence[Node] | None) -> Iterator[Finding]:
    """Compare a device's name with those that the nodes have, or else with those that plugins are known to use."""
    if "/" not in name:
        mend = "name it as the device plugin does, such as nvidia.com/gpu"
        yield Finding("fail", f"resource {name!r} has no domain: the API refuses it", mend)
        return
    if nodes is not None:
        there = sorted({resource for node in nodes for resource in node.allocatable if not _OWN.match(resource)})
        if name not in there:
            close = difflib.get_close_matches(name, there, 1)
            told = f"the nodes have {', '.join(there) or 'no device at all'}"
            mend = f"write {close[0]}" if close else "install the device plugin, or take a name that the nodes have"
            yield Finding("fail", f"no node has the resource {name}: {told}; its pods stay Pending", mend)
        return
    if name in _PLUGINS or _PLUGIN_FORM.match(name):
        yield Finding("ok", f"{name} is a device plugin's name; whether a node has it is not known")
        return
    close = difflib.get_close_matches(name, _PLUGINS, 1, cutoff=0.8)
    if close:
        yield Finding("fail", f"resource {name} is no device plugin's name that is known here", f"write {close[0]}")
    else:
        yield Finding("warn", f"resource {name} is no device plugin's name that is known here", _NODES)


def _places(
    workload: Workload, requests: Mapping[str, float], nodes: Sequence[Node], devices: Sequence[str]
) -> Iterator[Finding]:
    why = {node.name: refusal(node, workload.pod, requests) for node in nodes}
    fitting = [node for node in nodes if why[node.name] is None]
    if not fitting:
        told = "; ".join(f"{count} {reason}" for reason, count in Counter(why.values()).most_common(4))
        mend = "mend nodeSelector, tolerations or requests, or add a node that fits"
        yield Finding("fail", f"0 of {len(nodes)} nodes can run a pod: {told}", mend)
        return
    yield Finding("ok", f"{len(fitting)} of {len(nodes)} nodes can run a pod, if they are empty")
    for name in devices:
        slots = sum(int(node.allocatable[name] // requests[name]) for node in fitting)
        if slots < workload.replicas:
            detail = f"{name} is there for {slots} pods, and {workload.replicas} are wanted"
            yield Finding("fail", detail, "fewer replicas, or more nodes")
        elif slots < workload.replicas + workload.max_surge and workload.max_unavailable == 0:
            yield Finding(
                "fail",
                f"{name} is there for {slots} pods: the {workload.replicas + 1}. of a rollout stays Pending, and with "
                "maxUnavailable 0 no old pod makes room",
                "maxSurge 0 and maxUnavailable 1 (deploy/k8s/overlays/scarce-gpu), or a spare card",
            )
