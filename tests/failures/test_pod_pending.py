"""The program renders a name that no node has, which doctor names; its twin renders the right one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from inferdeck.drill.played_cluster import PlayedCluster
from inferdeck.http_get import get
from inferdeck.manifests.judge import judge
from inferdeck.manifests.rollout import Measured

WARM = Measured(2.0, 1.0, "rows")


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("pod_pending.py")
    spec = importlib.util.spec_from_file_location("pod_pending_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exposition(cluster: PlayedCluster) -> list[str]:
    """Return what one scrape of a cluster gives."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(cluster)
    return generate_latest(registry).decode().splitlines()


def test_doctor_names_the_wrong_objects_and_nothing_of_the_right_ones() -> None:
    """By the nodes that the program has."""
    program = load()

    wrong = [one for one in judge([program.wrong()], program.NODES, WARM) if one.state == "fail"]
    right = [one for one in judge([program.right()], program.NODES, WARM) if one.state == "fail"]

    assert {program.SLUG} == {one.name.partition(":")[0] for one in wrong}
    assert "no node has the resource nvidia.com/gpus" in wrong[0].detail
    assert "write nvidia.com/gpu" == wrong[0].mend
    assert [] == right


def test_the_pod_waits_only_with_the_wrong_name() -> None:
    """As kube-state-metrics would show it."""
    program = load()
    lines = {}
    for name in ("wrong", "right"):
        cluster = PlayedCluster(program.right(), program.NODES, lambda _probe: True)
        cluster.roll_out(getattr(program, name)())
        lines[name] = exposition(cluster)

    waits = 'kube_pod_status_unschedulable{namespace="inferdeck",pod="sentiment-2-b0"} 1.0'
    pending = 'kube_pod_status_phase{namespace="inferdeck",phase="Pending",pod="sentiment-2-b0"} 1.0'

    assert {waits, pending} <= set(lines["wrong"])
    assert any('pod="sentiment-2-b0",resource="nvidia_com_gpus"' in line for line in lines["wrong"])
    assert not any("unschedulable{" in line or (pending in line) for line in lines["right"])


def test_cause_and_twin_roll_out_once_on_a_cluster_that_prometheus_knows() -> None:
    """And show it no longer when they end."""

    class Stack:
        service_url = admin_url = "http://127.0.0.1:9"
        shown = ended = 0

        @contextmanager
        def scrape_cluster(self, address: str) -> Iterator[None]:
            """Scrape it twice, as Prometheus does before anything changes."""
            for _ in range(2):
                assert b"kube_deployment_status_observed_generation" in get(f"http://{address}/metrics")[1]
            self.shown += 1
            self.address = address
            yield
            self.ended += 1

    for hook in ("cause", "twin_cause"):
        stack = Stack()
        with getattr(load(), hook)(stack):
            text = get(f"http://{stack.address}/metrics")[1].decode()
            assert (hook == "cause") == ("kube_pod_status_unschedulable{" in text)
            assert 'observed_generation{deployment="sentiment",namespace="inferdeck"} 2.0' in text
        assert (1, 1) == (stack.shown, stack.ended)
