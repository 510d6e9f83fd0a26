"""What a drain of nodes may take away: PodDisruptionBudgets against the pods that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from inferdeck.manifests.quantity import share
from inferdeck.manifests.read import Document, of_kind
from inferdeck.manifests.rollout import Finding
from inferdeck.manifests.workload import Workload

__all__ = ["drain_findings"]


def drain_findings(document: Document, workload: Workload, documents: Iterable[Document]) -> Iterator[Finding]:
    """Yield what is wrong with a workload's budget; one that is scaled to nothing has none to be wrong.

    Args:
        document: The Deployment.
        workload: The same, as data.
        documents: All objects, the budgets among them.
    """
    if workload.replicas == 0:
        return
    budgets = [one for one in of_kind(documents, "PodDisruptionBudget") if _is_about(one, document)]
    if not budgets:
        yield Finding(
            "warn",
            "no PodDisruptionBudget: a drain may take every pod at once",
            "one with maxUnavailable: 1 and the pods' labels",
        )
    for budget in budgets:
        spec = budget.get("spec") or {}
        if "maxUnavailable" in spec:
            spare = share(spec["maxUnavailable"], workload.replicas, up=True)
        else:
            spare = workload.replicas - share(spec.get("minAvailable", 0), workload.replicas, up=True)
        name = (budget.get("metadata") or {}).get("name", "?")
        if spare <= 0:
            detail = f"budget {name} spares none of {workload.replicas} pods: a drain of their node never ends"
            yield Finding("fail", detail, "maxUnavailable: 1")
        elif spare >= workload.replicas:
            detail = f"budget {name} lets all {workload.replicas} pods go at once in a drain"
            yield Finding("fail", detail, "maxUnavailable: 1 with 2 replicas at least")
        else:
            yield Finding("ok", f"a drain takes {spare} of {workload.replicas} pods at a time")


def _is_about(budget: Document, document: Document) -> bool:
    """Return whether a budget's labels are those of a Deployment's pods; expressions are not looked at."""
    wanted = ((budget.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    labels: dict[str, Any] = (document["spec"]["template"].get("metadata") or {}).get("labels") or {}
    same = (budget.get("metadata") or {}).get("namespace") == (document.get("metadata") or {}).get("namespace")
    return bool(wanted) and same and wanted.items() <= labels.items()
