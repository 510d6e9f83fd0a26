"""A run's stack is apart from all others, and killed runs leave nothing for ever."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest

from inferdeck.drill.command import run_folder
from inferdeck.drill.handle import StackHandle
from inferdeck.drill.program import failures_folder, known_programs, read_program
from inferdeck.drill.scene import fresh_plan, planned, sweep_leftovers, with_program
from inferdeck.errors import CannotRun
from inferdeck.settings import load_settings
from inferdeck.stack.embedded import EmbeddedStack
from inferdeck.stack.parts import build_parts, common_environment
from inferdeck.stack.plan import StackPlan
from probes.ringfile import open_ring
from probes.settings import Identity, RecorderSettings

TOOLS = {"prometheus": "/p", "prometheus-alertmanager": "/a"}


def test_two_runs_share_no_port_and_no_folder(tmp_path: Path) -> None:
    """Fresh ports and rows for each; the user's settings do not reach the parts."""
    settings = load_settings()
    one, two = (fresh_plan(settings, TOOLS, tmp_path / name) for name in ("a", "b"))

    assert one.ring_dir != two.ring_dir
    assert 6 == len(set(one.ports.values()))
    assert not one.inherit_settings


def test_a_users_settings_stay_out_of_a_drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are alike on every machine: shipped rules and defaults."""
    monkeypatch.setenv("INFERDECK_SERVICE_DEADLINE_SECONDS", "9")
    plan = fresh_plan(load_settings(), TOOLS, tmp_path)

    environment = common_environment(plan)

    assert "INFERDECK_SERVICE_DEADLINE_SECONDS" not in environment
    assert str(plan.ring_dir) == environment["INFERDECK_RING_DIR"]
    assert str(tmp_path) == environment["INFERDECK_STATE_DIR"]


def test_a_program_gets_the_workers_it_asks_for(tmp_path: Path) -> None:
    """The service is started with that number; one is the default."""
    settings = load_settings()
    plans = [fresh_plan(settings, TOOLS, tmp_path / "a"), fresh_plan(settings, TOOLS, tmp_path / "b", workers=3)]

    asked = [
        part.env["INFERDECK_SERVICE_WORKERS"] for plan in plans for part in build_parts(plan) if part.name == "service"
    ]

    assert ["1", "3"] == asked


def test_a_program_gets_the_settings_it_asks_for_with_or_without_a_wrap(tmp_path: Path) -> None:
    """They are variables of the service alone, and a hook around its app adds to them."""
    file = tmp_path / "p.py"
    file.write_text('SLUG = "a"\nSETTINGS = {"batch_size": "16"}\ndef wrap(app, armed):\n    return app\n')
    program = read_program(file)
    plain = fresh_plan(load_settings(), TOOLS, tmp_path / "a", service_env=program.settings)

    for plan in (plain, with_program(plain, program, "wrap")):
        told = {part.name: part.env.get("INFERDECK_SERVICE_BATCH_SIZE") for part in build_parts(plan)}

        assert "16" == told.pop("service")
        assert {None} == set(told.values())


def test_the_handle_knows_the_workers_by_their_files(tmp_path: Path) -> None:
    """Live ones by number; what is no ring, and whose owner is gone, is left out."""
    plan = replace(fresh_plan(load_settings(), TOOLS, tmp_path), ring_dir=tmp_path / "rings")
    handle = StackHandle(EmbeddedStack(plan, parts=[]), None, 20.0)
    assert [] == handle.worker_pids
    owned = [open_ring(plan.ring_dir, "s", Identity(), RecorderSettings(), lambda _reason: None) for _ in range(2)]
    (plan.ring_dir / "0123.ring").write_bytes(b"no ring")

    both = handle.worker_pids
    owned[0].close()
    one = handle.worker_pids
    owned[1].close()

    assert ([os.getpid()] * 2, [os.getpid()]) == (both, one)


def test_only_the_service_learns_of_the_program(tmp_path: Path) -> None:
    """Triage, exporter and Prometheus get no word of what is caused."""
    program = tmp_path / "secret_slug.py"
    program.write_text('SLUG = "service_down"\ndef wrap(app, armed): return app\n')
    plan = with_program(fresh_plan(load_settings(), TOOLS, tmp_path / "state"), read_program(program), "wrap")

    told = {part.name for part in build_parts(plan) if "secret_slug" in str(part)}

    assert {"service"} == told


def test_no_path_that_triage_is_given_holds_the_answer(tmp_path: Path) -> None:
    """Neither the triage service, nor whoever feeds it, nor the drill's own question: for every failure there is."""
    told = []
    for number, slug in enumerate(known_programs(failures_folder()), 1):
        program = read_program(failures_folder() / f"{slug}.py")
        folder = run_folder(tmp_path / "runs", number)
        plan = with_program(fresh_plan(load_settings(), TOOLS, folder / "state"), program, "wrap")
        others = [str(part) for part in build_parts(plan) if part.name != "service"]
        environment = {key: value for key, value in common_environment(plan).items() if os.environ.get(key) != value}
        given = [*others, str(environment), str(folder), str(plan.ring_dir)]
        told += [text for text in given if slug in text]

    assert [] == told


