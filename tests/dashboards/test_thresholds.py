"""The catalogue is read as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.thresholds import AlertFacts, load_alerts


def test_name_panel_and_thresholds_are_read(tmp_path: Path) -> None:
    """What panels need, and no more."""
    (tmp_path / "a.yaml").write_text("slug: a\nalert: A\npanel: overview/a\nthresholds: {x: {value: 2, source: s}}\n")

    assert {"a": AlertFacts("A", "overview/a", {"x": 2.0})} == load_alerts(tmp_path)


@pytest.mark.parametrize("text", ["[", "- a", "slug: a", "slug: a\nalert: A\nthresholds: {x: {value: much}}", ""])
def test_a_file_that_holds_no_alert_is_named(tmp_path: Path, text: str) -> None:
    """One line, with the file."""
    (tmp_path / "b.yaml").write_text(text)

    with pytest.raises(ValueError, match=r"alerts/catalogue/b.yaml holds no alert"):
        load_alerts(tmp_path)
