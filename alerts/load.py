"""Read the catalogue: each file whole, each error with its file, its line and the mend."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from alerts.model import Alert
from alerts.places import place
from alerts.yaml_text import YamlError, parse

__all__ = ["CATALOGUE", "CatalogueError", "load_alert", "load_catalogue", "read_document"]

_Model = TypeVar("_Model", bound=BaseModel)
CATALOGUE = Path(__file__).resolve().parent / "catalogue"


class CatalogueError(ValueError):
    """What is wrong with the catalogue, one line per finding."""


def load_catalogue(folder: Path = CATALOGUE) -> tuple[Alert, ...]:
    """Return the alerts of a folder, by slug in alphabetical order.

    Args:
        folder: Holds one `<slug>.yaml` per alert.

    Raises:
        CatalogueError: With every finding of every file, or because there is no file at all.
    """
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise CatalogueError(f"{folder}: no alert here: a catalogue is a folder of <slug>.yaml files")
    alerts, findings = [], []
    for path in files:
        try:
            alerts.append(load_alert(path))
        except CatalogueError as error:
            findings.append(str(error))
    slugs = {alert.slug for alert in alerts}
    names = [alert.alert for alert in alerts]
    # Which files are broken is said above; a slug of theirs would only be reported a second time.
    if not findings:
        findings += [
            f"{place(folder / f'{alert.slug}.yaml', 'inhibits', target.slug)}: inhibits {target.slug!r}, "
            "which has no file here: mend the slug or write the file"
            for alert in alerts
            for target in alert.inhibits
            if target.slug not in slugs
        ]
    findings += [
        f"{place(folder / f'{alert.slug}.yaml', 'alert')}: another file has the alert {alert.alert} too: rename one"
        for alert in alerts
        if names.count(alert.alert) > 1
    ]
    if findings:
        raise CatalogueError("\n".join(findings))
    return tuple(alerts)


def load_alert(path: Path) -> Alert:
    """Return the alert that one file tells.

    Args:
        path: `<slug>.yaml`; its name must be the slug.

    Raises:
        CatalogueError: With file, line and mend of each finding.
    """
    return read_document(path, Alert)


def read_document(path: Path, model: type[_Model]) -> _Model:
    """Return what one file tells, as a model that has a slug.

    Args:
        path: `<slug>.yaml`; its name must be the slug.
        model: The strict model of such files.

    Raises:
        CatalogueError: With file, line and mend of each finding.
    """
    try:
        document, lines = parse(path.read_text(encoding="utf-8"))
    except YamlError as error:
        raise CatalogueError(f"{path.name}: {error}") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{path.name}: not UTF-8 at byte {error.start}: save it as UTF-8") from error
    if not isinstance(document, dict):
        raise CatalogueError(f"{path.name}: is a mapping that starts with `slug: {path.stem}`")
    try:
        found = model.model_validate(document)
    except ValidationError as error:
        raise CatalogueError("\n".join(_say(path.name, lines, found) for found in error.errors())) from error
    if (slug := getattr(found, "slug", None)) != path.stem:
        raise CatalogueError(f"{path.name}:{lines[('slug',)]}: slug {slug!r}: the file must be {slug}.yaml")
    return found


def _say(name: str, lines: dict[tuple[str | int, ...], int], found: ErrorDetails) -> str:
    place = found["loc"]
    known = place
    # A missing key has no line of its own: its mapping's line is the nearest.
    while known and known not in lines:
        known = known[:-1]
    where = ".".join(map(str, place))
    said = {
        "missing": "is missing: add it",
        "extra_forbidden": "is no key here: mend the spelling or remove it",
    }.get(found["type"], found["msg"].removeprefix("Value error, "))
    return f"{name}:{lines.get(known, 1)}: {where + ' ' if where else ''}{said}"