@pytest.mark.parametrize("missing", sorted(TOOLS))
def test_a_missing_tool_is_named(tmp_path: Path, missing: str) -> None:
    """Both are needed for an alert to arrive."""
    tools = {name: path for name, path in TOOLS.items() if name != missing}

    with pytest.raises(CannotRun, match=f"{missing} was not found"):
        fresh_plan(load_settings(), tools, tmp_path)


def test_rows_of_killed_runs_are_swept_and_live_ones_stay(tmp_path: Path) -> None:
    """Old and without an owner: gone. Young, live, or somebody else's: untouched."""
    folders = {name: tmp_path / name for name in ("run-00000001", "run-00000002", "run-00000003", "stack-0000000a")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "x.ring").touch()
    for name in ("run-00000001", "run-00000002", "stack-0000000a"):
        for path in (folders[name] / "x.ring", folders[name]):
            os.utime(path, (1000, 1000))
    os.utime(folders["run-00000003"] / "x.ring", (9000, 9000))
    owner = os.open(folders["run-00000002"] / "x.ring", os.O_RDWR)
    fcntl.flock(owner, fcntl.LOCK_EX)

    removed = sweep_leftovers(tmp_path, clock=lambda: 10_000.0)

    os.close(owner)
    assert [folders["run-00000001"]] == removed
    assert ["run-00000002", "run-00000003", "stack-0000000a"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_plan_is_read_back_as_written(tmp_path: Path) -> None:
    """The supervisor gets the very plan that `up` made."""
    plan = fresh_plan(load_settings(), TOOLS, tmp_path)

    assert plan == StackPlan.from_json(plan.to_json())


PREPARED = """SLUG = "a"
SETTINGS = {"batch_size": "16"}
SERVICE_ENV = {"CARD": "{folder}/card"}
EXPORTER_ENV = {"CARD": "{folder}/card", "LD_LIBRARY_PATH": "{folder}"}

def prepare(folder):
    (folder / "card").write_text("there before the stack is")

def cause(stack):
    ...
"""


def test_a_program_prepares_what_the_variables_of_service_and_exporter_name(tmp_path: Path) -> None:
    """The folder of the run stands in their place, and what they name is there before anything starts."""
    file = tmp_path / "p.py"
    file.write_text(PREPARED)
    folder = tmp_path / "state"

    plan = planned(read_program(file), load_settings(), TOOLS, folder, "wrap")

    assert (folder / "card").read_text()
    told = {part.name: (part.env.get("CARD"), part.env.get("LD_LIBRARY_PATH")) for part in build_parts(plan)}
    assert (str(folder / "card"), None) == told.pop("service")
    assert (str(folder / "card"), str(folder)) == told.pop("exporter")
    assert {(None, None)} == set(told.values())
    assert "16" == plan.service_env["INFERDECK_SERVICE_BATCH_SIZE"]


def test_a_program_that_cannot_prepare_is_said(tmp_path: Path) -> None:
    """One line instead of a stack that lacks what the program needs."""
    file = tmp_path / "p.py"
    file.write_text(PREPARED.replace("(folder /", "(folder / 'nowhere' /"))

    with pytest.raises(CannotRun, match=r"p\.py cannot prepare: FileNotFoundError"):
        planned(read_program(file), load_settings(), TOOLS, tmp_path / "state", "wrap")
