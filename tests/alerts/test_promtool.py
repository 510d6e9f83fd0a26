"""Tests of alerts/promtool.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from alerts.promtool import ToolMissingError, find_tool, run_tool, tools_dir


def program(path: Path, body: str = "exit 0") -> Path:
    """Write a small executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return path


def test_path_goes_before_the_tools_folder(tmp_path: Path) -> None:
    """What the machine has installed is used; what set-up fetched is the second choice."""
    fetched = program(tmp_path / "tools/bin/promtool")
    environ = {"PATH": str(tmp_path / "usr"), "INFERDECK_TOOLS_DIR": str(tmp_path / "tools")}
    assert fetched == find_tool("promtool", environ)

    installed = program(tmp_path / "usr/promtool")
    assert installed == find_tool("promtool", environ)


def test_alertmanager_is_found_under_both_of_its_names(tmp_path: Path) -> None:
    """Debian calls the daemon prometheus-alertmanager, upstream alertmanager."""
    upstream = program(tmp_path / "alertmanager")

    assert upstream == find_tool("prometheus-alertmanager", {"PATH": str(tmp_path), "INFERDECK_TOOLS_DIR": "none"})


def test_a_file_that_cannot_be_run_is_no_tool(tmp_path: Path) -> None:
    """A broken unpacking is not taken for the tool."""
    program(tmp_path / "promtool").chmod(0o600)

    assert find_tool("promtool", {"PATH": str(tmp_path), "INFERDECK_TOOLS_DIR": str(tmp_path)}) is None


def test_the_tools_folder_lies_in_the_checkout(tmp_path: Path) -> None:
    """Without a setting the folder is .tools beside the packages."""
    assert Path(__file__).resolve().parents[2] / ".tools" == tools_dir({})
    assert tmp_path == tools_dir({"INFERDECK_TOOLS_DIR": str(tmp_path)})


def test_a_missing_tool_is_told_with_the_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Running what is not there names the command that gets it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INFERDECK_TOOLS_DIR", str(tmp_path))

    with pytest.raises(ToolMissingError, match=r"run `python -m inferdeck\.tool_install`"):
        run_tool("promtool", ["--version"])


def test_status_and_output_come_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both streams and the exit status are returned, and arguments pass no shell."""
    program(tmp_path / "promtool", 'echo "$1"; echo trouble >&2; exit 3')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    done = run_tool("promtool", ["$(id) *"])

    assert (3, "$(id) *\ntrouble\n") == (done.rc, done.output)
