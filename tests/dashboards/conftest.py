"""A copy of what the dashboards are made of and judged with, to break it in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dashboards.files import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the dashboards' files, the catalogue, its rules and the runbooks."""
    for name in ("dashboards/generated", "dashboards/provisioning", "alerts/catalogue", "alerts/rules"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "runbooks").mkdir()
    for page in (ROOT / "runbooks").glob("*.md"):
        shutil.copy(page, tmp_path / "runbooks")
    shutil.copy(ROOT / "dashboards" / "panels.json", tmp_path / "dashboards")
    return tmp_path
