"""Every object that deploy/k8s renders is one that its API server takes: no field unknown, missing or mistyped."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.deploy.conftest import FOLDERS, HERE, Document, need_go

# The oldest with native sidecars on by default, and the newest whose schemas the package has.
VERSIONS = ("1.29", "1.37")
OPERATOR = HERE.parents[1] / "alerts" / "operator"
# Group -> Go module that holds its definitions (tests/deploy/crds/go.mod), and where in it.
DEFINITIONS = {
    "keda.sh": ("github.com/kedacore/keda/v2", "config/crd/bases"),
    "monitoring.coreos.com": ("github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd"),
}


def strict(schema: Any) -> Any:
    """Return a custom resource's schema as an API server prunes by it: fields that are not told are errors."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: strict(value) for key, value in schema.items()}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if schema.get("type") == "object" and "properties" in schema and not open_ended:
        changed["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        changed["type"] = ["integer", "string"]
        # Said once more in Kubernetes' own words, which mean the same.
        changed.pop("anyOf", None)
    return changed


class Loader(yaml.SafeLoader):
    """Reads a lone `=`, which is a value of an enumeration there, as the text that it is."""


Loader.add_constructor("tag:yaml.org,2002:value", lambda _loader, node: node.value)


@cache
def definitions(group: str) -> Path:
    """Return the folder of a group's definitions, downloaded once and held to its checksum."""
    module, below = DEFINITIONS[group]
    done = subprocess.run(
        [need_go(), "mod", "download", "-json", module], cwd=HERE / "crds", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:] or done.stdout[-2000:]
    return Path(json.loads(done.stdout)["Dir"]) / below


@cache
def custom_schema(api_version: str, kind: str) -> Any:
    """Return the strict schema of a custom resource; None when there is no such kind or version."""
    group, _, wanted = api_version.partition("/")
    path = definitions(group) / f"{group}_{kind.lower()}s.yaml"
    if not path.exists():
        return None
    definition = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 - a safe loader's child
    for version in definition["spec"]["versions"]:
        if version["name"] == wanted and definition["spec"]["names"]["kind"] == kind:
            schema = strict(version["schema"]["openAPIV3Schema"])
            # The server checks these itself.
            schema["properties"]["metadata"] = {"type": "object"}
            return schema
    return None


def faults(document: Document, version: str) -> list[str]:
    """Return what an API server of a version would refuse in an object."""
    group = document["apiVersion"].partition("/")[0]
    name = f"{document['kind']}/{document['metadata']['name']}"
    if group in DEFINITIONS:
        schema = custom_schema(document["apiVersion"], document["kind"])
        if schema is None:
            return [f"{name}: no such kind in {group}"]
        wrong = Draft202012Validator(schema).iter_errors(document)
        return [f"{name}: {error.json_path}: {error.message[:200]}" for error in wrong]
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return [f"{name}: {str(error)[:300]}"]
    return []


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_taken(folder: str, version: str, rendered: Callable[[str], list[Document]]) -> None:
    """By the schemas of Kubernetes, and those that KEDA and the Prometheus Operator install."""
    documents = rendered(folder)

    assert [] == [fault for document in documents for fault in faults(document, version)]
    assert len(documents) >= 7


@pytest.mark.parametrize("path", sorted(OPERATOR.glob("[!k]*.yaml")), ids=lambda path: path.stem)
def test_every_generated_object_of_the_operator_is_taken(path: Path) -> None:
    """As it is committed, for who applies it without our overlay: by the definitions that the Operator installs."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert [] == faults(document, VERSIONS[-1])


def container(document: Document) -> Any:
    """Return the first container of a deployment."""
    return document["spec"]["template"]["spec"]["containers"][0]


def broken(kind: str, change: Callable[[Document], object], documents: list[Document]) -> Document:
    """Return a copy of the first object of a kind, changed."""
    copy = deepcopy(next(document for document in documents if document["kind"] == kind))
    change(copy)
    return copy


BREAKS: list[tuple[str, str, Callable[[Document], object]]] = [
    ("base", "Deployment", lambda one: container(one).update(readynessProbe={"tcpSocket": {"port": 1}})),
    ("base", "Deployment", lambda one: one["spec"].pop("selector")),
    ("base", "Deployment", lambda one: one["spec"].update(replicas="two")),
    ("base", "PodDisruptionBudget", lambda one: one["spec"].update(maxUnavailble=1)),
    ("overlays/operator", "PodMonitor", lambda one: one["spec"].update(endpoints=[])),
    ("overlays/operator", "PodMonitor", lambda one: one["spec"]["podMetricsEndpoints"][0].update(interval="soon")),
    ("overlays/operator", "PrometheusRule", lambda one: one["spec"]["groups"][0]["rules"][0].update(fur="1m")),
    ("overlays/operator", "PrometheusRule", lambda one: one["spec"]["groups"][0]["rules"][0].pop("expr")),
    ("overlays/operator", "ServiceMonitor", lambda one: one["spec"].pop("selector")),
    ("overlays/autoscale-keda", "ScaledObject", lambda one: one["spec"].pop("triggers")),
    ("overlays/autoscale-keda", "ScaledObject", lambda one: one["spec"]["advanced"].update(behavior={})),
    ("overlays/autoscale-keda", "ScaledObject", lambda one: one.update(kind="ScaledThing")),
]


@pytest.mark.parametrize(("folder", "kind", "change"), BREAKS)
def test_what_an_api_server_refuses_is_seen(
    folder: str, kind: str, change: Callable[[Document], object], rendered: Callable[[str], list[Document]]
) -> None:
    """A misspelt field, a missing one, a wrong type, an unknown kind: the check above can fail."""
    assert faults(broken(kind, change, rendered(folder)), "1.37")
