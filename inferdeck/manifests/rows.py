"""Do the rows of a pod get out? The exporter beside the service, their shared volume, one user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from inferdeck.manifests.rollout import Finding
from inferdeck.manifests.workload import Workload

__all__ = ["row_findings"]

_VARIABLE: Final = "INFERDECK_RING_DIR"


def _ring_dir(container: Mapping[str, Any]) -> str | None:
    return next((one.get("value") for one in container.get("env") or () if one.get("name") == _VARIABLE), None)


def _volume_of(container: Mapping[str, Any], folder: str) -> str | None:
    """Return the volume in which a folder lies: that of the longest path above it."""
    mounts = [one for one in container.get("volumeMounts") or () if f"{folder}/".startswith(f"{one['mountPath']}/")]
    return max(mounts, key=lambda one: len(one["mountPath"]))["name"] if mounts else None


def row_findings(workload: Workload) -> Iterator[Finding]:
    """Yield what keeps rows from the exporter; nothing for a pod that records none.

    Args:
        workload: The Deployment.
    """
    folder = _ring_dir(workload.main)
    if folder is None:
        return
    beside = [one for one in workload.containers if one is not workload.main and _ring_dir(one) == folder]
    if not beside:
        yield Finding(
            "fail",
            f"the service records in {folder}, and no exporter beside it reads there",
            "an init container with restartPolicy: Always as in deploy/k8s/base",
        )
        return
    exporter = beside[0]
    if exporter.get("restartPolicy") != "Always":
        yield Finding(
            "warn",
            f"{exporter.get('name')} is no native sidecar: it may end before the service, and the last rows are unread",
            "make it an init container with restartPolicy: Always (Kubernetes 1.29 and later)",
        )
    mine, its = _volume_of(workload.main, folder), _volume_of(exporter, folder)
    if mine is None or mine != its:
        yield Finding("fail", f"service and exporter share no volume at {folder}", "mount one emptyDir in both")
        return
    yield from _volume(workload, mine)
    users = {str((one.get("securityContext") or {}).get("runAsUser", "the pod's")) for one in (workload.main, exporter)}
    if len(users) > 1:
        yield Finding(
            "fail", f"service and exporter run as users {' and '.join(sorted(users))}", "one user: rows are 0600"
        )


def _volume(workload: Workload, name: str) -> Iterator[Finding]:
    volumes: dict[str, dict[str, Any]] = {one["name"]: one for one in workload.pod.get("volumes") or ()}
    volume = volumes.get(name, {})
    empty = volume.get("emptyDir")
    if empty is None:
        yield Finding("warn", f"volume {name} is no emptyDir: rows on a disk cost more", "emptyDir, medium: Memory")
    elif empty.get("medium") == "Memory" and not empty.get("sizeLimit"):
        yield Finding("fail", f"volume {name} in memory has no sizeLimit: it may take the node's", "sizeLimit: 128Mi")
    else:
        yield Finding("ok", f"rows in volume {name}, {empty.get('sizeLimit', 'no limit')}, read by the sidecar")
