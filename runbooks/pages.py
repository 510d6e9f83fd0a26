"""Runbook pages as data: front matter for the tool, six headings for people, and the checks that keep both honest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from exporters.names import LAYERS
from runbooks.expectation import Expectation, ExpectationError
from runbooks.steps.registry import STEPS

__all__ = ["HEADINGS", "PAGES_DIR", "Mitigation", "Page", "PageError", "Step", "check_page", "load_page", "load_pages"]

PAGES_DIR: Final = Path(__file__).resolve().parent
HEADINGS: Final = ("Meaning", "Impact", "Confirm", "Diagnosis by layer", "Mitigation", "False alarm when")
KINDS: Final = ("failure", "symptom", "meta")
SEVERITIES: Final = ("page", "ticket", "info")
# A page that needs scrolling at 3 a.m. is not read (house-style, habit 18).
MOST_LINES: Final = 60


class PageError(ValueError):
    """A page that is written wrongly; the text names the file and the mend."""


@dataclass(frozen=True)
class Step:
    """One diagnosis step of a page.

    Attributes:
        run: "topic.function" in runbooks/steps.
        expect: What its value is when this failure is the cause.
        weight: Importance beside the page's other steps.
        needs: Group of which at least one step must hold; empty when it is no condition.
        only_for: Speaks for the failure when it holds and is silent when not.
        guard: A condition that healthy or other states meet as well: it can rule the failure out, never decide for it.
    """

    run: str
    expect: Expectation
    weight: float
    needs: str = ""
    only_for: bool = False
    guard: bool = False

    @property
    def decides(self) -> bool:
        """Whether a verdict may rest on it: a condition that this failure meets and health does not."""
        return bool(self.needs) and not self.guard


@dataclass(frozen=True)
class Mitigation:
    """What a page offers against the failure.

    Attributes:
        do: Command for people.
        undo: What takes it back, for people.
        id: What a machine can carry out (runbooks/mitigation); empty when only people can.
        safe: Whether a machine may do it by itself, once it is switched on.
    """

    do: str
    undo: str
    id: str = ""
    safe: bool = False


@dataclass(frozen=True)
class Page:
    """One runbook page.

    Attributes:
        path: File name below runbooks/.
        alert: Alert that it belongs to.
        slug: The failure's one name.
        layer: Layer at fault.
        kind: failure, symptom or meta; only failures are verdicts.
        severity: page, ticket or info.
        steps: Diagnosis.
        explains: Slugs that this failure causes beside itself.
        candidates: Slugs of failures behind a symptom.
        mitigations: What is offered, in order.
        summary: The page's first sentence.
        text: The whole page.
    """

    path: str
    alert: str
    slug: str
    layer: str
    kind: str
    severity: str
    steps: tuple[Step, ...]
    explains: tuple[str, ...]
    candidates: tuple[str, ...]
    mitigations: tuple[Mitigation, ...]
    summary: str
    text: str


def load_page(path: Path) -> Page:
    """Return the page of a file.

    Raises:
        PageError: If the front matter is missing or wrong.
    """
    text = path.read_text(encoding="utf-8")
    parts = re.split(r"^---\n", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0]:
        raise PageError(f"{path.name}: begins without front matter; put it between two lines of ---")
    try:
        head = yaml.safe_load(parts[1])
        return _page(path.name, head, parts[2], text)
    except yaml.YAMLError as error:
        raise PageError(f"{path.name}: front matter is no YAML: {' '.join(str(error).split())}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise PageError(f"{path.name}: front matter lacks or misuses {error}") from error
    except ExpectationError as error:
        raise PageError(f"{path.name}: {error}") from error


def load_pages(folder: Path = PAGES_DIR) -> dict[str, Page]:
    """Return slug -> page of all pages in a folder (files named as their alert)."""
    pages = [load_page(path) for path in sorted(folder.glob("[A-Z]*.md")) if path.stem != "README"]
    return {page.slug: page for page in pages}


def check_page(page: Page, known: Mapping[str, Page], verbs: Collection[str]) -> list[str]:
    """Return what is wrong with a page, one sentence each; empty when nothing is.

    Args:
        page: The page.
        known: All pages by slug, to check relations.
        verbs: Those of the console, which knows them; pages may tell to type no others.
    """
    wrong = []
    if page.path != f"{page.alert}.md":
        wrong.append(f"{page.path}: is named otherwise than its alert {page.alert}")
    headings = tuple(re.findall(r"^## (.+)$", page.text, flags=re.MULTILINE))
    if headings != HEADINGS:
        wrong.append(f"{page.path}: headings are {headings}, not {HEADINGS}")
    if (lines := len(page.text.splitlines())) > MOST_LINES:
        wrong.append(f"{page.path}: {lines} lines, over {MOST_LINES}")
    # Which layer is at fault is what a symptom's diagnosis finds out.
    layers = (*LAYERS, "unknown") if page.kind == "symptom" else LAYERS
    for value, allowed in ((page.layer, layers), (page.kind, KINDS), (page.severity, SEVERITIES)):
        if value not in allowed:
            wrong.append(f"{page.path}: {value!r} is none of {allowed}")
    wrong += [f"{page.path}: step {step.run} does not exist" for step in page.steps if step.run not in STEPS]
    unnamed = [step.run for step in page.steps if f"`{step.run}`" not in page.text]
    wrong += [f"{page.path}: step {run} is not told in the text" for run in unnamed]
    wrong += [f"{page.path}: no page for slug {slug}" for slug in page.explains + page.candidates if slug not in known]
    if page.kind == "failure" and not any(step.decides for step in page.steps):
        wrong.append(f"{page.path}: a failure needs a step that must hold and is no guard (needs: ...)")
    wrong += [
        f"{page.path}: step {step.run} is a guard of no condition; give it needs"
        for step in page.steps
        if step.guard and not step.needs
    ]
    if page.kind == "symptom" and not page.candidates:
        wrong.append(f"{page.path}: a symptom lists its candidates")
    for offer in page.mitigations:
        wrong += [f"{page.path}: {found}" for one in (offer.do, offer.undo) if (found := _command_fault(one, verbs))]
        if offer.safe and not offer.id:
            wrong.append(f"{page.path}: {offer.do!r} is safe but has no id by which it could be switched on")
    for command in re.findall(r"`(inferdeck [^`]+)`", page.text):
        wrong += [f"{page.path}: {found}"] if (found := _command_fault(command, verbs)) else []
    return wrong


def _command_fault(command: str, verbs: Collection[str]) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"command {command!r} does not parse: {error}"
    if not words:
        return "a mitigation has no command or no undo"
    if words[0] == "inferdeck" and (len(words) < 2 or words[1] not in verbs):
        return f"command {command!r} has no verb of inferdeck"
    return ""


def _page(name: str, head: Mapping[str, Any], body: str, text: str) -> Page:
    steps = tuple(
        Step(
            run=str(one["run"]),
            expect=Expectation.parse(str(one["expect"])),
            weight=float(one["weight"]),
            needs=str(one.get("needs", "")),
            only_for=bool(one.get("only_for", False)),
            guard=bool(one.get("guard", False)),
        )
        for one in head.get("steps") or ()
    )
    prose = [line for line in body.splitlines() if line and not line.startswith("#")]
    return Page(
        path=name,
        alert=str(head["alert"]),
        slug=str(head["slug"]),
        layer=str(head["layer"]),
        kind=str(head["kind"]),
        severity=str(head["severity"]),
        steps=steps,
        explains=tuple(head.get("explains") or ()),
        candidates=tuple(head.get("candidates") or ()),
        mitigations=tuple(
            Mitigation(str(one["do"]), str(one["undo"]), str(one.get("id", "")), one.get("safe", False) is True)
            for one in head.get("mitigations") or ()
        ),
        summary=prose[0] if prose else "",
        text=text,
    )
