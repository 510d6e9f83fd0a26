"""Memory is asked before a model is loaded, and what does not belong together is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.artifacts import ArtifactsDamaged, ArtifactsMissing, model_version
from service.backend import BackendError, pad
from service.loading import NotEnoughMemory, load_onnx, require_memory
from service.memory import Memory
from service.text.clean import FINGERPRINT
from service.training.graph import build_graph
from service.training.linear import BUCKETS, Linear
from service.training.tokens import build_tokenizer

GIB = 1024**3


@pytest.mark.parametrize(
    ("model", "total", "used", "reserve", "fits"),
    [
        (GIB, 4 * GIB, GIB, GIB, True),
        (GIB, 4 * GIB, 2 * GIB, GIB, False),  # 1.2 GiB are needed, 1 is usable
        (10, 13, 1, 0, True),
        (10, 12, 1, 0, False),
        (0, GIB, 2 * GIB, 0, False),
    ],
)
def test_model_must_fit_beside_what_runs(*, model: int, total: int, used: int, reserve: int, fits: bool) -> None:
    """Row B11: 1.2 times the parameters within total less reserve less others."""
    if fits:
        require_memory(model, Memory(total, used), reserve)
    else:
        with pytest.raises(NotEnoughMemory, match="INFERDECK_SERVICE_MEMORY_RESERVE_BYTES"):
            require_memory(model, Memory(total, used), reserve)


def test_the_refusal_says_what_is_compared() -> None:
    """One line: need, what is usable, whose limit it is, and the mend that fits it."""
    with pytest.raises(NotEnoughMemory) as caught:
        require_memory(100 << 20, Memory(512 << 20, 300 << 20, "container"), 128 << 20)

    assert (
        "the model needs 120.0 MiB (1.2 x its parameters) and 84.0 MiB are usable (the container's 512 MiB, less "
        "300 held and 128 in reserve); raise the container's memory limit or lower "
        "INFERDECK_SERVICE_MEMORY_RESERVE_BYTES"
    ) == str(caught.value)


def write_model(folder: Path, **changes: Any) -> Path:
    """Write a small whole model, as training would, with changes to its configuration."""
    import hashlib

    folder.mkdir()
    tokenizer = build_tokenizer(["很好 很差 good bad"] * 4, 300)
    vocabulary = tokenizer.get_vocab_size()
    weights = np.random.default_rng(2).normal(size=(3, vocabulary + BUCKETS))
    graph = build_graph(Linear(weights=weights, bias=np.zeros(3), alpha=1e-5), vocabulary)
    (folder / "model.onnx").write_bytes(graph)
    tokenizer.save(str(folder / "tokenizer.json"))
    digests = {
        name: hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for name, file in (("model_sha256", "model.onnx"), ("tokenizer_sha256", "tokenizer.json"))
    }
    config = {
        "format": "inferdeck-model/1",
        "labels": ["negative", "neutral", "positive"],
        "temperature": 1.3,
        "max_tokens": 512,
        "vocabulary": vocabulary,
        "pad_id": 0,
        "version": model_version(digests["model_sha256"], digests["tokenizer_sha256"], 1.3),
        "cleaning_fingerprint": FINGERPRINT,
        "data_fingerprint": "x",
    }
    (folder / "config.json").write_text(json.dumps(config | digests | changes))
    return folder


def test_loads_a_whole_model(tmp_path: Path) -> None:
    """What comes out answers, and bears the artifact's figures."""
    backend, artifacts = load_onnx(write_model(tmp_path / "m"), 0)
    assert (backend.version, backend.temperature) == (artifacts.version, 1.3)
    assert backend.forward(*pad([backend.encode("很好 good").ids])).shape == (1, 3)


def test_missing_and_damaged_models_are_told_apart(tmp_path: Path) -> None:
    """Each gets its own error, with the mend."""
    with pytest.raises(ArtifactsMissing, match="inferdeck train"):
        load_onnx(tmp_path / "nowhere", 0)
    folder = write_model(tmp_path / "m")
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ArtifactsDamaged, match="inferdeck train"):
        load_onnx(folder, 0)


def test_tokenizer_with_more_ids_than_the_graph_is_refused(tmp_path: Path) -> None:
    """Else every text with a late token would fail, one by one."""
    with pytest.raises(BackendError, match="more than 3 ids"):
        load_onnx(write_model(tmp_path / "m", vocabulary=3), 0)


def test_reserve_beyond_the_machine_refuses_the_model(tmp_path: Path) -> None:
    """The machine's own figures are what is compared."""
    with pytest.raises(NotEnoughMemory):
        load_onnx(write_model(tmp_path / "m"), 2**60)
