"""A model packed anew for speed comes to the same name: its graph in int8, its tokenizer of an older version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.artifacts import CONFIG_FILE, MODEL_FILE, TOKENIZER_FILE, model_version
from service.chosen_model import TRANSFORMER_FOLDER

SLUG = "results_differ"
SETTINGS = {"model": "transformer"}


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Deploy the packed model.

    Args:
        stack: The drill's handle on the stack.
    """
    with deployed(stack, quantised=True):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Deploy a graph that only computes its sums in another order: a runtime's optimiser has fused its nodes.

    Args:
        stack: The drill's handle on the stack.
    """
    with deployed(stack, quantised=False):
        yield


@contextmanager
def deployed(stack: Any, *, quantised: bool) -> Iterator[None]:
    """Serve another folder; the one before comes back at the end."""
    folder = packed(stack.state_dir / "packed", quantised=quantised)
    # A folder of its own is what the setting for the linear one takes; the format is the same.
    stack.deploy_service({"INFERDECK_SERVICE_MODEL": "linear", "INFERDECK_SERVICE_MODEL_DIR": str(folder)})
    try:
        yield
    finally:
        stack.deploy_service({"INFERDECK_SERVICE_MODEL": "transformer"})


def packed(folder: Path, *, quantised: bool) -> Path:
    """Write the transformer's folder anew, with its graph fused, and if asked for in int8 with another tokenizer.

    Args:
        folder: Fresh folder.
        quantised: Whether weights are int8, and activations with one scale for each call: it is its batch's then.
    """
    import onnxruntime

    folder.mkdir()
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_BASIC if quantised else level.ORT_ENABLE_EXTENDED
    fused = folder / ("fused.onnx" if quantised else MODEL_FILE)
    options.optimized_model_filepath = str(fused)
    onnxruntime.InferenceSession(str(TRANSFORMER_FOLDER / MODEL_FILE), options, providers=["CPUExecutionProvider"])
    tokenizer = (TRANSFORMER_FOLDER / TOKENIZER_FILE).read_text(encoding="utf-8")
    if quantised:
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(fused, folder / MODEL_FILE, op_types_to_quantize=["MatMul"])
        fused.unlink()
        tokenizer = older(tokenizer)
    (folder / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
    config = json.loads((TRANSFORMER_FOLDER / CONFIG_FILE).read_text(encoding="utf-8"))
    digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (MODEL_FILE, TOKENIZER_FILE)]
    config |= {"model_sha256": digests[0], "tokenizer_sha256": digests[1]}
    config["version"] = model_version(digests[0], digests[1], config["temperature"])
    (folder / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
    return folder


def older(tokenizer: str) -> str:
    """Return the tokenizer as it was before it made letters small: capitals are unknown to it."""
    told = json.loads(tokenizer)
    told["normalizer"]["normalizers"] = [n for n in told["normalizer"]["normalizers"] if n["type"] != "Lowercase"]
    return json.dumps(told, ensure_ascii=False)
