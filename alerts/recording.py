"""Recording rules: what several alerts and panels need over many windows is written once and computed once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from alerts.load import CatalogueError, read_document
from alerts.model import Duration, Line, Slug, StrictModel
from alerts.yaml_text import dump

__all__ = [
    "RECORDING",
    "Recording",
    "Rule",
    "group_names",
    "load_recordings",
    "recorded_names",
    "recording_path",
    "render_recording",
    "used_by",
]

RECORDING = Path(__file__).resolve().parent / "recording"
# level:metric:operations, as Prometheus' own naming rules ask; the window is the operation's last part.
RecordName = Annotated[str, StringConstraints(pattern=r"^[a-z_]+:[a-z][a-z0-9_]*:[a-z0-9_]+(\{window\})?$")]


class Rule(StrictModel):
    """One recorded series; `{window}` in name and expression stands for each window of the file in turn."""

    record: RecordName
    what: Line
    expr: Annotated[str, StringConstraints(min_length=1)]

    @model_validator(mode="after")
    def _window_is_in_both(self) -> Rule:
        if ("{window}" in self.record) != ("{window}" in self.expr):
            raise ValueError(f"{self.record}: name and expr hold {{window}} both or neither")
        return self


class Recording(StrictModel):
    """One file of recording rules: how each is computed, over which windows, and how often."""

    slug: Slug
    why: Line
    # Window -> how often it is computed: long ones cost more and change more slowly. Under Prometheus' 5 minutes of
    # look-back, or the recorded series would have holes.
    windows: dict[Duration, Duration] = Field(min_length=1)
    rules: tuple[Rule, ...] = Field(strict=False, min_length=1)

    @model_validator(mode="after")
    def _series_have_no_holes(self) -> Recording:
        for window, every in self.windows.items():
            if seconds_of(every) > 150:
                raise ValueError(f"window {window}: every {every} leaves holes; at most 150s, half of the look-back")
        return self

    @model_validator(mode="after")
    def _names_are_single(self) -> Recording:
        names = [rule.record for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{twice[0]} is recorded twice")
        return self

    def groups(self) -> dict[str, list[tuple[str, str]]]:
        """Return interval -> (recorded name, expression) of the rules that are computed so often."""
        found: dict[str, list[tuple[str, str]]] = {}
        for window, every in self.windows.items():
            for rule in self.rules:
                pair = (rule.record.replace("{window}", window), rule.expr.replace("{window}", window).strip())
                if pair not in found.setdefault(every, []):
                    found[every].append(pair)
        return found

    def rule_groups(self) -> list[dict[str, Any]]:
        """Return the rule groups, in the shape of Prometheus' rule files."""
        return [
            {
                "name": f"record_{self.slug}_{every}",
                "interval": every,
                "rules": [{"record": name, "expr": expr} for name, expr in rules],
            }
            for every, rules in self.groups().items()
        ]


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as the catalogue writes it: one number and one unit of s, m, h, d."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def load_recordings(folder: Path = RECORDING) -> tuple[Recording, ...]:
    """Return the recording rules of a folder, by file name; none where there is no such folder.

    Raises:
        CatalogueError: With every finding of every file.
    """
    found, findings = [], []
    for path in sorted(folder.glob("*.yaml")):
        try:
            found.append(read_document(path, Recording))
        except CatalogueError as error:
            findings.append(str(error))
    if findings:
        raise CatalogueError("\n".join(findings))
    return tuple(found)


def recorded_names(recordings: Sequence[Recording]) -> set[str]:
    """Return the full names of all recorded series."""
    return {name for one in recordings for rules in one.groups().values() for name, _ in rules}


def recording_path(recording: Recording) -> str:
    """Return where the rules of a file lie, below the repository: beside the alerts' rules, to be loaded with them."""
    return f"alerts/rules/record_{recording.slug}.yml"


def group_names(recording: Recording) -> list[str]:
    """Return the names of its groups, in the order in which they are evaluated in tests."""
    return [str(group["name"]) for group in recording.rule_groups()]


def render_recording(recording: Recording) -> str:
    """Return the rule file of one recording file."""
    head = f"generated by `python -m alerts` from alerts/recording/{recording.slug}.yaml; do not edit"
    return dump({"groups": recording.rule_groups()}, head)


def used_by(expr: str, recordings: Sequence[Recording]) -> list[Recording]:
    """Return the files of which an expression uses a recorded series."""
    words = set(re.findall(r"[a-z_]+(?::[a-z0-9_]+)+", expr))
    return [one for one in recordings if words & recorded_names([one])]
