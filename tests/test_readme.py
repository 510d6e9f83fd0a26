"""The README is true: its commands run, its code works, its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PORTS = ("service", "admin", "exporter", "triage", "prometheus", "alertmanager")
# Commands that take minutes have tests of their own, which run the very same thing.
HELD_ELSEWHERE = {
    "inferdeck drill event_loop_blocked service_down --json": "tests/test_done_when.py",
    "inferdeck drill --clean 3 --json": "tests/test_done_when.py",
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


def test_its_links_lead_somewhere() -> None:
    """Every relative link of the README, CONTRIBUTING and docs/ points to a file that exists."""
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [f"{page.name}: {x}" for x in links if "://" not in x and not (page.parent / x).exists()]

    assert broken == []
