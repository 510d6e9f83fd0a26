"""A second version of the trained model, made from outside: the same graph with more nodes behind it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Graph = Any


def write_version(source: Path, target: Path, change: Callable[[Graph], None]) -> Path:
    """Write a changed copy of a model's folder, whole and with digests of its own, and return it.

    Args:
        source: Folder of the trained model.
        target: Folder to write.
        change: Gets the graph, whose output `logits` is renamed `before`, and adds what makes `logits` of it.
    """
    from service.artifacts import MODEL_FILE, model_version

    shutil.copytree(source, target)
    model = onnx.load(str(target / MODEL_FILE))
    for node in model.graph.node:
        node.output[:] = ["before" if name == "logits" else name for name in node.output]
        node.input[:] = ["before" if name == "logits" else name for name in node.input]
    change(model.graph)
    onnx.checker.check_model(model, full_check=True)
    (target / MODEL_FILE).write_bytes(model.SerializeToString())
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    config["model_sha256"] = hashlib.sha256((target / MODEL_FILE).read_bytes()).hexdigest()
    config["version"] = model_version(config["model_sha256"], config["tokenizer_sha256"], config["temperature"])
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return target


def add(graph: Graph, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
    """Add one node."""
    graph.node.append(helper.make_node(kind, inputs, [output], f"v2_{output}", **attributes))


def constant(graph: Graph, name: str, value: Any) -> None:
    """Add one constant."""
    graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def equal(graph: Graph) -> None:
    """Change nothing but the bytes: another version that answers alike."""
    add(graph, "Identity", ["before"], "logits")


def slower(graph: Graph, size: int = 512, products: int = 6) -> None:
    """Multiply large matrices that depend on the input, and add nothing of them to the answer."""
    weights = np.random.default_rng(1).normal(0.0, size**-0.5, (size, size)).astype(np.float32)
    constant(graph, "v2_weights", weights)
    constant(graph, "v2_nothing", np.float32(0.0))
    add(graph, "ReduceMean", ["before"], "v2_mean", axes=[0, 1], keepdims=0)
    add(graph, "Add", ["v2_weights", "v2_mean"], "v2_hidden_0")
    for step in range(products):
        add(graph, "MatMul", [f"v2_hidden_{step}", "v2_weights"], f"v2_hidden_{step + 1}")
    add(graph, "Tanh", [f"v2_hidden_{products}"], "v2_bounded")
    add(graph, "ReduceMean", ["v2_bounded"], "v2_rest", axes=[0, 1], keepdims=0)
    add(graph, "Mul", ["v2_rest", "v2_nothing"], "v2_zero")
    add(graph, "Add", ["before", "v2_zero"], "logits")


def sometimes_nan(graph: Graph, one_in: int = 50) -> None:
    """Answer NaN for the texts whose token ids add up to a multiple of a number."""
    constant(graph, "v2_one_in", np.int64(one_in))
    constant(graph, "v2_first", np.int64(0))
    constant(graph, "v2_nan", np.float32(np.nan))
    constant(graph, "v2_tokens", np.array([1], dtype=np.int64))
    add(graph, "ReduceSum", ["input_ids", "v2_tokens"], "v2_sum", keepdims=1)
    add(graph, "Mod", ["v2_sum", "v2_one_in"], "v2_left")
    add(graph, "Equal", ["v2_left", "v2_first"], "v2_hit")
    add(graph, "Where", ["v2_hit", "v2_nan", "before"], "logits")


@contextmanager
def rolled_out(stack: Any, change: Callable[[Graph], None], share: float) -> Iterator[None]:
    """Give a second version a share of the stack's sessions, as `inferdeck canary set` does, and take it back.

    Args:
        stack: The drill's handle on the stack.
        change: Makes the version.
        share: Its share.
    """
    from inferdeck.settings import load_settings
    from service.canary.state import FOLDER, CanaryStore

    folder = write_version(load_settings().model_path, stack.state_dir / "second-version", change)
    store = CanaryStore(stack.state_dir / "service" / FOLDER)
    store.set(share=share, model=str(folder))
    try:
        yield
    finally:
        store.set(share=0.0)
