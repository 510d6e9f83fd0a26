"""Every check of the dashboards was broken once on purpose."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards.check import check
from dashboards.files import write


def failed(root: Path) -> dict[str, str]:
    """Return what failed, by the check's name."""
    return {finding.name: finding.detail for finding in check(root) if finding.state == "fail"}


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_what_is_written_anew_is_well(checkout: Path) -> None:
    """Nothing is found in files that were just written."""
    write(checkout)

    assert {} == failed(checkout)


def test_a_file_that_was_edited_by_hand_is_reported(checkout: Path) -> None:
    """The next build would take the edit away."""
    write(checkout)
    edit(checkout / "dashboards/generated/inferdeck-gpu.json", '"title": "Power"', '"title": "Strom"')

    assert {"dashboards: generated files": "not current: dashboards/generated/inferdeck-gpu.json"} == failed(checkout)


def test_a_dashboard_that_no_board_asks_for_is_reported_and_removed(checkout: Path) -> None:
    """Grafana would go on showing it; here it has another's uid and title as well."""
    write(checkout)
    old = checkout / "dashboards/generated/inferdeck-old.json"
    old.write_text((checkout / "dashboards/generated/inferdeck-gpu.json").read_text())

    found = failed(checkout)

    assert "not current: dashboards/generated/inferdeck-old.json" == found["dashboards: generated files"]
    assert "two dashboards have the title 'GPU'" == found["dashboards: uids and titles"]
    assert ["dashboards/generated/inferdeck-old.json"] == write(checkout)


def test_a_runbook_that_is_not_there_is_a_dead_link(checkout: Path) -> None:
    """The link would lead to nothing at night."""
    write(checkout)
    (checkout / "runbooks/EventLoopBlocked.md").unlink()

    assert "runbooks/EventLoopBlocked.md, which is not there" in failed(checkout)["dashboards: links"]


def test_a_board_that_is_not_there_is_a_dead_link(checkout: Path) -> None:
    """A panel leads to a board that was renamed."""
    write(checkout)
    edit(checkout / "dashboards/generated/inferdeck-overview.json", "/d/inferdeck-telemetry?", "/d/inferdeck-health?")

    assert "the dashboard /d/inferdeck-health?" in failed(checkout)["dashboards: links"]


def test_a_data_source_that_is_not_provisioned_is_named(checkout: Path) -> None:
    """Boards and data sources name each other by uid."""
    write(checkout)
    edit(checkout / "dashboards/provisioning/datasources/inferdeck.yaml", "uid: inferdeck-jaeger", "uid: jaeger-2")

    assert "'inferdeck-jaeger' is not provisioned" in failed(checkout)["dashboards: data sources"]


def test_an_alert_that_leads_to_no_panel_is_named(checkout: Path) -> None:
    """A typo in the catalogue's `panel:`."""
    edit(checkout / "alerts/catalogue/disk_full.yaml", "panel: overview/disk", "panel: overview/disc")
    write(checkout)

    assert "disk_full.yaml leads to the panel overview/disc" in failed(checkout)["dashboards: panels of alerts"]


def test_a_threshold_that_the_catalogue_lost_is_named(checkout: Path) -> None:
    """A line that a panel draws must come from the catalogue."""
    edit(checkout / "alerts/catalogue/disk_full.yaml", "  free_ratio:\n", "  free_share:\n")

    assert "'free_ratio', which the catalogue does not hold" in failed(checkout)["dashboards: generated files"]


def test_a_broken_catalogue_is_told_and_hides_no_other_finding(checkout: Path) -> None:
    """It has a check of its own; here it is one sentence."""
    (checkout / "alerts/catalogue/disk_full.yaml").write_text("slug: [")

    assert {"dashboards: generated files", "dashboards: files"} == set(failed(checkout))


def test_a_recorded_series_that_is_gone_is_no_metric(checkout: Path) -> None:
    """Panels that show recorded series depend on the rules that record them."""
    write(checkout)
    (checkout / "alerts/rules/record_request_errors.yml").unlink()

    found = [finding.detail for finding in check(checkout) if finding.name == "dashboards: lint"]

    assert any("service:model_request_errors:ratio_rate5m is no metric" in what for what in found)


def test_without_dashboards_nothing_is_called_well(checkout: Path) -> None:
    """An empty folder holds no fault, and no dashboard."""
    for path in (checkout / "dashboards/generated").glob("*.json"):
        path.unlink()

    assert "there are no generated dashboards" == failed(checkout)["dashboards: files"]


def test_the_index_of_panels_names_what_the_dashboards_hold(checkout: Path) -> None:
    """Alerts and links find a panel by its uid and id."""
    write(checkout)
    index = json.loads((checkout / "dashboards/panels.json").read_text())

    for key, entry in index.items():
        board = json.loads((checkout / f"dashboards/generated/{entry['uid']}.json").read_text())
        assert [entry["title"]] == [panel["title"] for panel in board["panels"] if panel["id"] == entry["id"]], key
