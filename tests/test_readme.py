"""The README is true: its commands run, its code works, its links lead somewhere."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PORTS = ("service", "admin", "exporter", "triage", "prometheus", "alertmanager")
T = TypeVar("T")
# Commands that take minutes have tests of their own, which run the very same thing.
HELD_ELSEWHERE = {
    "inferdeck drill event_loop_blocked service_down --json": "tests/test_done_when.py",
    "inferdeck drill --clean 3 --json": "tests/test_done_when.py",
    "inferdeck up --stack compose": "tests/inferdeck/stack/compose/test_compose_real.py",
    # Docker's daemon is not to be had where tests run: its own loader reads the file, and podman brings it up
    "docker compose -f docker-compose.observability.yml up -d --build --scale service=3": (
        "tests/inferdeck/stack/compose/test_loader.py"
    ),
}


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """Return the commands of the README's console blocks, in order."""
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


def free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """Return the environment of a reader who follows the README on free ports, and its ports; stops what they left."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "INFERDECK_STATE_DIR": str(tmp_path / "state"),
        **{f"INFERDECK_STACK_{name.upper()}_PORT": str(port) for name, port in ports.items()},
    }
    yield environment, ports
    subprocess.run(["inferdeck", "down"], env=environment, cwd=ROOT, capture_output=True, check=False)  # noqa: S607


@pytest.mark.real
def test_its_commands_run_in_their_order(reader: tuple[dict[str, str], dict[str, int]]) -> None:
    """Every command of the README works when typed in its order; make's verbs exist and run what the README says."""
    environment, ports = reader
    said: dict[str, str] = {}
    for command in commands():
        if command in HELD_ELSEWHERE:
            assert (ROOT / HELD_ELSEWHERE[command]).exists()
            continue
        words = shlex.split(command.replace("127.0.0.1:8080", f"127.0.0.1:{ports['service']}"))
        if words[0] == "make":  # the gate itself runs these; here only that they exist
            words.insert(1, "--dry-run")
        done = subprocess.run(
            words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
        )
        said[command] = done.stdout + done.stderr
        # Nothing is wrong with a fresh stack, so triage names nothing and says so by its exit code.
        allowed = {0, 1} if words[:2] in (["inferdeck", "triage"], ["inferdeck", "doctor"]) else {0}
        assert done.returncode in allowed, (command, said[command])

    assert "inferdeck demo" in said["make demo"]
    assert "pytest" in said["make test"]
    assert {"sentiment", "confidence", "latency_ms"} <= set(
        json.loads(next(out for command, out in said.items() if command.startswith("curl")))
    )
    assert "model.forward" in said["inferdeck trace readme-session-0001"]


def test_its_three_lines_attach_the_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's Python block is an app that answers, and its requests leave rows."""
    monkeypatch.setenv("INFERDECK_RING_DIR", str(tmp_path))
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102  the page's own code
    with TestClient(names["app"]) as client:  # type: ignore[arg-type]
        assert {"length": 4} == client.get("/length/good").json()

    from exporters.rows import load_rows

    table = load_rows(tmp_path)
    assert ["/length/{text}"] == list(table.columns["route"])


def default_folders_of_its_own() -> list[str]:
    """Return what makes a command run with a shared memory of its own, where the system lets us; else nothing.

    Without a variable rows go to the machine's shared memory, where other services of this user may record.
    """
    wrapped = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    wrapped += ['mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    try:
        done = subprocess.run([*wrapped, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return wrapped if done.returncode == 0 else []


def test_its_app_and_an_exporter_beside_it_find_each_other_without_a_variable(tmp_path: Path) -> None:
    """The app's default folder bears its service's name, which `inferdeck export` finds without being told."""
    from exporters.lone_folder import SeveralFoldersError, lone_ring_dir

    wrapped = default_folders_of_its_own()
    if not wrapped:
        try:
            used = lone_ring_dir()
        except SeveralFoldersError as error:
            used = Path(str(error))
        if used is not None:
            pytest.skip(f"other services record below the default folder: {used}")
    (code,) = blocks("python")
    (tmp_path / "reviews_app.py").write_text(code, encoding="utf-8")
    port, exporter_port = free_ports(2)
    both = f"{sys.executable} -m uvicorn reviews_app:app --port {port} & inferdeck export --port {exporter_port} & wait"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INFERDECK_")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*wrapped, "sh", "-c", both], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        answer = eventually(lambda: httpx.get(f"http://127.0.0.1:{port}/length/good", trust_env=False))
        page = eventually(
            lambda: (
                found
                if "/length/{text}" in (found := httpx.get(f"http://127.0.0.1:{exporter_port}/metrics").text)
                else ""
            )
        )
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=15)

    assert {"length": 4} == answer.json()
    assert 'model_requests_total{outcome="ok",route="/length/{text}"}' in page


def eventually(ask: Callable[[], T]) -> T:
    """Return the first true answer, within 30 seconds."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            if found := ask():
                return found
        time.sleep(0.1)
    raise AssertionError("it did not come about within 30 seconds")


def test_its_links_lead_somewhere() -> None:
    """Every relative link of the README, CONTRIBUTING and docs/ points to a file that exists."""
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [f"{page.name}: {x}" for x in links if "://" not in x and not (page.parent / x).exists()]

    assert broken == []


def test_nothing_in_it_waits_to_be_filled_in() -> None:
    """No placeholder is left where a figure or an output shall stand."""
    assert "@@" not in README
