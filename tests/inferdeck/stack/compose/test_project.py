"""One compose project: its record, its variables, its command line, its state."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inferdeck.errors import CannotRun
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from inferdeck.stack.compose.commands import plan_project, refuse_beside_compose
from inferdeck.stack.compose.engine import Container, Engine
from inferdeck.stack.compose.project import (
    Project,
    compose_services,
    forget_project,
    notifier_of,
    read_project,
    run_compose,
    variables_of,
    write_project,
)
from inferdeck.stack.compose.status import describe_project

DOCKER = Engine("docker", ("docker", "compose"), ("docker",))
PODMAN = Engine("podman", ("podman-compose",), ("podman",))
SAYS = "import os, sys; print(sys.argv[1:]); print(os.environ.get('GRAFANA_ADMIN_PASSWORD'), os.environ.get('A'))"


def project(tmp_path: Path, engine: Engine = DOCKER, **fields: object) -> Project:
    """Return a project whose files are in a folder of its own."""
    return replace(Project("x", tmp_path, engine, tmp_path / "secrets.env"), **fields)  # type: ignore[arg-type]


def container(part: str, state: str = "running", health: str = "healthy", code: int | None = None) -> Container:
    """Return one container."""
    return Container(f"x_{part}", part, part.partition("-")[0], state, health, code, 8080)


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the checkout's own file of secrets out of it."""
    monkeypatch.setenv("INFERDECK_COMPOSE_ENV_FILE", str(tmp_path / "secrets.env"))
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))


def test_a_record_is_read_back_as_written_and_holds_no_secret(tmp_path: Path) -> None:
    """And it is gone once it is forgotten."""
    (tmp_path / "secrets.env").write_text("INFERDECK_TRIAGE_TOKEN=topsecret\n")
    written = write_project(tmp_path, project(tmp_path, profiles=("alertmanager",), services=("a", "b"), scale=3))

    assert read_project(tmp_path) == written
    assert "topsecret" not in (tmp_path / "run" / "compose.json").read_text()
    forget_project(tmp_path)
    assert read_project(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1}', '{"format": 2}'])
