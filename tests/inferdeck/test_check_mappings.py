"""`inferdeck check` holds the shipped mappings to their form."""

from __future__ import annotations

import shutil
from pathlib import Path

from inferdeck.check import _mappings
from runbooks.mapping.load import READY


def test_the_shipped_mappings_are_sound() -> None:
    """Today's are."""
    assert ["ok"] == [check.state for check in _mappings()]


def test_a_mapping_that_is_broken_or_misnamed_fails_with_its_line(tmp_path: Path) -> None:
    """A name of ours that is renamed is found here, and not at the first incident."""
    text = (READY / "triton.yaml").read_text(encoding="utf-8")
    (tmp_path / "triton.yaml").write_text(text.replace("model_requests_total:", "model_request_total:"))
    shutil.copy(READY / "triton.yaml", tmp_path / "other.yaml")

    found = list(_mappings(tmp_path))

    assert ["fail", "fail"] == [check.state for check in found]
    assert "other.yaml:1: name 'triton': the file must be triton.yaml" == found[0].detail
    assert "triton.yaml:6: model_request_total is no name" in found[1].detail
