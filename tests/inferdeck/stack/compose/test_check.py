"""Each check of the compose stack, broken once on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inferdeck.stack.compose.check import check_compose
from inferdeck.stack.compose.project import COMPOSE_FILE
from inferdeck.version import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what the checks look at."""
    for name in (COMPOSE_FILE, "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for name in (
        "docker",
        "alerts/rules",
        "alerts/grafana/provisioning",
        "alerts/grafana/withdrawn",
        "dashboards/provisioning",
    ):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "dashboards" / "generated", tmp_path / "dashboards" / "generated")
    (tmp_path / "inferdeck" / "config").mkdir(parents=True)
    shutil.copy(ROOT / "inferdeck" / "config" / "base.yaml", tmp_path / "inferdeck" / "config")
    return tmp_path


def failures(root: Path) -> list[str]:
    """Return the details of all findings."""
    return [check.detail for check in check_compose(root) if check.state == "fail"]


def replaced(old: str, new: str) -> Callable[[Path], None]:
    """Return what replaces a text that stands in the compose file."""

    def change(root: Path) -> None:
        path = root / COMPOSE_FILE
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def removed(name: str) -> Callable[[Path], None]:
    """Return what removes a file or folder."""

    def change(root: Path) -> None:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return what replaces a text in another file."""

    def change(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))

    return change


def test_the_shipped_stack_has_no_finding(checkout: Path) -> None:
    """All checks are there."""
    checks = list(check_compose(checkout))

    assert [] == failures(checkout)
    assert {"parts", "mounts", "images", "ports", "secrets", "defaults", "generated files", "locks"} == {
        check.name.removeprefix("compose: ") for check in checks
    }
    assert {"ok"} == {check.state for check in checks}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced("    mem_limit: 128m\n", ""), "alertmanager has no mem_limit"),
        (replaced("      jaeger: {condition: service_healthy}\n      tri", "      x: {}\n      tri"), "for x, which"),
        (replaced("      prometheus: {condition: service_healthy}", "      collector: {condition: service_healthy}"),
         "grafana waits for the health of collector, which has no health check"),
        (replaced("  grafana: {}\n", ""), "the volume grafana is declared nowhere"),
        (removed("docker/jaeger/config.yaml"), "jaeger mounts ./docker/jaeger/config.yaml, which is not there"),
        (removed("docker/prometheus/alertmanager.yml"), "docker/prometheus/alertmanager.yml"),
        (removed("alerts/grafana/withdrawn"), "grafana mounts ./alerts/grafana/withdrawn, which is not there"),
        (removed("alerts/rules"), "alerts/rules"),
        (removed("dashboards/generated"), "grafana mounts ./dashboards/generated, which is not there"),
        (replaced("prom/prometheus:v3.14.0", "prom/prometheus:latest"), "the image prom/prometheus:latest"),
        (replaced("grafana/grafana:12.4.2", "grafana/grafana"), "grafana has the image grafana/grafana"),
        (removed("docker/console.Dockerfile"), "is built from no file"),
        (replaced("3.11.14-slim", "3.12.1-slim"), "has another BASE"),
        (replaced("tritonserver:26.10", "tritonserver:26.11"), "has another TRITON"),
        (replaced('["127.0.0.1:${INFERDECK_STACK_JAEGER', '["${INFERDECK_STACK_JAEGER'), "to the network"),
        (replaced('ports: ["127.0.0.1:${INFERDECK_STACK_GRAFANA', 'ports: ["0.0.0.0:${INFERDECK_STACK_GRAFANA'),
         "grafana publishes 0.0.0.0"),
        (replaced("GF_SECURITY_ADMIN_PASSWORD: ${GRAFANA_ADMIN_PASSWORD:?is", "GF_SECURITY_ADMIN_PASSWORD: ${P:-is"),
         "grafana has GF_SECURITY_ADMIN_PASSWORD written down"),
        (replaced('GF_AUTH_ANONYMOUS_ENABLED: "false"', 'GF_AUTH_ANONYMOUS_ENABLED: "true"'), "lets anybody in"),
        (replaced("INFERDECK_STACK_JAEGER_PORT:-16686", "INFERDECK_STACK_JAEGER_PORT:-16687"), "another default than"),
        (replaced("INFERDECK_NOTIFY_PAGE:-triage", "INFERDECK_NOTIFY_PAGE:-"), "NOTIFY_PAGE is not by default"),
        (replaced(":/var/lib/inferdeck/dashboards:ro", ":/boards:ro"), "where Grafana looks for"),
        (edited("docker/prometheus/grafana.yml", "8081", "8082"), "not as generated: docker/prometheus/grafana.yml"),
        (edited("docker/requirements-console.lock", "click==", "click==9."), "requirements-console.lock: click"),
        (edited("docker/requirements-service.lock", "sha256:0", "sha256:1"), "requirements-service.lock"),
        (replaced("services:\n", "services: [\n"), "line "),
    ],
)  # fmt: skip
def test_what_is_broken_is_found_and_nothing_else(checkout: Path, change: Callable[[Path], None], said: str) -> None:
    """One finding for one fault, with the file and what to do."""
    change(checkout)
    found = [check for check in check_compose(checkout) if check.state == "fail"]

    assert found
    assert [] == [check.detail for check in found if said not in check.detail]
    assert all(check.mend for check in found)


def test_a_finding_names_the_line(checkout: Path) -> None:
    """Of the part and the word that are wrong."""
    replaced("prom/prometheus:v3.14.0", "prom/prometheus:latest")(checkout)
    lines = (checkout / COMPOSE_FILE).read_text().splitlines()
    (detail,) = failures(checkout)

    assert "prom/prometheus:latest" in lines[int(detail.split(":")[1]) - 1]


def test_an_installed_package_has_no_compose_file(tmp_path: Path) -> None:
    """Which is no fault."""
    assert ["absent"] == [check.state for check in check_compose(tmp_path)]
