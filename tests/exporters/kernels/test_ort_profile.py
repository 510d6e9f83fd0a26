"""The canary on ONNX Runtime itself: times by node name, and a node that really has more to do is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from exporters.kernels.baseline import LEARN_WINDOWS, BaselineStore
from exporters.kernels.ort_profile import OrtCanary, times_of
from exporters.kernels.reading import Absent, Window
from exporters.kernels.watch import KernelWatch

COLUMNS = 16
# Takes 1.4 times as long: most of a branch's time goes into its rows, which are as many as before.
WIDER = 52


def write_graph(path: Path, columns_of_slow: int = COLUMNS) -> Path:
    """A graph of seven like branches, each a row per token times a mask; one of them may be wider."""
    nodes, tables = [], []
    nodes.append(helper.make_node("Cast", ["attention_mask"], ["mask"], "cast", to=TensorProto.FLOAT))
    nodes.append(helper.make_node("Unsqueeze", ["mask", "last"], ["mask_3d"], "expand"))
    for place in range(7):
        columns = columns_of_slow if place == 3 else COLUMNS
        tables.append(numpy_helper.from_array(np.ones((1, 256, columns), np.float32), f"w{place}"))
        nodes.append(helper.make_node("Mul", ["mask_3d", f"w{place}"], [f"out{place}"], f"branch_{place}"))
    tables.append(numpy_helper.from_array(np.array([2], np.int64), "last"))
    graph = helper.make_graph(
        nodes,
        "branches",
        [helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", 256])],
        [helper.make_tensor_value_info(f"out{place}", TensorProto.FLOAT, None) for place in range(7)],
        tables,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_every_named_node_has_its_times(tmp_path: Path) -> None:
    """One time a counted run, in seconds, by the name that the export gave; nothing is left on the disk."""
    window = OrtCanary(write_graph(tmp_path / "m.onnx"), bursts=2, pause_seconds=0).measure()

    assert isinstance(window, Window)
    assert {"cast", "expand", *(f"branch_{place}" for place in range(7))} >= set(window.seconds)
    assert {f"branch_{place}" for place in range(7)} <= set(window.seconds)
    assert {12} == {len(times) for times in window.seconds.values()}
    assert all(0 <= time < 1 for times in window.seconds.values() for time in times)
    assert window.environment["runtime"].startswith("onnxruntime ")
    assert ["m.onnx"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.real
def test_a_node_that_takes_1_4_times_as_long_is_named_within_two_windows(tmp_path: Path) -> None:
    """Live, on this CPU: the same model's name, a graph in which one node is wider than before."""
    store = BaselineStore(tmp_path / "kernels.json")
    before = KernelWatch(OrtCanary(write_graph(tmp_path / "a.onnx"), pause_seconds=0.02), store)
    for _ in range(LEARN_WINDOWS + 4):
        before.look()
        assert () == before.state.regressions

    wider = write_graph(tmp_path / "b.onnx", WIDER)
    after = KernelWatch(OrtCanary(wider, pause_seconds=0.02), store)
    after.look()
    after.look()

    assert ["branch_3"] == [one.kernel for one in after.state.regressions]


@pytest.mark.parametrize(("content", "state"), [(None, "no_model"), (b"not a graph", "error")])
def test_a_model_that_cannot_be_measured_is_absent(tmp_path: Path, content: bytes | None, state: str) -> None:
    """A missing file and one that is no graph cost the probe, and say what is wrong."""
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)

    found = OrtCanary(path).measure()

    assert isinstance(found, Absent)
    assert (state, True) == (found.state, bool(found.detail))


def test_nodes_that_did_not_run_each_time_are_left_out() -> None:
    """Warm-up runs do not count, and a node behind a condition has no comparable times."""
    always = [{"cat": "Node", "name": "a_kernel_time", "dur": dur} for dur in (90, 90, 90, 5, 6, 7, 8, 9, 10)]
    other = [
        {"cat": "Node", "name": "b_kernel_time", "dur": 1},
        {"cat": "Session", "name": "model_run", "dur": 1},
        {"cat": "Node", "name": "a_fence_before", "dur": 1},
    ]

    found = times_of([*always, *other], 1)

    assert ["a"] == list(found)
    assert pytest.approx([5e-6, 6e-6, 7e-6, 8e-6, 9e-6, 10e-6]) == list(found["a"])
