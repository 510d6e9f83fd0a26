"""A pod that would stay Pending is told before it is applied, with what the nodes have instead."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.manifests.nodes import nodes_of
from inferdeck.manifests.scheduling import pod_requests, scheduling_findings
from inferdeck.manifests.workload import workload_of


def bad(deployment: Any, nodes: list[Any] | None) -> list[str]:
    """Return the details of what fails."""
    found = scheduling_findings(workload_of(deployment), None if nodes is None else nodes_of(nodes))
    return [one.detail for one in found if one.state == "fail"]


def test_right_settings_name_nothing(deployment: Any, nodes: list[Any]) -> None:
    """The twin, with the nodes and without."""
    assert [] == bad(deployment, nodes)
    assert [] == bad(deployment, None)


def test_a_resource_name_that_no_node_has_is_named(deployment: Any, service: Any, nodes: list[Any]) -> None:
    """With what the nodes have; without the nodes, by the names that plugins use."""
    service["resources"]["limits"] = {"nvidia.com/gpus": 1}

    assert "no node has the resource nvidia.com/gpus: the nodes have nvidia.com/gpu; its pods stay Pending" in bad(
        deployment, nodes
    )
    assert ["resource nvidia.com/gpus is no device plugin's name that is known here"] == bad(deployment, None)


def test_a_name_that_nobody_knows_is_only_warned_of(deployment: Any, service: Any) -> None:
    """A plugin of somebody's own is no mistake."""
    service["resources"]["limits"] = {"example.org/accelerator": 1}

    found = [one.state for one in scheduling_findings(workload_of(deployment), None)]

    assert ["warn", "absent"] == found


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"limits": {"gpu": 1}}, "has no domain"),
        ({"requests": {"nvidia.com/gpu": 1}}, "otherwise than it limits it"),
        ({"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}, "otherwise than it limits it"),
        ({"limits": {"nvidia.com/gpu": "500m"}}, "asks for 500m nvidia.com/gpu"),
    ],
)
def test_what_the_api_refuses_about_devices_is_named(
    deployment: Any, service: Any, resources: dict[str, Any], told: str
) -> None:
    """A name without a domain, a request without its limit, half a card."""
    service["resources"] = resources

    assert any(told in detail for detail in bad(deployment, None))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodeSelector": {"zone": "b"}}, "3 has no label zone=b"),
        ({"tolerations": []}, "1 has no label nvidia.com/gpu.present=true"),
        ({"tolerations": []}, "2 has the taint nvidia.com/gpu:NoSchedule, which is not tolerated"),
        ({"tolerations": [{"key": "nvidia.com/gpu", "value": "other"}]}, "which is not tolerated"),
    ],
)
def test_labels_and_taints_that_leave_no_node_are_named(
    deployment: Any, pod: Any, nodes: list[Any], change: dict[str, Any], told: str
) -> None:
    """As the scheduler's own event counts them."""
    pod |= change

    (detail,) = bad(deployment, nodes)

    assert detail.startswith("0 of 3 nodes can run a pod: ")
    assert told in detail


def test_a_pod_larger_than_every_node_is_named(deployment: Any, service: Any, nodes: list[Any]) -> None:
    """Requests of service and sidecar together."""
    service["resources"]["requests"]["memory"] = "16300Mi"

    (detail,) = bad(deployment, nodes)

    assert "memory, and" in detail


def test_a_surge_without_a_spare_card_never_ends(deployment: Any, nodes: list[Any]) -> None:
    """4 cards: 4 replicas leave none for the fifth pod of a rollout, and no old one goes first; one that may, does."""
    deployment["spec"]["replicas"] = 4

    (detail,) = bad(deployment, nodes)
    assert detail.startswith("nvidia.com/gpu is there for 4 pods: the 5. of a rollout stays Pending")

    deployment["spec"]["strategy"]["rollingUpdate"] = {"maxSurge": 0, "maxUnavailable": 1}
    assert [] == bad(deployment, nodes)

    deployment["spec"]["replicas"] = 5
    assert ["nvidia.com/gpu is there for 4 pods, and 5 are wanted"] == bad(deployment, nodes)


def test_no_node_at_all_is_named(deployment: Any, nodes: list[Any]) -> None:
    """All are cordoned off."""
    for one in nodes:
        one["spec"]["unschedulable"] = True

    assert "no node takes pods" in bad(deployment, nodes)


def test_a_pod_needs_what_its_containers_need_together_or_one_init_container_more(pod: Any) -> None:
    """Sidecars count with the containers, init containers each alone."""
    assert {"cpu": pytest.approx(0.55), "memory": 640 * 2**20, "nvidia.com/gpu": 1.0} == pod_requests(pod)

    pod["initContainers"].append({"name": "fetch", "resources": {"requests": {"cpu": 3, "memory": "1Mi"}}})
    assert {"cpu": 3.0, "memory": 640 * 2**20, "nvidia.com/gpu": 1.0} == pod_requests(pod)
