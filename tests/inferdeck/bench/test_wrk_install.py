"""Finding wrk, and saying that it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.bench.load import run_wrk
from inferdeck.bench.wrk_install import ensure_wrk, find_wrk
from inferdeck.errors import CannotRun


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def environ(tmp_path: Path, path: str = "") -> dict[str, str]:
    """Return an environment with a tools folder of its own."""
    return {"PATH": path or str(tmp_path / "nothing"), "INFERDECK_TOOLS_DIR": str(tmp_path / "tools")}


def test_wrk_on_path_wins_over_the_tools_folder(tmp_path: Path) -> None:
    """The machine's own wrk is used where there is one, else the one unpacked into the tools folder."""
    unpacked = program(tmp_path / "tools" / "bin" / "wrk")
    installed = program(tmp_path / "bin" / "wrk")

    assert unpacked == find_wrk(environ(tmp_path))
    assert installed == find_wrk(environ(tmp_path, str(installed.parent)))
    assert unpacked == ensure_wrk(environ(tmp_path))


def test_a_machine_without_packages_is_told_what_to_install(tmp_path: Path) -> None:
    """No wrk and no apt-get: one line with the mend, and nothing is left behind."""
    with pytest.raises(CannotRun, match="wrk, the load generator, is missing; install wrk"):
        ensure_wrk(environ(tmp_path))
    assert not (tmp_path / "tools").exists()


def test_a_failed_download_leaves_nothing(tmp_path: Path) -> None:
    """apt-get's own complaint is shown, and no half a tool stays."""
    program(tmp_path / "bin" / "apt-get", "#!/bin/sh\necho 'E: Unable to locate package wrk' >&2\nexit 100\n")
    program(tmp_path / "bin" / "dpkg-deb")

    with pytest.raises(CannotRun, match="Unable to locate package wrk"):
        ensure_wrk(environ(tmp_path, str(tmp_path / "bin")))
    assert [] == list((tmp_path / "tools").iterdir())


def test_a_wrk_that_cannot_run_is_one_clear_line(tmp_path: Path) -> None:
    """A missing library shows in wrk's own words."""
    broken = program(tmp_path / "wrk", "#!/bin/sh\necho 'libluajit: cannot open' >&2\nexit 127\n")

    with pytest.raises(CannotRun, match=r"wrk gave no result .libluajit: cannot open"):
        run_wrk(broken, "http://127.0.0.1:1", 1.0, 1)
