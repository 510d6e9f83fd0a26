"""What `check` looks at: the alert catalogue, its generated files, the runbooks, and our own schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inferdeck.checks import Check, guarded
from inferdeck.version import ROOT

__all__ = ["examine"]


def examine(root: Path = ROOT) -> list[Check]:
    """Check what is written down, without starting anything and without changing anything.

    Args:
        root: The checkout, or the folder of the installed packages.
    """
    from inferdeck.check_links import check_links
    from inferdeck.check_queries import check_queries
    from inferdeck.check_uids import check_uids
    from inferdeck.stack.compose.check import check_compose

    looks = {"alerts": lambda: _alerts(root), "runbooks": _runbooks, "mappings": _mappings, "schemas": _schemas}
    # One line for each part; what a look yields is shown as it is, and one that breaks is a finding of its own.
    looks["queries"] = lambda: check_queries(root)
    looks["links"] = lambda: check_links(root)
    looks["dashboards"] = lambda: _dashboards(root)
    looks["uids"] = lambda: check_uids(root)
    looks["compose"] = lambda: check_compose(root)
    looks["gateway"] = lambda: _gateway(root)
    return [check for name, look in looks.items() for check in guarded(name, look)]


def _alerts(root: Path) -> Iterator[Check]:
    from alerts.check import check
    from alerts.grafana.check import check_grafana

    for finding in (*check(root), *check_grafana(root)):
        yield Check(finding.name, finding.state, finding.detail, finding.mend)


def _gateway(root: Path) -> Iterator[Check]:
    from inferdeck.gateway_rules import GATEWAY, rules_text

    path = root / GATEWAY
    if not path.is_file():
        yield Check("gateway: rules", "absent", f"{GATEWAY} is not here: it belongs to the checkout")
    elif path.read_text(encoding="utf-8") != rules_text(root):
        yield Check("gateway: rules", "fail", f"{GATEWAY} is not what openapi.yaml says", "inferdeck build")
    else:
        yield Check("gateway: rules", "ok", f"{GATEWAY} is what openapi.yaml says")


def _dashboards(root: Path) -> Iterator[Check]:
    try:
        from dashboards.check import check
    except ImportError as error:
        yield Check("dashboards", "absent", f"cannot be judged here: {error}", "pip install '.[dashboards]'")
        return
    for finding in check(root):
        yield Check(finding.name, finding.state, finding.detail, finding.mend)


def _runbooks() -> Iterator[Check]:
    from inferdeck.cli import LazyGroup
    from inferdeck.mitigation.actions import ACTION_IDS
    from runbooks.pages import check_page, load_pages

    pages = load_pages()
    wrong = [sentence for page in pages.values() for sentence in check_page(page, pages, LazyGroup.VERBS)]
    wrong += [
        f"{page.path}: mitigation {one.id!r} is none that the stack can carry out ({', '.join(ACTION_IDS)})"
        for page in pages.values()
        for one in page.mitigations
        if one.id and one.id not in ACTION_IDS
    ]
    if wrong:
        yield from (Check("runbooks: pages", "fail", sentence, "mend the page") for sentence in wrong)
    else:
        steps = {step.run for page in pages.values() for step in page.steps}
        yield Check("runbooks: pages", "ok", f"{len(pages)} pages with {len(steps)} steps, all of them there")


def _mappings(folder: Path | None = None) -> Iterator[Check]:
    """The shipped mappings for services without our rows, as triage would read them."""
    from runbooks.mapping.load import READY, MappingError, load_mapping

    wrong, names = [], []
    for path in sorted((folder or READY).glob("*.yaml")):
        try:
            mapping = load_mapping(path)
        except MappingError as error:
            wrong += str(error).splitlines()
            continue
        names.append(mapping.name)
        if mapping.name != path.stem:
            wrong.append(f"{path.name}:1: name {mapping.name!r}: the file must be {mapping.name}.yaml")
    if wrong:
        yield from (Check("mappings", "fail", sentence, "mend the file") for sentence in wrong)
    else:
        yield Check("mappings", "ok", ", ".join(names))


def _schemas(load: Callable[[str], Mapping[str, Any]] | None = None, names: Sequence[str] = ()) -> Iterator[Check]:
    """The schemas of our results; as shipped by default."""
    from jsonschema import Draft202012Validator, SchemaError

    from inferdeck.schema import VERBS, load_schema, schema_names

    names, load = names or schema_names(), load or load_schema
    broken = [f"{verb}: there is none" for verb in VERBS if verb not in names]
    for name in names:
        try:
            Draft202012Validator.check_schema(load(name))
        except (OSError, ValueError, SchemaError) as error:
            broken.append(f"{name}: {str(error).partition(chr(10))[0]}")
    if broken:
        yield Check("schemas", "fail", "; ".join(broken), "mend inferdeck/schemas")
    else:
        yield Check("schemas", "ok", f"{len(names)} results have a schema")
