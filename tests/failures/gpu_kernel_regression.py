"""The graph was exported anew: one of its nodes computes the same over more rows, and takes 1.4 times as long."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # as the drill finds it
from onnx import helper, numpy_helper

SLUG = "gpu_kernel_regression"
# the kernels are those of the CPU, which stand for a card's
SIMULATED = True
EXPORTER_ENV = {"INFERDECK_EXPORTER_KERNEL_MODEL": "{folder}/canary.onnx", "INFERDECK_EXPORTER_KERNEL_SECONDS": "3"}

CANARY = "canary.onnx"
NODE = "token_sum"
MORE_ROWS = 140
"""Beyond the canary's 256: the node takes 1.4 times as long, and computes what it did."""
LONG_PERIOD_SECONDS = 0.1
LEARN_SECONDS = 240.0


def prepare(folder: Path) -> None:
    """Give the exporter a graph of its own to time: the service's model is never touched.

    Args:
        folder: The run's state folder.
    """
    from inferdeck.settings import load_settings
    from service.artifacts import MODEL_FILE

    shutil.copyfile(load_settings().model_path / MODEL_FILE, folder / CANARY)


@contextmanager
def usual(stack: Any) -> Iterator[None]:
    """Wait until the exporter knows what the kernels usually take.

    Args:
        stack: The drill's handle on the stack.
    """
    until = time.monotonic() + LEARN_SECONDS
    while not learned(stack.state_dir):
        if time.monotonic() > until:
            raise RuntimeError(f"no baseline of the kernels within {LEARN_SECONDS:.0f} s")
        time.sleep(0.5)
    yield


def learned(folder: Path) -> bool:
    """Return whether the exporter's baseline is complete.

    Args:
        folder: Its state folder.
    """
    from exporters.kernels.baseline import LEARN_WINDOWS

    try:
        told = json.loads((folder / "kernels.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(
        len(windows) >= LEARN_WINDOWS
        for one in told.get("baselines", {}).values()
        for windows in one.get("fastest_seconds", {}).values()
    )


def slower_node(source: Path, target: Path, rows: int = MORE_ROWS) -> None:
    """Write the graph with one sum over more rows than there are tokens, all of them 0; the file is whole at any time.

    Args:
        source: The graph.
        target: Where to.
        rows: How many rows more.
    """
    model = onnx.load(str(source))
    place, node = next((place, one) for place, one in enumerate(model.graph.node) if one.name == NODE)
    summed, node.input[0] = node.input[0], "padded_rows"
    model.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 0, 0, rows, 0]), "more_rows"))
    model.graph.node.insert(place, helper.make_node("Pad", [summed, "more_rows"], ["padded_rows"], "pad_rows"))
    onnx.checker.check_model(model, full_check=True)
    fresh = target.with_suffix(".fresh")
    fresh.write_bytes(model.SerializeToString())
    fresh.replace(target)


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the new graph out to where the canary looks, and take it back.

    Args:
        stack: The drill's handle on the stack.
    """
    path = stack.state_dir / CANARY
    kept = path.read_bytes()
    slower_node(path, path)
    try:
        yield
    finally:
        path.write_bytes(kept)


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send texts ten times as long beside the others: all kernels of the service have more to do, the canary's do not.

    Args:
        stack: The drill's handle on the stack.
    """
    text = "酒店位置在市中心，出门走几步就是地铁站；前台办手续很快，房间比照片上的小一点，但是打扫得干净。" * 8
    body = json.dumps({"text": text, "product_id": "AB12345678"})

    def send(number: int) -> None:
        ask(stack.service_url, "POST", "/v1/sentiment", JSON | {"x-session-id": f"long-{number % 50}"}, body)

    with repeating(send, LONG_PERIOD_SECONDS):
        yield
