"""The ONNX graph of the linear model, and the proof that it computes what scikit-learn does.

`input_ids, attention_mask (int64, both axes free) -> logits (float32, [batch, 3])`, the tensors of a transformer, so
that one can take its place. Every node has a name, because per-kernel timings are told by node. Padding (mask 0)
changes nothing. Ids are not checked by the graph: Gather wraps negative ones, and raises beyond the vocabulary; the
service must not send them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from service.training.linear import BUCKETS, MULTIPLIER, Linear

__all__ = ["IR_VERSION", "OPSET", "build_graph", "run_graph"]

# The oldest pair that the ONNX Runtime inside Triton 2.51 and every later one reads.
OPSET, IR_VERSION = 17, 8


def build_graph(model: Linear, vocabulary: int) -> bytes:
    """Return the serialized graph; the same weights give the same bytes.

    Args:
        model: The fitted model, idf folded in; with as many columns as the vocabulary it looks at single tokens alone.
        vocabulary: Entries of the tokenizer.
    """
    single = model.weights.shape[1] == vocabulary
    nodes = _single_nodes() if single else _nodes()
    used = {name for node in nodes for name in node.input}
    constants = {name: value for name, value in _constants(model, vocabulary).items() if name in used}
    graph = helper.make_graph(
        nodes,
        "sentiment",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "tokens"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(model.bias)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    built = helper.make_model(
        graph, producer_name="inferdeck", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    onnx.checker.check_model(built, full_check=True)
    return bytes(built.SerializeToString())


def _constants(model: Linear, vocabulary: int) -> dict[str, NDArray[np.generic]]:
    weights = model.weights.astype(np.float32)
    return {
        "token_table": np.ascontiguousarray(weights[:, :vocabulary].T),
        "pair_table": np.ascontiguousarray(weights[:, vocabulary:].T),
        "bias": model.bias.astype(np.float32),
        "multiplier": np.array(MULTIPLIER, dtype=np.int64),
        "buckets": np.array(BUCKETS, dtype=np.int64),
        "one": np.array(1.0, dtype=np.float32),
        "first": np.array([0], dtype=np.int64),
        "second": np.array([1], dtype=np.int64),
        "last": np.array([-1], dtype=np.int64),
        "end": np.array([np.iinfo(np.int64).max], dtype=np.int64),
        "axis_tokens": np.array([1], dtype=np.int64),
        "axis_classes": np.array([2], dtype=np.int64),
    }


def _nodes() -> list[onnx.NodeProto]:
    """Return the nodes in order: sum of token rows, sum of pair rows, norm, bias."""
    node = helper.make_node
    return [
        node("Cast", ["attention_mask"], ["mask"], "mask_to_float", to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "axis_classes"], ["mask_3d"], "mask_expand"),
        node("Gather", ["token_table", "input_ids"], ["token_rows"], "token_gather", axis=0),
        node("Mul", ["token_rows", "mask_3d"], ["token_kept"], "token_mask"),
        node("ReduceSum", ["token_kept", "axis_tokens"], ["token_sum"], "token_sum", keepdims=0),
        node("Slice", ["input_ids", "first", "last", "axis_tokens"], ["left_ids"], "pair_left"),
        node("Slice", ["input_ids", "second", "end", "axis_tokens"], ["right_ids"], "pair_right"),
        node("Mul", ["left_ids", "multiplier"], ["left_scaled"], "pair_scale"),
        node("Add", ["left_scaled", "right_ids"], ["pair_added"], "pair_add"),
        node("Mod", ["pair_added", "buckets"], ["pair_ids"], "pair_hash"),
        node("Gather", ["pair_table", "pair_ids"], ["pair_rows"], "pair_gather", axis=0),
        node("Slice", ["mask_3d", "second", "end", "axis_tokens"], ["pair_mask"], "pair_mask_slice"),
        node("Mul", ["pair_rows", "pair_mask"], ["pair_kept"], "pair_mask"),
        node("ReduceSum", ["pair_kept", "axis_tokens"], ["pair_sum"], "pair_sum", keepdims=0),
        node("Add", ["token_sum", "pair_sum"], ["both_sum"], "sum_both"),
        node("ReduceSum", ["mask", "axis_tokens"], ["count"], "count_tokens", keepdims=1),
        node("Max", ["count", "one"], ["count_positive"], "count_at_least_one"),
        node("Sqrt", ["count_positive"], ["norm"], "norm"),
        node("Div", ["both_sum", "norm"], ["normed"], "normalize"),
        node("Add", ["normed", "bias"], ["logits"], "add_bias"),
    ]


def _single_nodes() -> list[onnx.NodeProto]:
    """Return the nodes of a model without pairs: the same ones, without what makes and adds pair rows."""
    kept = [node for node in _nodes() if not node.name.startswith("pair_") and node.name != "sum_both"]
    for node in kept:
        node.input[:] = ["token_sum" if name == "both_sum" else name for name in node.input]
    return kept


def run_graph(graph: bytes, rows: Sequence[Sequence[int]], batch: int = 64) -> NDArray[np.float32]:
    """Return the logits that ONNX Runtime computes for tokenized texts, padded batch by batch.

    Args:
        graph: The serialized graph.
        rows: Token ids per text.
        batch: Texts per run; at least 1.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    results: list[NDArray[np.float32]] = []
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        width = max(1, *(len(row) for row in part)) if part else 1
        ids = np.zeros((len(part), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(part):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        results.append(session.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0])
    return np.concatenate(results)
