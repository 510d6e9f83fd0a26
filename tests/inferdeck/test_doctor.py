"""Doctor tells what is wrong on this machine, with the mend, and never stops at the first thing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferdeck.checks import Check, guarded, report
from inferdeck.doctor import _recorder, _tool, examine
from inferdeck.settings import PORT_FIELDS, StackSettings, load_settings
from inferdeck.stack.ports import free_ports
from inferdeck.version import ROOT


@pytest.fixture
def settings(tmp_path: Path) -> StackSettings:
    """Return settings with folders and ports of their own."""
    ports = dict(zip(PORT_FIELDS, free_ports(len(PORT_FIELDS)), strict=True))
    folders = {"state_dir": tmp_path / "state", "ring_dir": tmp_path / "rows", "model_dir": tmp_path / "model"}
    return load_settings(**ports, **folders)


def found(settings: StackSettings) -> dict[str, Check]:
    """Return the checks by name."""
    return {check.name: check for check in examine(settings)}


def test_a_fresh_machine_is_fine_and_says_what_is_absent(settings: StackSettings) -> None:
    """Nothing fails; model and stack are absent with the verb that makes them."""
    checks = found(settings)

    assert [] == [check.name for check in checks.values() if check.state == "fail"]
    assert ("absent", True) == (checks["model"].state, "inferdeck train" in checks["model"].mend)
    assert ("absent", True) == (checks["stack"].state, "inferdeck up" in checks["stack"].mend)


def test_a_taken_port_fails_with_its_variable(settings: StackSettings) -> None:
    """The port that is taken, and only that one."""
    with socket.create_server(("127.0.0.1", settings.exporter_port)):
        checks = found(settings)

    failed = [check for check in checks.values() if check.state == "fail"]
    assert ["exporter_port"] == [check.name for check in failed]
    assert "INFERDECK_STACK_EXPORTER_PORT" in failed[0].mend


def test_a_folder_open_to_others_is_warned_of(settings: StackSettings) -> None:
    """Rows and reports hold session ids."""
    settings.state_path.mkdir(mode=0o755)
    settings.state_path.chmod(0o755)

    check = found(settings)["state folder"]

    assert ("warn", f"chmod 700 {settings.state_path}") == (check.state, check.mend)


def test_a_row_folder_that_the_recorder_refuses_fails(settings: StackSettings, tmp_path: Path) -> None:
    """Open to others, or a link: the recorder would keep no rows there, so neither is a mere warning."""
    settings.ring_path.mkdir(mode=0o755)
    settings.ring_path.chmod(0o755)
    wide = found(settings)["row folder"]
    settings.ring_path.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    settings.ring_path.symlink_to(tmp_path / "elsewhere")
    link = found(settings)["row folder"]

    assert [("fail", True), ("fail", True)] == [
        (wide.state, "no rows are kept" in wide.detail), (link.state, "is a link" in link.detail)
    ]  # fmt: skip


def test_a_folder_of_ours_that_hides_a_package_is_told(tmp_path: Path) -> None:
    """A user's folder called `service` on the path wins over ours: the line names it and the mend."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "__init__.py").touch()
    code = "from inferdeck.doctor import _imports; print(next(iter(_imports())))"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )

    assert f"service is {tmp_path / 'service'}" in done.stdout
    assert "state='fail'" in done.stdout
    assert "PYTHONPATH" in done.stdout


@pytest.mark.parametrize(
    ("name", "code", "output", "state"),
    [
        ("prometheus", 0, "prometheus, version 2.42.0+ds (branch: debian/sid)", "ok"),
        ("prometheus", 0, "prometheus, version 3.1.0 (branch: HEAD)", "ok"),
        ("promtool", 0, "promtool, version 2.41.0 (branch: HEAD)", "warn"),
        ("amtool", 0, "amtool, version 0.21.0", "warn"),
        ("prometheus-alertmanager", 0, "alertmanager, version 0.25.0", "ok"),
        ("amtool", 0, "something else", "warn"),
        ("amtool", 127, "", "fail"),
    ],
)
def test_a_tool_that_is_too_old_for_our_files_is_told(name: str, code: int, output: str, state: str) -> None:
    """Rules with keep_firing_for need Prometheus 2.42, routes with matchers Alertmanager 0.22."""
    check = _tool(name, Path("/x"), code, output)

    assert (state, state != "ok") == (check.state, bool(check.mend))


def test_a_damaged_model_fails(settings: StackSettings) -> None:
    """Half a model is told from none."""
    settings.model_path.mkdir()
    (settings.model_path / "config.json").write_text("{")

    assert found(settings)["model"].state in {"fail", "absent"}
    assert "inferdeck train" in found(settings)["model"].mend


def test_a_check_that_breaks_is_a_finding_of_its_own() -> None:
    """One broken check does not hide the others."""

    def broken() -> Iterator[Check]:
        yield Check("before", "ok", "")
        raise ZeroDivisionError("x")

    (check,) = guarded("name", broken)

    assert ("name", "fail") == (check.name, check.state)
    assert "ZeroDivisionError" in check.detail


@pytest.mark.parametrize(("states", "code"), [(["ok", "warn", "absent"], 0), (["ok", "fail"], 1), ([], 0)])
def test_only_a_failed_check_is_a_finding(states: list[str], code: int) -> None:
    """Warnings and absent parts leave the exit code at 0."""
    outcome = report([Check("n", state, "d") for state in states])

    assert code == outcome.code
    assert states == [check["state"] for check in outcome.payload["checks"]]


@pytest.mark.parametrize(
    ("state", "told", "mend"),
    [
        ("asked", "INFERDECK_CORE asks for it", "unset INFERDECK_CORE"),
        ("stale", "of other sources", "hatch_build.py"),
        ("absent", "no compiled core", "hatch_build.py"),
    ],
)
def test_an_interpreted_recorder_is_said_with_its_cost(state: str, told: str, mend: str) -> None:
    """It works, and costs more than it need."""
    [check] = _recorder(state, None)

    assert "warn" == check.state
    assert "times as much" in check.detail
    assert told in check.detail
    assert mend in check.mend
