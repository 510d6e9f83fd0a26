"""Tests of alerts/load.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alerts.load import CATALOGUE, CatalogueError, load_alert, load_catalogue

Save = Callable[..., Path]


def test_the_shipped_catalogue_is_whole() -> None:
    """Every file of the catalogue is there, those of the spine among them, in alphabetical order."""
    slugs = [alert.slug for alert in load_catalogue()]

    assert sorted(path.stem for path in CATALOGUE.glob("*.yaml")) == slugs
    assert {"event_loop_blocked", "exporter_unreachable", "latency_objective", "service_down", "watchdog"} <= set(slugs)


def test_an_error_names_file_line_and_mend(document: dict[str, Any], save: Save) -> None:
    """A misspelt key is told with the file, the line on which it stands, and what to do."""
    document["keep_firing_fr"] = "1m"
    path = save(document)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("keep_firing_fr"))

    with pytest.raises(CatalogueError) as caught:
        load_alert(path)

    said = "keep_firing_fr is no key here: mend the spelling or remove it"
    assert f"thread_pool_exhausted.yaml:{line}: {said}" == str(caught.value)


def test_a_missing_key_is_told_where_it_belongs(document: dict[str, Any], save: Save) -> None:
    """A threshold without a source points at the threshold's line."""
    del document["thresholds"]["requests"]["source"]
    path = save(document)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.strip() == "requests:")

    with pytest.raises(CatalogueError) as caught:
        load_alert(path)

    said = "thresholds.requests.source is missing: add it"
    assert f"thread_pool_exhausted.yaml:{line}: {said}" == str(caught.value)


def test_all_findings_of_all_files_are_told_at_once(document: dict[str, Any], save: Save) -> None:
    """Nobody has to mend one finding to learn of the next."""
    save({**document, "severity": "loud", "channel": "pager"})
    save({**document, "slug": "gc_pauses", "alert": "GcPauses"})

    with pytest.raises(CatalogueError) as caught:
        load_catalogue(save(document, "unused").parent)

    assert 4 == len(str(caught.value).splitlines())


def test_a_file_bears_its_slug(document: dict[str, Any], save: Save) -> None:
    """A file under another name than its slug is refused, so that no slug can stand twice."""
    with pytest.raises(CatalogueError, match=r"the file must be thread_pool_exhausted\.yaml"):
        load_alert(save(document, "gc_pauses"))


def test_two_alerts_of_one_name_are_refused(document: dict[str, Any], save: Save) -> None:
    """Two files with the same alert name would silence and group each other."""
    save(document)
    path = save({**document, "slug": "gc_pauses"})

    with pytest.raises(CatalogueError, match=r"gc_pauses\.yaml:\d+: another file has the alert Thread.+ too"):
        load_catalogue(path.parent)


def test_an_unknown_target_of_an_inhibition_is_refused(document: dict[str, Any], save: Save) -> None:
    """An inhibition of a slug that has no file would silence nothing without a word."""
    document["inhibits"] = [{"slug": "gc_pauses", "because": "it is the cause"}]

    with pytest.raises(CatalogueError, match="inhibits 'gc_pauses', which has no file here"):
        load_catalogue(save(document).parent)


def test_an_empty_folder_is_no_catalogue(tmp_path: Path) -> None:
    """A wrong folder is an error and not a catalogue of no alerts."""
    with pytest.raises(CatalogueError, match="no alert here"):
        load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is a mapping that starts with `slug: gc_pauses`"),
        (b"- a\n", "is a mapping that starts with"),
        (b"slug: [\n", "line 2: "),
        (b"slug: \xff\n", "not UTF-8 at byte 6"),
    ],
)
def test_a_file_that_is_no_alert_is_told_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    """Whatever lies in the folder, the error is one line that names the file."""
    path = tmp_path / "gc_pauses.yaml"
    path.write_bytes(content)

    with pytest.raises(CatalogueError) as caught:
        load_alert(path)

    assert str(caught.value).startswith("gc_pauses.yaml: ")
    assert said in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())
