"""A rollout counts a pod as ready while its model still warms up; warm-up and probe are real, the cluster is played."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from inferdeck.drill.played_cluster import played
from inferdeck.manifests.nodes import Node

SLUG = "rollout_cuts_off"
SIMULATED = True

BASE = Path(__file__).resolve().parents[2] / "deploy" / "k8s" / "base" / "deployment.yaml"
NODES = [Node("node-1", {"cpu": 8.0, "memory": 32 * 2.0**30}, {}, ())]
# Several scrapes and the alert's `for` fit into it; the readiness delay below is a tenth of it.
WARM_UP_SECONDS = 50.0
DELAY_SECONDS = 5


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* unchanged; in a process that starts while armed, the model takes long to warm up.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    if armed():
        import onnxruntime

        make = onnxruntime.InferenceSession

        def slowly(*args: Any, **options: Any) -> Any:
            time.sleep(WARM_UP_SECONDS)
            return make(*args, **options)

        onnxruntime.InferenceSession = slowly
    return app


def right() -> dict[str, Any]:
    """Return the shipped Deployment: readiness is what the service says of itself."""
    document: dict[str, Any] = yaml.safe_load(BASE.read_text(encoding="utf-8"))
    return document


def wrong() -> dict[str, Any]:
    """Return it with a readiness probe that knows an open port and a delay that is under the warm-up."""
    document = right()
    container = document["spec"]["template"]["spec"]["containers"][0]
    container.pop("startupProbe")
    container["livenessProbe"]["initialDelaySeconds"] = 120
    container["readinessProbe"] = {"tcpSocket": {"port": "http"}, "initialDelaySeconds": DELAY_SECONDS}
    return document


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Replace the service by one that warms up long, and probe it as the wrong manifest says.

    Args:
        stack: The drill's handle on the stack.
    """
    with played(stack, wrong(), NODES) as cluster:
        stack.restart_service(wait=False)
        cluster.roll_out(wrong())
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Replace the service by one that starts as ever, and probe it as the right manifest says.

    Args:
        stack: The drill's handle on the stack.
    """
    with played(stack, right(), NODES) as cluster:
        cluster.roll_out(right())
        stack.restart_service()
        yield
