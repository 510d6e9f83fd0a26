"""`inferdeck doctor --manifests`: the rules over all Deployments, each finding under the slug that it would become."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from inferdeck.checks import Check
from inferdeck.errors import CannotRun
from inferdeck.manifests import rollout, scheduling
from inferdeck.manifests.disruption import drain_findings
from inferdeck.manifests.nodes import Node, nodes_of
from inferdeck.manifests.read import Document, of_kind, read_objects
from inferdeck.manifests.rollout import Finding, Measured
from inferdeck.manifests.rows import row_findings
from inferdeck.manifests.workload import Workload, workload_of

__all__ = ["examine_manifests", "judge", "measured_from_rows"]

BACK_SECONDS = 86_400.0


def examine_manifests(
    path: Path, nodes_path: Path | None, ring_dir: Path, *, warm_up: float | None, longest_request: float | None
) -> list[Check]:
    """Read objects and judge them.

    Args:
        path: Rendered objects, or a kustomization.
        nodes_path: The cluster's nodes; None when they are not known.
        ring_dir: Rows of a service that has run here: its warm-up and its longest request are measured there.
        warm_up: Seconds, told by hand.
        longest_request: Seconds, told by hand.

    Raises:
        CannotRun: If something cannot be read, or there is nothing to judge.
    """
    documents = read_objects(path)
    nodes = None
    if nodes_path is not None:
        given = read_objects(nodes_path)
        if not of_kind(given, "Node"):
            raise CannotRun(f"no node in {nodes_path}", "give the output of `kubectl get nodes -o yaml`")
        nodes = nodes_of(given)
    measured = measured_from_rows(ring_dir)
    if warm_up is not None or longest_request is not None:
        measured = replace(
            measured,
            warm_up_seconds=measured.warm_up_seconds if warm_up is None else warm_up,
            longest_request_seconds=measured.longest_request_seconds if longest_request is None else longest_request,
            source="as told",
        )
    return judge(documents, nodes, measured)


def measured_from_rows(ring_dir: Path, clock: Callable[[], float] = time.time) -> Measured:
    """Return the slowest start and the longest request that the rows of a folder know, of the last day.

    Args:
        ring_dir: Folder of the rows.
        clock: Unix seconds.
    """
    from runbooks.lives import start_of
    from runbooks.prometheus_source import SourceMissingError
    from runbooks.row_source import RowSource

    now = clock()
    try:
        rows = RowSource(ring_dir).collect(now - BACK_SECONDS, now)
    except SourceMissingError:
        return Measured()
    begun = [one.seconds for one in map(start_of, rows.rings) if one and one.ready]
    longest = float(rows.duration_s.max()) if len(rows) else None
    return Measured(max(begun, default=None), longest, f"rows in {ring_dir}")


def judge(documents: Iterable[Document], nodes: Sequence[Node] | None, measured: Measured) -> list[Check]:
    """Return what is found about each Deployment.

    Args:
        documents: Kubernetes objects.
        nodes: The cluster's; None when they are not known.
        measured: Of the service.

    Raises:
        CannotRun: If no Deployment is among the objects, or one cannot be read.
    """
    documents = list(documents)
    deployments = of_kind(documents, "Deployment")
    if not deployments:
        raise CannotRun("no Deployment among the objects", "give the objects of a service, rendered")
    checks: list[Check] = []
    try:
        workloads = [workload_of(document) for document in deployments]
        by_name = {one.name: document for one, document in zip(workloads, deployments, strict=True)}
        # An agent or a store beside the service may well be one pod: a rollout of it cuts off nobody's request.
        serving = [one for one in workloads if one.environment("INFERDECK_RING_DIR")] or workloads
        for one in workloads:
            if one in serving:
                checks += _checks(rollout.SLUG, one, rollout.rollout_findings(one, measured))
                checks += _checks("drain", one, drain_findings(by_name[one.name], one, documents))
            checks += _checks(scheduling.SLUG, one, scheduling.scheduling_findings(one, nodes))
            checks += _checks("rows", one, row_findings(one))
    except ValueError as error:
        raise CannotRun(str(error), "`kubectl apply --dry-run=server` says what an API server takes") from error
    return checks


def _checks(name: str, workload: Workload, findings: Iterable[Finding]) -> Iterator[Check]:
    return (Check(f"{name}: {workload.name}", one.state, one.detail, one.mend) for one in findings)