def test_a_damaged_record_is_said_with_its_mend(tmp_path: Path, text: str) -> None:
    """It is not guessed at: something may run."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "compose.json").write_text(text)

    with pytest.raises(CannotRun, match=r"compose\.json cannot be read"):
        read_project(tmp_path)


def test_ports_and_notifier_are_told_to_the_compose_file() -> None:
    """Docker gets a range for a scaled service; podman, which takes none, any free port for each."""
    settings = load_settings(service_port=9000, grafana_port=3333)
    alone, scaled = (variables_of(settings, DOCKER, "grafana", scale) for scale in (1, 12))

    assert ("9000", "9000-9011") == (alone["INFERDECK_SERVICE_HOST_PORTS"], scaled["INFERDECK_SERVICE_HOST_PORTS"])
    assert "" == variables_of(settings, PODMAN, "grafana", 2)["INFERDECK_SERVICE_HOST_PORTS"]
    assert ("3333", "http://127.0.0.1:3333") == (
        alone["INFERDECK_STACK_GRAFANA_PORT"],
        alone["INFERDECK_NOTIFY_GRAFANA_URL"],
    )
    assert (
        "./alerts/grafana/withdrawn" == variables_of(settings, DOCKER, "alertmanager", 1)["INFERDECK_GRAFANA_ALERTING"]
    )


def test_alertmanager_is_the_notifier_when_its_profile_is_asked_for() -> None:
    """Unless the file of variables says otherwise."""
    assert "grafana" == notifier_of([], {})
    assert "alertmanager" == notifier_of(["alertmanager"], {})
    assert "grafana" == notifier_of(["alertmanager"], {"INFERDECK_NOTIFIER": "grafana"})


def test_parts_are_those_without_a_profile_and_those_asked_for(wanted: None) -> None:
    """Less those that shall not start."""
    settings = load_settings()
    usual = {name for name, profiles in compose_services().items() if not profiles}

    assert {"service", "exporter", "triage", "prometheus", "jaeger", "grafana"} == usual
    assert usual == set(plan_project(settings, DOCKER, (), (), 1).services)
    assert (usual | {"alertmanager"}) - {"grafana"} == set(
        plan_project(settings, DOCKER, ["alertmanager"], ["grafana"], 1).services
    )


@pytest.mark.parametrize(
    ("profiles", "without", "said"),
    [(["alert"], [], "there is no profile 'alert'; there are"), ([], ["graphana"], "there is no part 'graphana'")],
)
def test_a_misspelt_profile_or_part_is_said(wanted: None, profiles: list[str], without: list[str], said: str) -> None:
    """With those that there are."""
    with pytest.raises(CannotRun, match=said):
        plan_project(load_settings(), DOCKER, profiles, without, 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("INFERDECK_NOTIFIER=alertmanager\n", "makes Alertmanager the notifier, and it is not to start; add --profile"),
        ("INFERDECK_NOTIFIER=pager\n", "INFERDECK_NOTIFIER is 'pager'; set it to one of grafana, alertmanager"),
    ],
)
def test_a_stack_in_which_nobody_is_told_is_refused(tmp_path: Path, wanted: None, line: str, said: str) -> None:
    """The file says another notifier than what starts."""
    (tmp_path / "secrets.env").write_text(line)

    with pytest.raises(CannotRun, match=said):
        plan_project(load_settings(), DOCKER, (), (), 1)


def test_an_installed_package_cannot_run_it(tmp_path: Path) -> None:
    """The compose file is in the checkout."""
    with pytest.raises(CannotRun, match=r"there is no docker-compose\.observability\.yml in"):
        compose_services(tmp_path)


def test_what_the_user_wrote_into_the_file_wins_over_settings(tmp_path: Path) -> None:
    """Compose prefers the environment, so that what stands in the file must not be in ours."""
    fake = Engine("docker", (sys.executable, "-c", SAYS), ("docker",))
    one = project(tmp_path, fake, profiles=("gpu",), variables={"A": "settings"})
    one.env_file.write_text("A=file\n")
    told = run_compose(one, "up", "-d", timeout_seconds=20).stdout

    assert "'-p', 'x'" in told
    assert "'--profile', 'gpu', 'up', '-d'" in told
    assert "None None" in told


def test_a_lost_file_of_secrets_keeps_nobody_from_ending_the_stack(tmp_path: Path) -> None:
    """The compose file only asks that the variables are there."""
    fake = Engine("docker", (sys.executable, "-c", SAYS), ("docker",))
    told = run_compose(project(tmp_path, fake, variables={"A": "settings"}), "down", timeout_seconds=20).stdout

    assert "--env-file" not in told
    assert "lost settings" in told


def test_a_compose_that_hangs_is_ended_and_said(tmp_path: Path) -> None:
    """With what it was doing."""
    fake = Engine("docker", (sys.executable, "-c", "import time; time.sleep(60)"), ("docker",))
    with pytest.raises(CannotRun, match="up did not end within 0 s"):
        run_compose(project(tmp_path, fake), "up", timeout_seconds=0.3)


def test_status_tells_parts_in_the_shape_of_every_status(tmp_path: Path) -> None:
    """Up when all are well; degraded with the last words of a dead one, or when one has no container at all."""
    one = project(tmp_path, services=("service", "jaeger"))

    def described(*there: Container) -> dict[str, object]:
        said = describe_project(one, tmp_path, lambda _project: list(there), lambda _project, name: [f"{name} died"])
        stamp = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}
        validate("status", json.loads(json.dumps(stamp | said)))
        return said

    jaeger = container("jaeger")
    dead = described(container("service", "exited", code=137), jaeger)

    assert "up" == described(container("service"), container("service-2"), jaeger)["state"]
    assert "degraded" == described(container("service", health="starting"), jaeger)["state"]
    assert ("degraded", "without a container: service") == ((d := described(jaeger))["state"], d["note"])
    assert "down" == described()["state"]
    assert "degraded" == dead["state"]
    assert [("dead", "exited with 137", ["x_service died"]), ("up", "", [])] == [
        (part["health"], part["detail"], part["log_tail"])
        for part in dead["parts"]  # type: ignore[attr-defined]
    ]


def test_no_second_stack_starts_from_the_folder_of_a_running_one(tmp_path: Path, wanted: None) -> None:
    """`down` would end only one of them. A record whose containers are gone is in nobody's way."""
    settings = load_settings()
    refuse_beside_compose(settings)
    inspected = [{"Name": "x", "State": {"Status": "running"}, "Config": {"Labels": {}}}]
    says = f"import sys; print({json.dumps(inspected)!r} if 'inspect' in sys.argv else 'a')"
    busy = Engine("docker", (), (sys.executable, "-c", says))
    gone = Engine("docker", (), (sys.executable, "-c", ""))

    write_project(settings.state_path, project(tmp_path, gone))
    refuse_beside_compose(settings)
    write_project(settings.state_path, project(tmp_path, busy))
    with pytest.raises(CannotRun, match="the compose stack x runs from"):
        refuse_beside_compose(settings)
