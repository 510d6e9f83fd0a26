"""A played cluster schedules, probes and rolls out as one would, and shows it in kube-state-metrics' words."""

from __future__ import annotations

from typing import Any

from exporters.names_kubernetes import KUBERNETES
from inferdeck.drill.played_cluster import PlayedCluster
from inferdeck.manifests.nodes import Node

NODE = Node("n", {"cpu": 4.0, "nvidia.com/gpu": 1.0}, {}, ())


def deployment(surge: int = 1, delay: int = 0, **limits: int) -> dict[str, Any]:
    """Return a Deployment of two pods."""
    probe = {"httpGet": {"path": "/healthz/ready", "port": "admin"}, "initialDelaySeconds": delay}
    container = {"name": "service", "readinessProbe": probe, "resources": {"limits": limits}}
    return {
        "kind": "Deployment",
        "metadata": {"name": "sentiment"},
        "spec": {
            "replicas": 2,
            "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1 - surge}},
            "template": {"spec": {"containers": [container]}},
        },
    }


class Scene:
    """A cluster with a clock and a probe that are told."""

    def __init__(self) -> None:
        self.now, self.warm, self.probed = 0.0, False, 0
        self.cluster = PlayedCluster(deployment(), [NODE], self.probe, lambda: self.now)

    def probe(self, _probe: dict[str, Any]) -> bool:
        """Tell whether the service is warm."""
        self.probed += 1
        return self.warm

    def seen(self, name: str) -> list[float]:
        """Return the values of a metric, after the cluster's next step."""
        return [sample.value for family in self.cluster.collect() if family.name == name for sample in family.samples]


READY = "kube_deployment_status_replicas_ready"


def test_a_new_pod_is_ready_when_its_probe_says_so() -> None:
    """Until then the old ones stay; after that one of them goes."""
    scene = Scene()
    assert [2.0] == scene.seen(READY)

    scene.cluster.roll_out(deployment())
    assert [2.0] == scene.seen(READY)
    assert 3 == sum(scene.seen("kube_pod_status_phase"))

    scene.warm = True
    assert [2.0] == scene.seen(READY)
    assert 2 == sum(scene.seen("kube_pod_status_phase"))
    assert [2.0] == scene.seen("kube_deployment_status_observed_generation")


def test_without_a_surge_an_old_pod_goes_first() -> None:
    """One less until the new one is ready."""
    scene = Scene()

    scene.cluster.roll_out(deployment(surge=0))
    assert [1.0] == scene.seen(READY)

    scene.warm = True
    assert [2.0] == scene.seen(READY)


def test_a_probe_is_not_asked_before_its_delay() -> None:
    """As told in the manifest."""
    scene = Scene()
    scene.warm = True
    scene.cluster.roll_out(deployment(surge=0, delay=10))

    scene.now = 9.0
    assert ([1.0], 0) == (scene.seen(READY), scene.probed)
    scene.now = 10.0
    assert ([2.0], 1) == (scene.seen(READY), scene.probed)


def test_a_pod_that_fits_nowhere_waits_and_is_never_probed() -> None:
    """Its series say that it is unschedulable, and what it asks for."""
    scene = Scene()
    scene.warm = True
    scene.cluster.roll_out(deployment(**{"nvidia.com/gpu": 2}))

    assert [1.0] == scene.seen("kube_pod_status_unschedulable")
    assert 2.0 in scene.seen("kube_pod_container_resource_requests")
    assert 0 == scene.probed


def test_every_metric_that_is_known_is_shown() -> None:
    """With the labels that it is known by."""
    families = {family.name: family for family in Scene().cluster.collect()}

    assert KUBERNETES.keys() == families.keys()
    for name, family in families.items():
        assert all(set(sample.labels) == set(KUBERNETES[name].labels) for sample in family.samples)
