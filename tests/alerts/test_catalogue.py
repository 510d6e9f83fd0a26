"""The circle is closed: what one place says there is, every other place has, and nothing more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from alerts.load import load_catalogue
from alerts.slugs import FAILURES
from exporters.names import METRICS

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = {alert.slug: alert for alert in load_catalogue()}
CAUSED = sorted(slug for slug, alert in CATALOGUE.items() if alert.kind == "failure")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def rows(text: str, width: int) -> list[list[str]]:
    """Return the cells of the Markdown table rows with so many columns, backquotes taken off."""
    found = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return [[cell.strip("`") for cell in row] for row in found if len(row) == width]


def test_every_failure_of_the_catalogue_has_a_program_and_every_program_an_alert() -> None:
    """By the file's name, with a test beside it."""
    folder = ROOT / "tests" / "failures"

    assert CAUSED == sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith(("test_", "_")))
    assert CAUSED == sorted(path.stem.removeprefix("test_") for path in folder.glob("test_*.py"))


@pytest.mark.parametrize(
    ("folder", "suffix"), [("alerts/catalogue", ".yaml"), ("alerts/rules", ".yml"), ("alerts/tests", ".test.yml")]
)
def test_every_alert_has_its_files_and_every_file_its_alert(folder: str, suffix: str) -> None:
    """One name in all of them."""
    names = sorted(path.name.removesuffix(suffix) for path in (ROOT / folder).glob(f"*{suffix}"))

    assert sorted(CATALOGUE) == [name for name in names if not name.startswith("record_")]


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    """The pages are named as the alerts."""
    pages = {path.stem for path in (ROOT / "runbooks").glob("*.md")} - {"README"}

    assert {alert.runbook for alert in CATALOGUE.values()} == pages


def test_the_front_page_tells_every_failure() -> None:
    """With its layer, its alert and its page."""
    told = {row[0]: row for row in rows(README, 4) if row[0].partition("`")[0] in FAILURES}
    expected = {
        f"{slug}` ({alert.layer})": f"[{alert.alert}](alerts/catalogue/{slug}.yaml)"
        for slug, alert in CATALOGUE.items()
        if alert.kind == "failure"
    }

    assert expected == {first: row[2] for first, row in told.items()}


def test_the_contracts_tell_every_alert_as_the_catalogue_has_it() -> None:
    """Slug, name, kind and severity in docs/architecture.md."""
    section = ARCHITECTURE.partition("## 5. alerts")[2].partition("## 6.")[0]
    told = {slug: (name, kind) for slug, name, kind, _ in rows(section, 4) if slug not in {"slug", "---"}}

    assert {slug: (one.alert, f"{one.kind}, {one.severity}") for slug, one in CATALOGUE.items()} == told


def test_the_contracts_tell_every_metric_and_no_other() -> None:
    """By its full name in docs/architecture.md; those of the service's own port, and of triage, are beside them."""
    told = set(re.findall(r"`((?:model|runtime|telemetry|gpu|data|stream)_[a-z_]+)[`{]", ARCHITECTURE))

    assert set(METRICS) - told == set()
    assert {name for name in told - set(METRICS) if not name.startswith("telemetry_triage_")} <= {"model_version"}
