"""The shipped pages, and each of their checks broken once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from inferdeck.cli import LazyGroup
from runbooks.expectation import Expectation
from runbooks.pages import PAGES_DIR, Mitigation, Page, PageError, Step, check_page, load_page, load_pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = load_pages()


@pytest.mark.parametrize("slug", PAGES)
def test_each_shipped_page_is_in_order(slug: str) -> None:
    """Headings, length, steps, relations and commands of each page are as they must be."""
    assert [] == check_page(PAGES[slug], PAGES, LazyGroup.VERBS)


def test_each_alert_of_the_catalogue_has_its_page() -> None:
    """Alert, slug, layer, kind and severity of catalogue and page agree."""
    files = sorted((ROOT / "alerts/catalogue").glob("*.yaml"))
    assert files

    for file in files:
        entry = yaml.safe_load(file.read_text(encoding="utf-8"))
        page = PAGES[entry["slug"]]

        assert (entry["alert"], entry["kind"], entry["severity"]) == (page.alert, page.kind, page.severity)
        assert entry["layer"] == page.layer


def test_there_are_the_five_pages_of_the_spine() -> None:
    """Pages are found in their folder by their alerts' names."""
    expected = {"EventLoopBlocked", "ServiceDown", "ExporterUnreachable", "LatencyObjectiveMissed", "Watchdog"}

    assert expected <= {page.alert for page in PAGES.values()}


@pytest.mark.parametrize("slug", PAGES)
def test_the_first_sentence_stands_alone(slug: str) -> None:
    """The first sentence is one line that ends with a full stop: it is what is read at 3 a.m. and in the verdict."""
    summary = PAGES[slug].summary

    assert summary.endswith(".")
    assert 30 <= len(summary) <= 120


GOOD = PAGES["event_loop_blocked"]


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (replace(GOOD, path="Other.md"), "named otherwise than its alert"),
        (replace(GOOD, text=GOOD.text.replace("## Impact", "## Effect")), "headings are"),
        (replace(GOOD, text=GOOD.text + "\n" * 60), "over 60"),
        (replace(GOOD, layer="kernel"), "'kernel' is none of"),
        (replace(GOOD, severity="critical"), "'critical' is none of"),
        (replace(GOOD, steps=(Step("event_loop.gone", Expectation.parse("> 1"), 1.0),)), "does not exist"),
        (replace(GOOD, steps=(Step("liveness.exporter_answers", Expectation.parse("> 1"), 1.0),)), "is not told"),
        (replace(GOOD, steps=()), "needs a step that must hold"),
        (replace(GOOD, steps=tuple(replace(one, guard=True) for one in GOOD.steps)), "is no guard"),
        (replace(GOOD, steps=tuple(replace(one, needs="", guard=True) for one in GOOD.steps)), "guard of no condition"),
        (replace(GOOD, explains=("nobody",)), "no page for slug nobody"),
        (replace(GOOD, kind="symptom", candidates=()), "lists its candidates"),
        (replace(GOOD, mitigations=(Mitigation("inferdeck repair", "none needed"),)), "no verb of inferdeck"),
        (replace(GOOD, mitigations=(Mitigation("echo 'open", "none needed"),)), "does not parse"),
        (replace(GOOD, mitigations=(Mitigation("inferdeck status", ""),)), "no command or no undo"),
        (replace(GOOD, mitigations=(Mitigation("inferdeck status", "none", safe=True),)), "is safe but has no id"),
        (replace(GOOD, text=GOOD.text + "\n`inferdeck fix`"), "no verb of inferdeck"),
    ],
)
def test_each_check_sees_its_fault(page: Page, complaint: str) -> None:
    """Every check of a page was broken once, here."""
    faults = check_page(page, PAGES, LazyGroup.VERBS)

    assert any(complaint in found for found in faults), faults


@pytest.mark.parametrize("verb", LazyGroup.VERBS)
def test_each_verb_of_the_console_may_be_told(verb: str) -> None:
    """A page may tell to type whatever the console has, also what came after the page."""
    page = replace(GOOD, text=f"{GOOD.text}\n`inferdeck {verb} x`")

    assert [] == [found for found in check_page(page, PAGES, LazyGroup.VERBS) if "no verb" in found]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# no front matter\n", "begins without front matter"),
        ("---\nalert: [\n---\n", "is no YAML"),
        ("---\nalert: A\n---\n", "lacks or misuses"),
        ("---\n- a\n---\n", "lacks or misuses"),
        (
            "---\nalert: A\nslug: a\nlayer: model\nkind: failure\nseverity: page\nsteps: [{run: a, expect: 5%}]\n---\n",
            "expectation '5%'",
        ),
    ],
)
def test_a_page_that_cannot_be_read_names_file_and_fault(tmp_path: Path, text: str, complaint: str) -> None:
    """Wrong front matter is a PageError with the file's name, never a bare KeyError."""
    path = tmp_path / "Bad.md"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(PageError, match=complaint) as caught:
        load_page(path)
    assert str(caught.value).startswith("Bad.md: ")


def test_the_folder_of_pages_ships_with_the_package() -> None:
    """The tool reads the very files that people read."""
    assert (PAGES_DIR / "EventLoopBlocked.md").is_file()
