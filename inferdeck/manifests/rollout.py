"""Does a rollout cut requests off? Probes against the measured warm-up, what may lack, and how pods end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from inferdeck.manifests.workload import Workload, probe_seconds

__all__ = ["SLUG", "Finding", "Measured", "rollout_findings"]

SLUG: Final = "rollout_cuts_off"
# A node that is busy with a rollout starts things at half its usual speed (two starts side by side on one core).
ROOM: Final = 2.0
# Endpoints are told to kube-proxy and to ingresses after a pod is told to end; a few seconds is what they usually take
# (kubernetes.io, "Termination of Pods": both happen at the same time).
LEAST_PRE_STOP_SECONDS: Final = 3.0
# What the service waits for its last requests when nothing is set (service/config/base.yaml).
SHUTDOWN_SECONDS: Final = 10.0
# Answers at such a path tell that the process runs, not that it is warm.
_ONLY_ALIVE: Final = re.compile(r"/(live|livez|alive|ping|health|healthz)/?$|^/?$|/healthz/live$")


@dataclass(frozen=True)
class Finding:
    """What one rule says of one workload: state ok, warn, fail or absent, as `inferdeck.checks.Check` has them."""

    state: str
    detail: str
    mend: str = ""


@dataclass(frozen=True)
class Measured:
    """What was measured of the service; None where nothing was.

    Attributes:
        warm_up_seconds: From the start of the process until it is ready, the slowest start known.
        longest_request_seconds: The longest request that was answered.
        source: Where both come from.
    """

    warm_up_seconds: float | None = None
    longest_request_seconds: float | None = None
    source: str = "not measured"


def rollout_findings(workload: Workload, measured: Measured) -> Iterator[Finding]:
    """Yield what would cut requests off when the workload is rolled out.

    Args:
        workload: The Deployment.
        measured: Of the service that it runs.
    """
    yield from _gap(workload, measured)
    yield from _readiness(workload, measured)
    yield from _budget(workload, measured)
    yield from _end(workload, measured)


def _gap(workload: Workload, measured: Measured) -> Iterator[Finding]:
    if workload.replicas == 0:
        yield Finding("absent", "0 replicas: nothing to roll out")
        return
    left = workload.replicas - workload.max_unavailable
    if left <= 0:
        took = "" if measured.warm_up_seconds is None else f" of at least {measured.warm_up_seconds:.0f} s"
        yield Finding(
            "fail",
            f"{workload.max_unavailable} of {workload.replicas} may lack at once: a rollout is an outage{took}",
            "2 replicas at least, or maxSurge 1 with maxUnavailable 0",
        )
    elif workload.replicas == 1:
        yield Finding("warn", "1 replica: each crash and each drain of its node is an outage", "2 replicas at least")
    else:
        yield Finding("ok", f"{left} of {workload.replicas} replicas stay while a rollout goes on")


def _readiness(workload: Workload, measured: Measured) -> Iterator[Finding]:
    probe = workload.main.get("readinessProbe")
    if probe is None:
        yield Finding(
            "fail",
            "no readiness probe: a pod gets requests as soon as its process runs, and old pods go then",
            "readinessProbe: httpGet /healthz/ready on the admin port",
        )
        return
    if tells(probe) or tells(workload.main.get("startupProbe") or {}):
        yield Finding("ok", "readiness is what the service says of itself")
        return
    delay = float(probe.get("initialDelaySeconds", 0))
    warm_up = measured.warm_up_seconds
    mend = "probe /healthz/ready, which says when the model is warm; or a delay over the warm-up"
    if warm_up is None:
        yield Finding("warn", f"readiness cannot tell warm from running; its delay is {delay:.0f} s", f"{mend}; {GIVE}")
    elif delay < warm_up:
        detail = f"readiness delay of {delay:.0f} s under the measured warm-up of {warm_up:.1f} s ({measured.source})"
        yield Finding("fail", f"{detail}: requests reach pods that are not warm, and old pods go too early", mend)
    else:
        yield Finding("ok", f"readiness delay of {delay:.0f} s covers the measured warm-up of {warm_up:.1f} s")


GIVE: Final = "measure it (`inferdeck bench start`) and give --warm-up SECONDS"


def tells(probe: dict[str, Any]) -> bool:
    """Return whether a probe asks for something that can know whether the model is warm."""
    asked = probe.get("httpGet")
    if asked is not None:
        return not _ONLY_ALIVE.search(str(asked.get("path", "/")))
    return "exec" in probe or "grpc" in probe


def _budget(workload: Workload, measured: Measured) -> Iterator[Finding]:
    """Judge how long a start may take before the kubelet kills it."""
    name = next((name for name in ("startupProbe", "livenessProbe") if workload.main.get(name)), None)
    if name is None:
        return
    budget, warm_up = probe_seconds(workload.main[name]), measured.warm_up_seconds
    told = f"{name} kills a start after {budget:.0f} s"
    mend = "a startupProbe with periodSeconds x failureThreshold of twice the warm-up"
    if warm_up is None:
        yield Finding("absent", f"{told}; the warm-up is not measured", GIVE)
    elif budget < warm_up:
        yield Finding("fail", f"{told}, under the measured warm-up of {warm_up:.1f} s: it never gets ready", mend)
    elif budget < ROOM * warm_up:
        yield Finding("warn", f"{told}: little beside the measured warm-up of {warm_up:.1f} s", mend)
    else:
        yield Finding("ok", f"{told}; measured warm-up {warm_up:.1f} s")


def _end(workload: Workload, measured: Measured) -> Iterator[Finding]:
    """Judge how a pod ends: endpoints first, then requests in flight, then the process."""
    before = pre_stop_seconds(workload.main)
    waits = workload.environment("INFERDECK_SERVICE_SHUTDOWN_SECONDS")
    shutdown = float(waits) if waits else SHUTDOWN_SECONDS
    if before is None or before < LEAST_PRE_STOP_SECONDS:
        yield Finding(
            "warn",
            "no preStop pause: requests still arrive when the process has stopped listening",
            "lifecycle.preStop of 5 s: endpoints are taken out meanwhile",
        )
    needed = (before or 0.0) + shutdown
    if workload.grace_seconds <= needed:
        yield Finding(
            "fail",
            f"a pod is killed after {workload.grace_seconds:.0f} s, and preStop with shutdown takes {needed:.0f} s",
            f"terminationGracePeriodSeconds over {needed:.0f}",
        )
    longest = measured.longest_request_seconds
    if longest is not None and longest > shutdown:
        yield Finding(
            "fail",
            f"requests take up to {longest:.1f} s ({measured.source}) and are cut off {shutdown:.0f} s after the stop",
            f"INFERDECK_SERVICE_SHUTDOWN_SECONDS over {longest:.0f}, and the grace period with it",
        )


def pre_stop_seconds(container: dict[str, Any]) -> float | None:
    """Return how long preStop holds a pod; None when there is none, or nobody can tell from its words."""
    hook = ((container.get("lifecycle") or {}).get("preStop")) or {}
    if "sleep" in hook:
        return float(hook["sleep"].get("seconds", 0))
    words = " ".join(str(word) for word in (hook.get("exec") or {}).get("command") or ())
    found = re.search(r"\bsleep\s+([0-9.]+)", words)
    if found:
        return float(found[1])
    # Some other command, or a request: it holds the pod for as long as it takes.
    return LEAST_PRE_STOP_SECONDS if hook else None
