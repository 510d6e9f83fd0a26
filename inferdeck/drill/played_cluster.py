"""A played cluster, for programs about Kubernetes: no cluster can run here, the service that it probes is real.

It does what a scheduler, a kubelet and a deployment controller do with the objects that it is given, as far as two
failures need it: a pod gets a node or waits, its readiness probe is carried out against the running service, and what
kube-state-metrics would show of that is served for the stack's Prometheus. Programs that use it say SIMULATED = True.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from exporters.names_kubernetes import KUBERNETES, KUBERNETES_NAMESPACE, resource_label
from inferdeck.drill.handle import StackHandle
from inferdeck.drill.probing import probe_of
from inferdeck.manifests.nodes import Node, refusal
from inferdeck.manifests.read import Document
from inferdeck.manifests.scheduling import pod_requests
from inferdeck.manifests.workload import Workload, workload_of

__all__ = ["PlayedCluster", "played"]

# Prometheus must have seen the cluster as it was before anything changes; its file of targets is read every 5 s.
SEEN_SECONDS = 40.0
SEEN_SCRAPES = 2


@dataclass
class _Pod:
    name: str
    workload: Workload
    began: float
    waits: bool
    ready: bool = False


class PlayedCluster:
    """Pods of one Deployment on some nodes.

    Args:
        document: The Deployment as it runs: all of its pods are ready.
        nodes: The cluster's nodes.
        probe: Carries a readiness probe out and returns whether it succeeds.
        clock: Seconds.
    """

    def __init__(
        self,
        document: Document,
        nodes: Iterable[Node],
        probe: Callable[[dict[str, Any]], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes, self._probe, self._clock = tuple(nodes), probe, clock
        self._lock = threading.Lock()
        self._generation = 1
        self._workload = workload_of(document)
        self._deployment = str(document["metadata"]["name"])
        self._pods = [self._pod(self._workload, f"a{number}", ready=True) for number in range(self._workload.replicas)]
        self.scrapes = 0

    def _pod(self, workload: Workload, suffix: str, *, ready: bool = False) -> _Pod:
        requests = pod_requests(workload.pod)
        waits = not ready and all(refusal(node, workload.pod, requests) is not None for node in self._nodes)
        name = f"{self._deployment}-{self._generation}-{suffix}"
        return _Pod(name, workload, self._clock(), waits, ready)

    def roll_out(self, document: Document) -> None:
        """Take a changed Deployment: one pod of it comes, and an old one goes at once when none may be beyond them."""
        with self._lock:
            self._generation += 1
            self._workload = workload_of(document)
            if not self._workload.max_surge:
                self._pods.pop()
            self._pods.append(self._pod(self._workload, "b0"))

    def _step(self) -> None:
        for pod in self._pods:
            probe = pod.workload.main.get("readinessProbe")
            delay = float((probe or {}).get("initialDelaySeconds", 0))
            if not pod.waits and not pod.ready and self._clock() - pod.began >= delay:
                pod.ready = probe is None or self._probe(probe)
        # An old pod goes as soon as enough others count as ready, which is all that a rollout asks for.
        if sum(pod.ready for pod in self._pods) > self._workload.replicas:
            self._pods.remove(next(pod for pod in self._pods if pod.ready))

    def collect(self) -> Iterator[Metric]:
        """Yield what kube-state-metrics would show now; each call lets the cluster do its next step."""
        with self._lock:
            self.scrapes += 1
            self._step()
            ready = float(sum(pod.ready for pod in self._pods))
            ours = [KUBERNETES_NAMESPACE, self._deployment]
            values: dict[str, list[tuple[list[str], float]]] = {
                "kube_deployment_spec_replicas": [(ours, float(self._workload.replicas))],
                "kube_deployment_status_replicas": [(ours, float(len(self._pods)))],
                "kube_deployment_status_replicas_ready": [(ours, ready)],
                "kube_deployment_status_replicas_available": [(ours, ready)],
                "kube_deployment_status_observed_generation": [(ours, float(self._generation))],
                "kube_pod_status_phase": list(self._phases()),
                "kube_pod_status_unschedulable": [([ours[0], pod.name], 1.0) for pod in self._pods if pod.waits],
                "kube_pod_container_resource_requests": list(self._requests()),
                "kube_node_status_allocatable": [
                    ([node.name, resource_label(name), ""], value)
                    for node in self._nodes
                    for name, value in node.allocatable.items()
                ],
            }
        for name, samples in values.items():
            family = GaugeMetricFamily(name, KUBERNETES[name].help, labels=list(KUBERNETES[name].labels))
            for labels, value in samples:
                family.add_metric(labels, value)
            yield family

    def _phases(self) -> Iterator[tuple[list[str], float]]:
        for pod in self._pods:
            for phase in KUBERNETES["kube_pod_status_phase"].labels["phase"]:
                is_it = phase == ("Pending" if pod.waits else "Running")
                yield [KUBERNETES_NAMESPACE, pod.name, phase], float(is_it)

    def _requests(self) -> Iterator[tuple[list[str], float]]:
        for pod in self._pods:
            node = "" if pod.waits else self._nodes[0].name
            for resource, value in pod_requests(pod.workload.pod).items():
                labels = [KUBERNETES_NAMESPACE, pod.name, "service", node, resource_label(resource), ""]
                yield labels, value


@contextmanager
def played(stack: StackHandle, document: Document, nodes: Iterable[Node]) -> Iterator[PlayedCluster]:
    """Show a cluster to the stack's Prometheus while the body runs, which begins when Prometheus knows it.

    Args:
        stack: The drill's handle on the stack.
        document: The Deployment as it runs.
        nodes: The cluster's nodes.
    """
    cluster = PlayedCluster(document, nodes, probe_of(stack.service_url, stack.admin_url))
    with _served(cluster) as address, stack.scrape_cluster(address):
        until = time.monotonic() + SEEN_SECONDS
        while cluster.scrapes < SEEN_SCRAPES and time.monotonic() < until:
            time.sleep(0.1)
        yield cluster


@contextmanager
def _served(cluster: PlayedCluster) -> Iterator[str]:
    """Serve a cluster's metrics on a free port of this machine, and yield the address."""
    # Registering would ask it for its names, which is a scrape.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(cluster)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = generate_latest(registry)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            """Say nothing of each scrape."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, name="played-cluster", daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
