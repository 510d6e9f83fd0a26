"""`doctor --manifests` names the slug that the objects would become, and nothing where they are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from inferdeck.checks import Check
from inferdeck.errors import CannotRun
from inferdeck.manifests.judge import examine_manifests, judge, measured_from_rows
from inferdeck.manifests.rollout import Measured
from probes import Recorder

AGENT = {
    "kind": "Deployment",
    "metadata": {"name": "agent"},
    "spec": {"replicas": 1, "strategy": {"type": "Recreate"}, "template": {"spec": {"containers": [{"name": "a"}]}}},
}


def failed(checks: list[Check]) -> list[str]:
    """Return the names of what fails."""
    return [check.name for check in checks if check.state == "fail"]


def examine(tmp_path: Path, objects: list[Any], nodes: list[Any], **told: float | None) -> list[Check]:
    """Write objects and nodes as kubectl gives them, and judge them."""
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump({"kind": "List", "items": nodes}))
    times: dict[str, float | None] = {"warm_up": None, "longest_request": None, **told}
    return examine_manifests(
        tmp_path / "objects.yaml",
        tmp_path / "nodes.yaml",
        tmp_path / "rings",
        warm_up=times["warm_up"],
        longest_request=times["longest_request"],
    )


def test_right_objects_name_nothing_and_wrong_ones_their_slug(
    tmp_path: Path, deployment: Any, service: Any, nodes: list[Any]
) -> None:
    """From the same objects, changed in one place each."""
    assert [] == failed(examine(tmp_path, [deployment], nodes, warm_up=20.0, longest_request=1.0))

    service["resources"]["limits"] = {"nvidia.com/gpuu": 1}
    assert {"pod_pending: inferdeck/sentiment"} == set(failed(examine(tmp_path, [deployment], nodes, warm_up=20.0)))

    service["resources"]["limits"] = {"nvidia.com/gpu": 1}
    assert ["rollout_cuts_off: inferdeck/sentiment"] == failed(examine(tmp_path, [deployment], nodes, warm_up=200.0))


def test_what_serves_nobody_may_have_a_gap(deployment: Any) -> None:
    """An agent beside the service is one pod; alone it is all there is to judge."""
    assert [] == failed(judge([deployment, AGENT], None, Measured()))
    assert ["rollout_cuts_off: agent"] * 2 == failed(judge([AGENT], None, Measured()))


def test_without_rows_nothing_is_measured(tmp_path: Path) -> None:
    """And nothing is made up."""
    assert Measured() == measured_from_rows(tmp_path / "none")


def test_the_warm_up_is_measured_from_status_pages(tmp_path: Path) -> None:
    """The sum of the phases of the slowest start that the rows tell of."""
    recorder = Recorder.open(tmp_path / "rings", service="sentiment")
    recorder.start()
    try:
        recorder.phase("warming_up")
        recorder.phase("ready")
    finally:
        recorder.close()

    measured = measured_from_rows(tmp_path / "rings")

    assert measured.warm_up_seconds is not None
    assert 0 <= measured.warm_up_seconds < 3600
    assert measured.longest_request_seconds is None


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        ([{"kind": "Service", "metadata": {"name": "s"}}], "no Deployment among the objects"),
        ([{"kind": "Deployment", "metadata": {"name": "s"}}], "s has no spec.template.spec.containers"),
    ],
)
def test_nothing_to_judge_is_told(objects: list[Any], told: str) -> None:
    """In one line, with the mend."""
    with pytest.raises(CannotRun, match=told):
        judge(objects, None, Measured())


def test_a_file_of_nodes_without_nodes_is_refused(tmp_path: Path, deployment: Any) -> None:
    """It would leave every pod Pending."""
    with pytest.raises(CannotRun, match="no node in"):
        examine(tmp_path, [deployment], [AGENT])
