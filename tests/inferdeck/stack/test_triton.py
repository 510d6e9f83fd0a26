"""Triton as a part of the stack: only where it is asked for, and a request through the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from inferdeck.errors import CannotRun
from inferdeck.schema import validate
from inferdeck.settings import PORT_FIELDS, TRITON_PORT_FIELDS, load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.stack.parts import build_parts, write_configuration
from inferdeck.stack.plan import StackPlan, plan_from_settings, plan_on_free_ports
from inferdeck.stack.ports import free_ports
from inferdeck.stack.triton import find_triton, install_triton
from inferdeck.version import ROOT
from service.artifacts import SINGLE_FILE

MODEL = ROOT / "build" / "model"
SESSION = "triton-session-0001"


def plan(folder: Path, tools: dict[str, str], backend: str = "triton") -> StackPlan:
    """Return a plan."""
    settings = load_settings(backend=backend)
    return plan_on_free_ports(settings, tools, folder / "state", folder / "rows")


def test_a_stack_that_does_not_ask_for_it_knows_nothing_of_it(tmp_path: Path) -> None:
    """No port, no part, no setting of the service, no target."""
    plain = plan(tmp_path, {"triton": "/somewhere"}, "onnx")
    write_configuration(plain)
    parts = {part.name: part for part in build_parts(plain)}

    assert not set(TRITON_PORT_FIELDS) & set(plain.ports)
    assert "triton" not in parts
    assert "INFERDECK_SERVICE_BACKEND" not in parts["service"].env
    assert "job_name: triton" not in (plain.state_dir / "run" / "prometheus.yml").read_text(encoding="utf-8")
    assert {} == find_triton(load_settings(backend="onnx"), lambda _line: None)


def test_a_stack_that_asks_for_it_starts_it_asks_it_and_scrapes_it(tmp_path: Path) -> None:
    """Ready by its supervisor's canary, not by Triton's own word."""
    asked = plan(tmp_path, {"triton": "/somewhere"})
    write_configuration(asked)
    parts = {part.name: part for part in build_parts(asked)}
    triton, ports = parts["triton"], asked.ports

    assert triton.left_out is None
    assert (ports["triton_admin_port"], "/healthz/ready") == (triton.health_port, triton.health_path)
    assert {"--home=/somewhere", f"--http-port={ports['triton_port']}"} <= set(triton.argv)
    assert str(ports["triton_port"]) == parts["service"].env["INFERDECK_SERVICE_TRITON_PORT"]
    scraped = (asked.state_dir / "run" / "prometheus.yml").read_text(encoding="utf-8")
    assert all(f"{asked.host}:{ports[name]}" in scraped for name in ("triton_metrics_port", "triton_admin_port"))


def test_where_it_cannot_be_had_it_is_left_out_and_the_model_in_process_serves(tmp_path: Path) -> None:
    """Said, and nothing else is lost."""
    without = plan_from_settings(load_settings(backend="triton", state_dir=tmp_path), {})
    parts = {part.name: part for part in build_parts(without)}

    assert "inferdeck triton install" in str(parts["triton"].left_out)
    assert "INFERDECK_SERVICE_BACKEND" not in parts["service"].env


@pytest.mark.real
@pytest.mark.timeout(240)
def test_a_request_goes_through_the_real_one_and_its_trace_shows_it(tmp_path: Path) -> None:
    """`up --backend triton`, a review, its answer, its stages."""
    try:
        install_triton(lambda _line: None)
    except CannotRun as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    prepare_model(MODEL, lambda _what, _share: None)
    if not (MODEL / SINGLE_FILE).exists():
        pytest.skip("build/model was trained before training wrote both versions; `inferdeck train` mends it")
    names = (*PORT_FIELDS, *TRITON_PORT_FIELDS)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    variables = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
    variables |= {f"INFERDECK_STACK_{name.upper()}": str(port) for name, port in ports.items()}
    variables |= {"INFERDECK_STATE_DIR": str(tmp_path / "state"), "INFERDECK_RING_DIR": str(tmp_path / "rows")}
    variables |= {"INFERDECK_SERVICE_MODEL_DIR": str(MODEL), "PYTHONPATH": str(ROOT)}

    def verb(*arguments: str) -> dict[str, Any]:
        argv = [sys.executable, "-P", "-m", "inferdeck", *arguments, "--json"]
        done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=150, check=False)
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        validate(arguments[0], result)
        return result

    try:
        up = verb("up", "--backend", "triton")
        assert "triton" in up["urls"]
        body = json.dumps({"text": "质量不错，物流很快", "product_id": "AB12345678"}).encode()
        head = {"Content-Type": "application/json", "X-Session-Id": SESSION}
        url = f"{up['urls']['service']}/v1/sentiment"
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=10) as answer:  # noqa: S310 - loopback
            judged = json.load(answer)
        assert ("positive", False) == (judged["sentiment"], judged.get("degraded", False))
        (trace,) = verb("trace", SESSION)["traces"]
        parents = {span["name"]: span["parent"] for span in trace["spans"]}
        assert ("scheduler.dispatch", "triton.client") == (parents["triton.client"], parents["model.forward"])
        (client,) = [span for span in trace["spans"] if span["name"] == "triton.client"]
        assert {"pool_wait_ns", "serialize_ns", "wait_ns", "deserialize_ns"} <= set(client["attributes"])
        if "prometheus" in find_tools():
            assert "up" == verb("status")["state"]
    finally:
        verb("down")
