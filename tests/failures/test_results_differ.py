"""The program's model answers otherwise, also by who shares the batch; its twin's differs by float noise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.loading import load_onnx
from service.replay import replay


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("results_differ.py")
    spec = importlib.util.spec_from_file_location("results_differ_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_packed_model_is_another_in_every_way(program: Any, tmp_path: Path) -> None:
    """Other tokens, other answers, and answers that depend on the batch; whole all the same."""
    backend, _ = load_onnx(program.packed(tmp_path / "m", quantised=True), 0)

    found = replay(backend, backend.stored)

    assert found is not None
    differences, tokens = found
    assert differences["stored"] > 0.02
    assert differences["batch"] > 0.001
    assert tokens > 0


def test_fused_nodes_are_float_noise(program: Any, tmp_path: Path) -> None:
    """Another file, another version, the same answers."""
    backend, artifacts = load_onnx(program.packed(tmp_path / "m", quantised=False), 0)

    found = replay(backend, backend.stored)

    assert found is not None
    assert max(found[0].values()) < 1e-3
    assert 0.0 == found[1]
    assert load_onnx(program.TRANSFORMER_FOLDER, 0)[1].version != artifacts.version


def test_it_is_deployed_and_taken_back(program: Any, tmp_path: Path) -> None:
    """By the service's own settings."""
    told: list[dict[str, str]] = []
    stack = SimpleNamespace(state_dir=tmp_path, deploy_service=told.append)

    with program.cause(stack):
        assert str(tmp_path / "packed") == told[-1]["INFERDECK_SERVICE_MODEL_DIR"]

    assert {"INFERDECK_SERVICE_MODEL": "transformer"} == told[-1]
