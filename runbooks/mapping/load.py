"""Read mapping files: shipped ones by name, own ones by path; each error with its file, its line and the mend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from exporters.names import METRICS
from runbooks.mapping.model import TARGETS, UNITS, LabelRule, MetricMapping, Replacement, label_values

__all__ = ["READY", "MappingError", "find_mapping", "load_mapping", "ready_names"]

READY: Final = Path(__file__).resolve().parent / "ready"
# The longest shipped one has 3 kB; what is far longer is another file.
MOST_BYTES: Final = 256 * 1024

Place = tuple[str | int, ...]
Lines = Mapping[Place, int]


class MappingError(ValueError):
    """A mapping that cannot be used: one line per finding, with file, line and mend."""


def ready_names() -> list[str]:
    """Return the names of the shipped mappings."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find_mapping(name_or_path: str) -> MetricMapping:
    """Return a mapping, shipped (by name) or of one's own (by path).

    Args:
        name_or_path: A name without slash or ending is looked for among the shipped ones first.

    Raises:
        MappingError: If there is none, or it is written wrongly.
    """
    if name_or_path in ready_names():
        return load_mapping(READY / f"{name_or_path}.yaml")
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        shipped = ", ".join(ready_names())
        raise MappingError(f"no mapping {name_or_path!r}: give a file, or one of the shipped ones: {shipped}")
    return load_mapping(path)


def load_mapping(path: Path) -> MetricMapping:
    """Return the mapping of one file.

    Raises:
        MappingError: With file, line and mend of each finding.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise MappingError(f"{path.name}: over {MOST_BYTES} bytes: this is no mapping file")
        document, lines = _parse(path.name, raw.decode("utf-8"))
    except OSError as error:
        raise MappingError(f"{path}: {error.strerror}: give a file that can be read") from error
    except UnicodeDecodeError as error:
        raise MappingError(f"{path.name}: not UTF-8 at byte {error.start}: save it as UTF-8") from error
    if not isinstance(document, dict):
        raise MappingError(f"{path.name}:1: a mapping file begins with `name: {path.stem}`")
    try:
        mapping = MetricMapping.model_validate(document)
    except ValidationError as error:
        raise MappingError("\n".join(_say(path.name, lines, found) for found in error.errors())) from error
    if found := [f"{path.name}:{_line(lines, place)}: {text}" for place, text in _findings(mapping)]:
        raise MappingError("\n".join(found))
    return mapping


def _findings(mapping: MetricMapping) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong beyond the shape: names, labels and units that are none of ours."""
    for name, replacements in mapping.metrics.items():
        if name not in TARGETS:
            close = get_close_matches(name, TARGETS, n=1, cutoff=0.4)
            meant = f"did you mean {close[0]}?" if close else f"triage can use {', '.join(TARGETS)}"
            yield ("metrics", name), f"{name} is no name that can be mapped: {meant}"
            continue
        for index, one in enumerate(replacements):
            place: Place = ("metrics", name, index)
            yield from _of_replacement(name, one, place)


def _of_replacement(name: str, one: Replacement, place: Place) -> Iterator[tuple[Place, str]]:
    ours = METRICS[name]
    if one.sum is not None and ours.kind != "histogram":
        yield (*place, "sum"), f"{name} is a {ours.kind}: give `metric`"
    if one.unit is not None and UNITS[one.unit][0] != ours.unit:
        yield (*place, "unit"), f"{one.unit} cannot be made {ours.unit}, the unit of {name}: mend the unit"
    for label, rule in one.labels.items():
        allowed = label_values(name, label)
        if allowed is None:
            known = ", ".join(ours.labels) or "none"
            yield (*place, "labels", label), f"{name} has no label {label} (it has: {known}): remove it"
        elif allowed:
            yield from _of_values(rule, allowed, (*place, "labels", label))


def _of_values(rule: LabelRule, allowed: tuple[str, ...], place: Place) -> Iterator[tuple[Place, str]]:
    said = {("value",): rule.value} if rule.value is not None else {("values", k): v for k, v in rule.values.items()}
    for tail, value in said.items():
        if value not in allowed:
            yield (*place, *tail), f"{value!r} is none of {', '.join(allowed)}: take one of these"


def _parse(name: str, text: str) -> tuple[Any, dict[Place, int]]:
    """Return the document, and the line on which each of its places begins."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        return loader.construct_document(node), dict(_places(name, node, ()))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise MappingError(f"{name}:{line}: {error.problem}: mend the YAML there") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise MappingError(f"{name}: no YAML ({' '.join(str(error).split())[:120]}): mend it") from error


def _places(name: str, node: yaml.Node, at: Place) -> Iterator[tuple[Place, int]]:
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _places(name, item, (*at, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line, word = key.start_mark.line + 1, str(key.value)
            if word in seen:
                # YAML itself would silently keep the last one
                raise MappingError(f"{name}:{line}: {word} stands twice: remove one")
            seen.add(word)
            yield from _places(name, value, (*at, word))
            yield (*at, word), line


def _line(lines: Lines, place: Place) -> int:
    # A missing key has no line of its own: its mapping's line is the nearest.
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _say(name: str, lines: Lines, found: ErrorDetails) -> str:
    place = tuple(part for part in found["loc"] if part != "[key]")
    where = ".".join(map(str, place))
    said = {
        "missing": "is missing: add it",
        "extra_forbidden": "is no key here: mend the spelling or remove it",
    }.get(found["type"], found["msg"].removeprefix("Value error, "))
    return f"{name}:{_line(lines, place)}: {where + ' ' if where else ''}{said}"
