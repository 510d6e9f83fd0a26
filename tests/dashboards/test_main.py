"""`python -m dashboards` writes, compares, and says what is wrong by its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.__main__ import main


def test_writing_then_comparing_finds_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And a second writing has nothing to do."""
    (checkout / "dashboards/panels.json").unlink()

    assert 0 == main(["--root", str(checkout)])
    assert "wrote dashboards/panels.json\n" in capsys.readouterr().out
    assert 0 == main(["--root", str(checkout), "--check"])
    assert 0 == main(["--root", str(checkout)])
    assert "all current\n" == capsys.readouterr().out


def test_a_difference_is_shown_and_nothing_is_written(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a diff, with the mend."""
    main(["--root", str(checkout)])
    path = checkout / "dashboards/panels.json"
    path.write_text(path.read_text().replace("Clock", "Uhr", 1))
    before = path.read_text()
    capsys.readouterr()

    assert 1 == main(["--root", str(checkout), "--check"])
    said = capsys.readouterr()
    assert '+    "title": "Clock",' in said.out
    assert "run `python -m dashboards`" in said.err
    assert before == path.read_text()


def test_a_broken_catalogue_is_one_line_and_loses_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files stay as they were."""
    (checkout / "alerts/catalogue/disk_full.yaml").write_text("slug: [")
    before = (checkout / "dashboards/panels.json").read_text()

    assert 2 == main(["--root", str(checkout)])
    said = capsys.readouterr().err
    assert said.startswith("dashboards: alerts/catalogue/disk_full.yaml holds no alert")
    assert 1 == said.count("\n")
    assert before == (checkout / "dashboards/panels.json").read_text()
