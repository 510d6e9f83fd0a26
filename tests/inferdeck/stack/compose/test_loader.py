"""The compose file as docker compose's own loader reads it (its Go module, compiled here): no Docker is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

from inferdeck.stack.compose.document import fill_in, load_compose_file
from inferdeck.stack.compose.env_file import SECRETS
from inferdeck.stack.compose.project import COMPOSE_FILE, compose_services
from inferdeck.version import ROOT
from tests.containers.machine import HERE, unavailable

# a fresh machine downloads and compiles the loader: half a minute of CPU
pytestmark = pytest.mark.timeout(300)
PROFILES = sorted({profile for profiles in compose_services().values() for profile in profiles})


@cache
def loader() -> str:
    """Return the compiled loader's command line, up to the file."""
    go = shutil.which("go")
    if go is None:
        unavailable("no Go here to compile the loader of compose files with")
    return str(go)


def load(*profiles: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Read the shipped compose file with these profiles and no other variables of ours."""
    usual = {
        key: value for key, value in os.environ.items() if not key.startswith(("INFERDECK_", "COMPOSE_", "GRAFANA_"))
    }
    return subprocess.run(
        [loader(), "run", ".", str(ROOT / COMPOSE_FILE), *profiles],
        cwd=HERE / "composefile",
        env=usual | variables,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def resolved(*profiles: str, **variables: str) -> dict[str, Any]:
    """Return the resolved project, secrets given."""
    done = load(*profiles, **(dict.fromkeys(SECRETS, "given") | variables))
    assert 0 == done.returncode, done.stderr
    project: dict[str, Any] = json.loads(done.stdout)
    return project


def test_docker_composes_loader_takes_the_file_with_every_profile() -> None:
    """No unknown key, no dangling reference; parts of a profile are there only with it."""
    parts = compose_services()

    assert {name for name, profiles in parts.items() if not profiles} == set(resolved()["services"])
    assert set(parts) == set(resolved(*PROFILES)["services"])


@pytest.mark.parametrize("secret", SECRETS)
def test_a_missing_secret_stops_the_start_and_says_what_to_do(secret: str) -> None:
    """An empty one as well, as in a copy of the example that was not filled in."""
    for value in ({}, {secret: ""}):
        done = load(**({name: "given" for name in SECRETS if name != secret} | value))

        assert 1 == done.returncode
        assert f"{secret} is missing a value" in done.stderr
        assert 'run "inferdeck up --stack compose", or copy .env.example to .env and fill it in' in done.stderr


def test_our_reading_of_variables_is_its_reading() -> None:
    """What `inferdeck check` judges is what docker compose would start: images and ports, defaults filled in."""
    compose = load_compose_file(ROOT / COMPOSE_FILE)
    theirs = resolved(*PROFILES)["services"]
    published = {
        name: [f"{port['host_ip']}:{port['published']}:{port['target']}" for port in part.get("ports", ())]
        for name, part in theirs.items()
    }

    assert {name: fill_in(part["image"], {}) for name, part in compose.services.items()} == {
        name: part["image"] for name, part in theirs.items()
    }
    assert {
        name: [fill_in(port, {}) for port in part.get("ports", ())] for name, part in compose.services.items()
    } == published


def test_the_notifier_is_chosen_in_both_places_at_once() -> None:
    """With Alertmanager as the notifier Prometheus knows it, and Grafana's alerting is an empty folder."""
    chosen = {"INFERDECK_NOTIFIER": "alertmanager", "INFERDECK_GRAFANA_ALERTING": "./alerts/grafana/withdrawn"}
    mounts = {
        name: {mount["target"]: mount["source"] for mount in part["volumes"]}
        for name, part in resolved("alertmanager", **chosen)["services"].items()
        if name in {"prometheus", "grafana"}
    }

    assert str(ROOT / "docker/prometheus/alertmanager.yml") == mounts["prometheus"]["/etc/prometheus/prometheus.yml"]
    assert str(ROOT / "alerts/grafana/withdrawn") == mounts["grafana"]["/etc/grafana/provisioning/alerting"]
