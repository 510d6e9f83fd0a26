"""What the model was trained on lies beside the rows, for whoever compares live inputs with it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from service.recorder_link import publish_reference


def test_the_reference_lies_beside_the_rows_and_is_ours_alone(tmp_path: Path) -> None:
    """The folder is made when it is not there yet; a later model replaces the file as a whole."""
    reference, rows = tmp_path / "reference.npz", tmp_path / "rows"
    for content in (b"first", b"second"):
        reference.write_bytes(content)
        publish_reference(reference, rows)
        assert content == (rows / "reference.npz").read_bytes()

    assert 0o600 == stat.S_IMODE((rows / "reference.npz").stat().st_mode)
    assert ["reference.npz"] == [path.name for path in rows.iterdir()]


@pytest.mark.parametrize("why", ["no reference", "no folder"])
def test_without_it_the_service_goes_on_and_says_so(tmp_path: Path, why: str, caplog: pytest.LogCaptureFixture) -> None:
    """A model of somebody's own may have none; a folder may be none of ours."""
    reference, rows = tmp_path / "reference.npz", tmp_path / "rows"
    if why == "no folder":
        reference.write_bytes(b"first")
        rows.write_text("a file")
    publish_reference(reference, rows)

    assert 1 == sum("not told what the model was trained on" in one.getMessage() for one in caplog.records)
