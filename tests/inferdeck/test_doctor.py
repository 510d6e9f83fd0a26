"""Doctor tells what is wrong on this machine, with the mend, and never stops at the first thing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferdeck.checks import Check, guarded, report
from inferdeck.doctor import examine
from inferdeck.settings import PORT_FIELDS, StackSettings, load_settings
from inferdeck.stack.ports import free_ports


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
