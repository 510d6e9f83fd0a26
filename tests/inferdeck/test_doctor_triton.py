"""Doctor misses Triton only where the stack is to have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.doctor_triton import triton
from inferdeck.settings import load_settings
from service.triton.home import Home, _fingerprint


@pytest.mark.parametrize(("backend", "state"), [("onnx", "absent"), ("triton", "fail")])
def test_an_environment_that_is_not_there_is_missed_where_it_is_asked_for(
    backend: str, state: str, tmp_path: Path
) -> None:
    """With what makes it."""
    (found,) = triton(load_settings(backend=backend), tmp_path)

    assert state == found.state
    assert "inferdeck triton install" in found.mend


def test_a_model_of_an_older_training_is_told(tmp_path: Path) -> None:
    """It has no version 1."""
    server = Home(tmp_path).server
    server.parent.mkdir(parents=True)
    server.touch(0o755)
    (tmp_path / "complete").write_text(_fingerprint(), encoding="ascii")
    settings = load_settings(backend="triton", model_dir=tmp_path)

    (found,) = triton(settings, tmp_path)
    (tmp_path / "single.onnx").touch()
    (then,) = triton(settings, tmp_path)

    assert ("fail", "inferdeck train", "ok") == (found.state, found.mend, then.state)
