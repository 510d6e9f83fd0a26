"""The containers of a pod as processes: the manifest's order, variables, folder, probes and end, on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inferdeck.stack.ports import free_ports
from service.training.command import Floors, train
from service.training.corpus import Row, load_corpus
from tests.deploy.conftest import Document

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"text": "很好 good", "product_id": "AB12345678"}
SESSION = "deploy-pod-session-1"

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small real model."""
    words = {0: "很差 bad", 1: "一般 average", 2: "很好 good"}
    rows = [Row(f"{words[label]} {n}", label, "zh" if n % 2 else "en") for label in words for n in range(60)]
    folder = tmp_path_factory.mktemp("model") / "model"
    nothing = Floors(macro_f1=0.0, chinese_accuracy=0.0, logit_difference=1.0)
    train(folder, progress=lambda *_: None, corpus=load_corpus(rows), floors=nothing)
    return folder


class Pod:
    """Two containers on one machine: volumes below a folder, ports of their own, addresses of this machine alone."""

    def __init__(self, spec: Any, folder: Path, model: Path) -> None:
        self.spec, self.folder, self.model = spec, folder, model
        self.port, self.admin, self.exporter = free_ports(3)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for volume in spec["volumes"]:
            path = folder / volume["name"]
            path.mkdir()
            # As the kubelet makes an emptyDir for a pod with an fsGroup.
            path.chmod(0o2777)

    def environment(self, container: Any) -> dict[str, str]:
        """Return the container's variables, on this machine."""
        told = {one["name"]: one.get("value", "a-token") for one in container["env"]}
        for name, value in told.items():
            for mount in container["volumeMounts"]:
                if value.startswith(f"{mount['mountPath']}/"):
                    told[name] = str(self.folder / mount["name"]) + value.removeprefix(mount["mountPath"])
            told[name] = told[name].replace("0.0.0.0", "127.0.0.1")
        ours = {
            "INFERDECK_EXPORTER_PORT": str(self.exporter),
            "INFERDECK_SERVICE_PORT": str(self.port),
            "INFERDECK_SERVICE_ADMIN_PORT": str(self.admin),
            "INFERDECK_SERVICE_MODEL_DIR": str(self.model),
        }
        return {name: value for name, value in os.environ.items() if not name.startswith("INFERDECK_")} | told | ours

    def start(self, container: Any) -> None:
        """Start a container's own command."""
        assert container["command"][0] == "python3"
        with (self.folder / f"{container['name']}.log").open("wb") as log:
            self.running[container["name"]] = subprocess.Popen(
                [sys.executable, *container["command"][1:]], cwd=ROOT, env=self.environment(container), stderr=log
            )

    def passes(self, container: Any) -> bool:
        """Carry a start-up probe out, for as long as it says; return whether it succeeded in that time."""
        probe = container["startupProbe"]
        port = {"exporter": self.exporter, "admin": self.admin}[probe["httpGet"]["port"]]
        for _ in range(probe["failureThreshold"]):
            try:
                if httpx.get(f"http://127.0.0.1:{port}{probe['httpGet']['path']}", timeout=5).status_code == 200:
                    return True
            except httpx.TransportError:
                pass
            time.sleep(probe["periodSeconds"] / 4)
        return False

    def end(self, name: str, seconds: float) -> int:
        """Stop a container as a kubelet does and return its exit code."""
        self.running[name].terminate()
        return self.running[name].wait(seconds)


@pytest.fixture
def pod(rendered: Callable[[str], list[Document]], tmp_path: Path, model: Path) -> Iterator[Pod]:
    """Return the base's pod, nothing started yet; whatever runs at the end is killed by its pid."""
    deployment = next(one for one in rendered("base") if one["kind"] == "Deployment")
    found = Pod(deployment["spec"]["template"]["spec"], tmp_path, model)
    yield found
    for process in found.running.values():
        if process.poll() is None:
            process.kill()
            process.wait(5)


def test_a_pod_starts_answers_and_ends_in_order(pod: Pod) -> None:
    """The sidecar is up before a row is there, which the service's start waits for; its last rows are read after it."""
    exporter, service = pod.spec["initContainers"][0], pod.spec["containers"][0]
    pod.start(exporter)
    assert pod.passes(exporter), (pod.folder / "exporter.log").read_text()
    pod.start(service)
    assert pod.passes(service), (pod.folder / "service.log").read_text()

    for _ in range(5):
        answer = httpx.post(
            f"http://127.0.0.1:{pod.port}/v1/sentiment", json=GOOD, headers={"x-session-id": SESSION}, timeout=10
        )
        assert answer.status_code == 200
    assert pod.end("service", pod.spec["terminationGracePeriodSeconds"]) == 0

    found = httpx.get(
        f"http://127.0.0.1:{pod.exporter}/api/traces",
        params={"session_id": SESSION},
        headers={"authorization": "Bearer a-token"},
        timeout=10,
    )
    assert len(found.json()["traces"]) == 5
    assert httpx.get(f"http://127.0.0.1:{pod.exporter}/api/traces?errors=1", timeout=10).status_code == 401
    (ring,) = (pod.folder / "rows" / "ring").glob("*.ring")
    assert ring.stat().st_size < 17 << 20
    assert pod.end("exporter", pod.spec["terminationGracePeriodSeconds"]) == 0
    assert list((pod.folder / "state" / "exporter" / "archive").glob("*.npz"))
