"""The whole compose stack in containers, for real: podman-compose, stand-ins that hold the same programs, no Grafana.

Three containers of the service write into one volume; requests are counted and looked up, a trace is found in Jaeger,
a killed container is alerted by the shipped rule through Prometheus and Alertmanager, and triage names it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inferdeck.schema import validate
from inferdeck.stack.commands import prepare_model
from inferdeck.stack.compose.env_file import read_env_file
from inferdeck.stack.compose.project import PORTS
from inferdeck.stack.ports import free_ports
from inferdeck.version import ROOT
from tests.containers.images import BASE, base_image, build_ours, build_standins, jaeger_binary
from tests.containers.machine import Podman, install, own_podman

# A fresh machine compiles Jaeger and makes the base first: ten minutes; with both cached it is three.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
REVIEW = {"text": "质量不错，物流很快", "product_id": "AB12345678"}
OURS = ("service", "exporter", "triage")


class Stack:
    """The running stack: its console, its addresses, its secrets."""

    def __init__(self, podman: Podman, folder: Path, env_file: Path) -> None:
        names = ("service_port", *PORTS)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.podman = podman
        self.env_file = env_file
        self.project = f"idk{os.getpid()}"
        self.urls: dict[str, str] = {}
        self.variables = {key: value for key, value in podman.environment.items() if not key.startswith("INFERDECK_")}
        self.variables |= {f"INFERDECK_STACK_{name.upper()}": str(port) for name, port in ports.items()}
        self.variables |= {
            "INFERDECK_COMPOSE_ENGINE": "podman",
            "INFERDECK_COMPOSE_ENV_FILE": str(env_file),
            "COMPOSE_PROJECT_NAME": self.project,
            "INFERDECK_STATE_DIR": str(folder / "state"),
            "PYTHONPATH": str(ROOT),
        }

    def run(self, verb: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Run a verb with --json and return its exit code and checked result."""
        argv = [sys.executable, "-P", "-m", "inferdeck", verb, "--json", *words]
        done = subprocess.run(argv, env=self.variables, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        validate(verb, result)
        return done.returncode, result

    def up(self) -> dict[str, Any]:
        """Bring it up, or up again."""
        words = ["--stack", "compose", "--profile", "alertmanager", "--profile", "collector"]
        words += ["--without", "grafana", "--scale", "3"]
        code, result = self.run("up", *words, "--no-build")
        assert code == 0
        self.urls = result["urls"]
        return result

    def secret(self, name: str) -> dict[str, str]:
        """Return the header that shows a secret of the file that `up` wrote."""
        return {"Authorization": f"Bearer {read_env_file(self.env_file)[name]}"}

    def ask(self, part: str, path: str, **options: Any) -> Any:
        """Return the JSON that a part answers."""
        answer = httpx.get(f"{self.urls[part]}{path}", timeout=5, trust_env=False, **options)
        answer.raise_for_status()
        return answer.json()

    def workers(self) -> list[str]:
        """Return the names of the service's containers as they are in `urls`."""
        return [name for name in self.urls if name.partition("-")[0] == "service"]

    def send(self, requests: int) -> dict[str, str]:
        """Send so many requests to each container of the service; return the session by container."""
        sessions = {name: f"compose-{name}-session-01" for name in self.workers()}
        with httpx.Client(timeout=5, trust_env=False) as client:
            for _ in range(requests):
                for name, session in sessions.items():
                    url = f"{self.urls[name]}/v1/sentiment"
                    assert 200 == client.post(url, json=REVIEW, headers={"X-Session-Id": session}).status_code
        return sessions

    def counted(self) -> float:
        """Return the exporter's total of answered requests."""
        page = httpx.get(f"{self.urls['exporter']}/metrics", timeout=5, trust_env=False).text
        series = 'model_requests_total{outcome="ok",route="/v1/sentiment"} '
        return sum(float(line.removeprefix(series)) for line in page.splitlines() if line.startswith(series))


def eventually(look: Callable[[], Any], seconds: float, what: str) -> Any:
    """Return the first true answer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.5)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Build all images, bring the stack up; afterwards remove containers, networks, volumes and images."""
    install()
    folder = tmp_path_factory.mktemp("compose")
    prepare_model(ROOT / "build" / "model", lambda _what, _share: None)
    base = base_image()
    jaeger_binary()
    with own_podman(base) as podman:
        podman.run("import", str(base), BASE)
        env_file = folder / "secrets.env"
        images = build_standins(podman, tmp_path_factory.mktemp("standins"))
        # Jaeger is an OpenTelemetry collector with the components that the collector's configuration names
        images |= {"COLLECTOR_IMAGE": images["JAEGER_IMAGE"], "INFERDECK_OTLP_ENDPOINT": "http://collector:4318"}
        images |= {"INFERDECK_BASE_IMAGE": BASE}
        images |= {f"INFERDECK_{name.upper()}_IMAGE": f"localhost/{name}:test" for name in ("service", "console")}
        env_file.write_text("".join(f"{name}={image}\n" for name, image in images.items()), encoding="utf-8")
        stack = Stack(podman, folder, env_file)
        # the file asks for secrets that only `up` writes; a build needs none of them
        needed = dict.fromkeys(
            ("INFERDECK_EXPORTER_API_TOKEN", "INFERDECK_TRIAGE_TOKEN", "GRAFANA_ADMIN_PASSWORD"), "x"
        )
        build_ours(Podman(podman.folder, podman.environment | needed), stack.project, env_file)
        try:
            stack.up()
            yield stack
        finally:
            stack.run("down", "--purge")


def test_triton_image_holds_the_model_as_its_repository(stack: Stack) -> None:
    """Built on a stand-in for NVIDIA's image: both versions and the shipped configuration, readable to its user."""
    args = ["--build-arg", "SERVICE=localhost/service:test", "--build-arg", f"TRITON={BASE}", "--network", "none"]
    file = str(ROOT / "docker" / "triton.Dockerfile")
    stack.podman.run("build", "--quiet", *args, "-f", file, "-t", "localhost/triton:test", str(ROOT), timeout=300)
    listed = stack.podman.run(
        "run", "--rm", "--network", "none", "localhost/triton:test", "find", "/models", "-type", "f", "-readable"
    )

    names = ("1/model.onnx", "2/model.onnx", "config.pbtxt")
    assert [f"/models/sentiment/{name}" for name in names] == sorted(listed.split())


def test_every_part_is_up_with_secrets_that_nobody_chose(stack: Stack) -> None:
    """`up` made the secrets, closed their file, and `status` finds all parts well."""
    code, result = stack.run("status")
    secrets = [value for name, value in read_env_file(stack.env_file).items() if "TOKEN" in name or "PASSWORD" in name]

    assert (0, "up") == (code, result["state"])
    ours = {"service", "service-2", "service-3", "exporter", "triage"}
    assert ours | {"prometheus", "alertmanager", "jaeger", "collector"} == {part["name"] for part in result["parts"]}
    assert 0o600 == stack.env_file.stat().st_mode & 0o777
    assert [True] * 3 == [len(value) >= 24 for value in secrets]
    assert 3 == len(set(secrets))


def test_our_containers_are_bounded_and_may_write_nowhere_else(stack: Stack) -> None:
    """They run as a user of their own, on a read-only root, without capabilities, with bounded memory, on loopback."""
    names = [f"{stack.project}_{name}_1" for name in OURS]
    found = json.loads(stack.podman.run("inspect", *names))

    assert ["10001:10001"] * 3 == [one["Config"]["User"] for one in found]
    assert [True] * 3 == [one["HostConfig"]["ReadonlyRootfs"] for one in found]
    assert [[]] * 3 == [one["EffectiveCaps"] or [] for one in found]
    assert [True] * 3 == [one["HostConfig"]["Memory"] > 0 for one in found]
    assert {"127.0.0.1"} == {
        binding["HostIp"]
        for one in found
        for bindings in one["NetworkSettings"]["Ports"].values()
        for binding in bindings or ()
    }


def test_the_image_records_with_the_compiled_core(stack: Stack) -> None:
    """The image's own compiler made the core for the image's own interpreter; without it requests would cost more."""
    code = "from probes.core import core_state; print(core_state())"

    assert "compiled" in stack.podman.run("exec", f"{stack.project}_service_1", "python3", "-c", code)


def test_totals_are_true_over_three_containers_and_sessions_are_found(stack: Stack) -> None:
    """One exporter reads what three containers wrote, whose pids are all 1; every session is found, with its token."""
    before = stack.counted()
    sessions = stack.send(requests=40)
    eventually(lambda: stack.counted() >= before + 120, 15, "all requests are counted")
    token = stack.secret("INFERDECK_EXPORTER_API_TOKEN")
    found = {
        name: len(stack.ask("exporter", f"/api/traces?session_id={session}", headers=token)["traces"])
        for name, session in sessions.items()
    }
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        stack.ask("exporter", "/api/traces?errors=1")

    assert before + 120 == stack.counted()
    assert dict.fromkeys(sessions, 40) == found


def test_prometheus_sees_each_container_and_all_rules(stack: Stack) -> None:
    """The scaled service is three targets; the mounted rules are loaded and none is in error."""

    def targets() -> dict[str, int]:
        series = stack.ask("prometheus", "/api/v1/query", params={"query": "sum by (job) (up)"})["data"]["result"]
        return {one["metric"]["job"]: int(one["value"][1]) for one in series}

    wanted = {"service": 3, "inferdeck-exporter": 1, "triage": 1, "prometheus": 1}
    wanted |= {"jaeger": 1, "otel-collector": 1}
    eventually(lambda: targets() == wanted, 90, f"targets are {wanted}")
    groups = stack.ask("prometheus", "/api/v1/rules")["data"]["groups"]
    files = {Path(group["file"]).name for group in groups}

    assert {path.name for path in (ROOT / "alerts" / "rules").glob("*.yml")} == files
    assert [] == [rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "err"]


def test_a_trace_is_in_jaeger_under_its_session(stack: Stack) -> None:
    """Spans of kept requests went from the exporter through the collector; Jaeger finds them by session_id."""
    sessions = stack.send(requests=1)
    tags = json.dumps({"session_id": sessions["service"]})

    def found() -> list[dict[str, Any]]:
        traces: list[dict[str, Any]] = stack.ask(
            "jaeger", "/api/traces", params={"service": "sentiment", "tags": tags}
        )["data"]
        return traces

    trace = eventually(found, 30, "Jaeger has a trace of the session")[0]

    assert {"POST /v1/sentiment", "sentiment.tokenizer", "model.forward"} <= {
        span["operationName"] for span in trace["spans"]
    }


def test_a_killed_container_is_alerted_and_named(stack: Stack) -> None:
    """The shipped rule fires in Prometheus, Alertmanager tells triage, which names what was done; `up` mends it."""
    stack.send(requests=5)
    stack.podman.run("kill", "--signal", "KILL", f"{stack.project}_service_2")
    token = stack.secret("INFERDECK_TRIAGE_TOKEN")
    del stack.urls["service-2"]

    def report() -> dict[str, Any] | None:
        stack.send(requests=1)
        reports = stack.ask("triage", "/reports", headers=token)["reports"]
        return next((one for one in reports if one["alert"] == "WorkerKilled"), None)

    found = eventually(report, 120, "triage was told of WorkerKilled")
    alerts = {alert["labels"]["alertname"] for alert in stack.ask("alertmanager", "/api/v2/alerts")}
    code, status = stack.run("status")

    assert "worker_killed" == found["verdict"]["slug"]
    assert "alertmanager" == found["trigger"]["sender"]
    assert "WorkerKilled" in alerts
    assert (1, "degraded") == (code, status["state"])
    assert ["service-2"] == [part["name"] for part in status["parts"] if part["health"] == "dead"]

    stack.up()
    assert 0 == stack.run("status")[0]


def test_down_leaves_nothing_behind(stack: Stack) -> None:
    """All containers, the network and, with --purge, the volumes are gone; the file of secrets stays."""
    code, result = stack.run("down", "--purge")
    label = f"label=com.docker.compose.project={stack.project}"

    assert 0 == code
    assert {"service", "service-2", "service-3", "prometheus"} <= {one["name"] for one in result["stopped"]}
    assert "" == stack.podman.run("ps", "--all", "--quiet", "--filter", label)
    assert [] == [name for name in stack.podman.run("volume", "ls", "--quiet").split() if stack.project in name]
    assert [] == [name for name in stack.podman.run("network", "ls", "--quiet").split() if stack.project in name]
    assert stack.env_file.exists()
    assert "down" == stack.run("status")[1]["state"]
