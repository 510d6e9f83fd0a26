"""The gateway's rules in a real nginx, in front of the mock."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from inferdeck.gateway_rules import GATEWAY
from inferdeck.version import ROOT

GOOD = {"text": "good phone", "product_id": "AB12345678"}
CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream sentiment {{ server 127.0.0.1:{mock}; }}
    include {rules};
}}
"""


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def run(command: list[str], folder: str) -> int:
    """Run a command and return how it ended."""
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False).returncode


def nginx() -> Path | None:
    """Return nginx: on PATH, else from Debian's package, unpacked and kept."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found:
        return Path(found)
    kept = Path.home() / ".cache" / "inferdeck-tests" / "nginx"
    binary = kept / "usr" / "sbin" / "nginx"
    if not binary.exists() and shutil.which("apt-get"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            if run(["apt-get", "-q", "download", "nginx"], folder):
                run(["apt-get", "-q", "update"], folder)
                run(["apt-get", "-q", "download", "nginx"], folder)
            for deb in Path(folder).glob("*.deb"):
                run(["dpkg-deb", "-x", str(deb), str(Path(folder) / "tree")], folder)
                shutil.copytree(Path(folder) / "tree", kept, dirs_exist_ok=True)
    return binary if binary.exists() else None


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until something listens."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, f"it ended with {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("it never listened")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Start the mock and nginx with the committed rules, at another port."""
    binary = nginx()
    if binary is None:
        assert os.environ.get("CI") != "true", "nginx can be had neither on PATH nor from Debian's archive"
        pytest.skip("no nginx here, and Debian's package cannot be had")
    folder, port, mock = tmp_path_factory.mktemp("gateway"), free_port(), free_port()
    rules = (ROOT / GATEWAY).read_text(encoding="utf-8").replace("127.0.0.1:8088", f"127.0.0.1:{port}")
    (folder / "rules.conf").write_text(rules, encoding="utf-8")
    config = CONFIG.format(folder=folder, mock=mock, rules=folder / "rules.conf")
    (folder / "nginx.conf").write_text(config, encoding="utf-8")
    started = []
    try:
        command = [sys.executable, "-m", "service.contract_mock", "--port", str(mock)]
        started.append(subprocess.Popen(command))
        wait_for(mock, started[-1])
        started.append(subprocess.Popen([binary, "-p", str(folder), "-c", str(folder / "nginx.conf")]))
        wait_for(port, started[-1])
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            yield client
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def test_what_the_contract_knows_passes(gateway: httpx.Client) -> None:
    """A request in order is answered from behind, as is one that the service itself refuses."""
    assert gateway.post("/v1/sentiment", json=GOOD).json()["sentiment"] == "positive"
    assert gateway.post("/v1/sentiment", json={}).status_code == 400
    assert gateway.get("/openapi.yaml").status_code == 200


def test_photos_may_be_larger_than_texts(gateway: httpx.Client) -> None:
    """As the service's own bounds are; the answer to one that is still too large names the photos' bound."""
    said = {"content-type": "image/jpeg"}
    passes = gateway.post("/v1/photos", content=b"x" * 20_000, headers=said)
    refused = gateway.post("/v1/photos", content=b"x" * 8_388_609, headers=said)

    assert (200, 413) == (passes.status_code, refused.status_code)
    assert "8388608 bytes" in refused.json()["error"]["message"]
    assert 405 == gateway.get("/v1/photos").status_code


def test_what_it_does_not_know_stays_outside(gateway: httpx.Client) -> None:
    """Other paths, other methods and bodies that are too large are answered by the gateway, in the contract's shape."""
    told = {
        404: gateway.get("/admin"),
        405: gateway.delete("/v1/sentiment"),
        413: gateway.post("/v1/sentiment", content=b"x" * 20_000),
    }

    assert {status: status for status in told} == {status: answer.status_code for status, answer in told.items()}
    assert ["not_found", "method", "body_too_large"] == [one.json()["error"]["reason"] for one in told.values()]
    assert told[405].headers["allow"] == "POST"
    assert {"application/json"} == {answer.headers["content-type"] for answer in told.values()}
    assert all("nginx" in answer.headers["server"] for answer in told.values())
