"""Rows that would stay in their pod are told."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.manifests.rows import row_findings
from inferdeck.manifests.workload import workload_of


def found(deployment: Any) -> list[tuple[str, str]]:
    """Return state and detail of all findings."""
    return [(one.state, one.detail) for one in row_findings(workload_of(deployment))]


def test_a_sidecar_with_a_bounded_volume_is_right(deployment: Any) -> None:
    """It says which."""
    assert [("ok", "rows in volume rows, 128Mi, read by the sidecar")] == found(deployment)


def test_a_pod_that_records_nothing_is_not_judged(deployment: Any, service: Any) -> None:
    """Somebody else's service."""
    service["env"] = []

    assert [] == found(deployment)


@pytest.mark.parametrize(
    ("change", "state", "told"),
    [
        (lambda pod: pod.update(initContainers=[]), "fail", "no exporter beside it"),
        (lambda pod: pod["volumes"][0].update(emptyDir={"medium": "Memory"}), "fail", "no sizeLimit"),
        (lambda pod: pod["volumes"][0].update(emptyDir=None, hostPath={"path": "/x"}), "warn", "no emptyDir"),
        (lambda pod: pod["initContainers"][0].update(volumeMounts=[]), "fail", "share no volume"),
        (lambda pod: pod["initContainers"][0].update(securityContext={"runAsUser": 0}), "fail", "run as users"),
        (
            lambda pod: pod["containers"].append(pod.pop("initContainers")[0] | {"restartPolicy": None}),
            "warn",
            "no native sidecar",
        ),
    ],
)
def test_what_keeps_rows_from_the_exporter_is_told(
    deployment: Any, pod: Any, change: Any, state: str, told: str
) -> None:
    """No sidecar, no shared or no bounded volume, another user."""
    change(pod)

    assert any(one == state and told in detail for one, detail in found(deployment))
