"""A Deployment as the rules look at it: what of it matters for a rollout and for where its pods can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from inferdeck.manifests.quantity import share
from inferdeck.manifests.read import Document

__all__ = ["Workload", "probe_seconds", "workload_of"]

# Kubernetes' own defaults of what a manifest leaves out.
_PROBE: Final = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1}


@dataclass(frozen=True)
class Workload:
    """One Deployment.

    Attributes:
        name: namespace/name, or the name alone.
        replicas: Pods that are wanted.
        max_surge: Pods that may be beyond them in a rollout.
        max_unavailable: Pods that may lack meanwhile; all of them with the strategy Recreate.
        min_ready_seconds: How long a pod must be ready to count.
        pod: Its pod's spec.
        main: The container that answers requests: the first.
    """

    name: str
    replicas: int
    max_surge: int
    max_unavailable: int
    min_ready_seconds: int
    pod: dict[str, Any]
    main: dict[str, Any]

    @property
    def grace_seconds(self) -> float:
        """How long a pod may take to end, preStop included (30 s when nothing is said)."""
        return float(self.pod.get("terminationGracePeriodSeconds", 30))

    @property
    def containers(self) -> list[dict[str, Any]]:
        """All containers, sidecars (init containers that are always restarted) included."""
        sidecars = [one for one in self.pod.get("initContainers") or () if one.get("restartPolicy") == "Always"]
        return [*sidecars, *self.pod["containers"]]

    def environment(self, name: str) -> str | None:
        """Return a variable of the main container; None when it is not set by a plain value."""
        for one in self.main.get("env") or ():
            if one.get("name") == name:
                return None if one.get("value") is None else str(one["value"])
        return None


def workload_of(document: Document) -> Workload:
    """Return a Deployment as data.

    Raises:
        ValueError: If it is none that an API server would take; the message names what lacks.
    """
    metadata = document.get("metadata") or {}
    name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    try:
        spec = document["spec"]
        pod = spec["template"]["spec"]
        main = pod["containers"][0]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{name or 'a Deployment'} has no spec.template.spec.containers") from error
    replicas = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        surge, unavailable = 0, replicas
    else:
        rolling = strategy.get("rollingUpdate") or {}
        surge = share(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        if not surge and not unavailable:
            # As the deployment controller has it: with neither, nothing could ever move.
            unavailable = min(1, replicas)
    return Workload(name, replicas, surge, unavailable, int(spec.get("minReadySeconds", 0)), pod, main)


def probe_seconds(probe: dict[str, Any]) -> float:
    """Return for how long a probe may fail from the container's start until it gives up, in seconds."""
    told = {**_PROBE, **{key: value for key, value in probe.items() if key in _PROBE}}
    return float(told["initialDelaySeconds"] + told["periodSeconds"] * told["failureThreshold"])
