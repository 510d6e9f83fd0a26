"""The transformer's ONNX graph, built from its weights: no exporter, so every node has a name and nothing is left over.

`input_ids, attention_mask (int64, both axes free) -> logits (float32, [batch, 3])`, as the linear model's. Weights lie
in the file in half precision and are widened when it is loaded, which halves the file and costs no time per call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from service.training.graph import IR_VERSION, OPSET

__all__ = ["build_transformer"]

Weights = Mapping[str, NDArray[np.float32]]
_FAR = -1e4  # as in network.py, which needs torch to be read


class _Graph:
    """Nodes and constants in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add a node; its output bears its name."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def integers(self, name: str, *values: int) -> str:
        """Add a constant of integers."""
        self.constants.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
        return name

    def number(self, name: str, value: float) -> str:
        """Add a constant."""
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))
        return name

    def weight(self, name: str, value: NDArray[np.float32]) -> str:
        """Add weights in half precision."""
        half = np.ascontiguousarray(value, dtype=np.float16)
        self.constants.append(numpy_helper.from_array(half, f"{name}_half"))
        return self.node("Cast", [f"{name}_half"], name, to=TensorProto.FLOAT)

    def linear(self, x: str, weights: Weights, key: str, name: str) -> str:
        """Add x times a layer's weights, plus its bias."""
        product = self.node("MatMul", [x, self.weight(f"{name}_w", weights[f"{key}.weight"].T)], f"{name}_matmul")
        return self.node("Add", [product, self.weight(f"{name}_b", weights[f"{key}.bias"])], name)

    def norm(self, x: str, weights: Weights, key: str, name: str) -> str:
        """Add a LayerNorm."""
        scale, shift = (self.weight(f"{name}_{part}", weights[f"{key}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", [x, scale, shift], name, axis=-1, epsilon=1e-5)


def _input(graph: _Graph, weights: Weights, places: NDArray[np.float32]) -> str:
    """Add embedding, convolution and positions, and what the mask becomes; return the name of the sum."""
    graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    graph.node("Unsqueeze", ["mask", graph.integers("axis_2", 2)], "kept")
    graph.node("Sub", [graph.number("one", 1.0), "mask"], "absent")
    graph.node("Mul", ["absent", graph.number("far", _FAR)], "absent_far")
    graph.node("Unsqueeze", ["absent_far", graph.integers("axes_1_2", 1, 2)], "attention_bias")
    graph.node("Unsqueeze", ["absent_far", "axis_2"], "pooling_bias")
    table = graph.weight("token_table", weights["embedding.weight"])
    graph.node("Gather", [table, "input_ids"], "token_rows", axis=0)
    graph.node("Mul", ["token_rows", "kept"], "token_kept")
    graph.node("Transpose", ["token_kept"], "conv_in", perm=[0, 2, 1])
    kernel, shift = (graph.weight(f"conv_{part}", weights[f"conv.{part}"]) for part in ("weight", "bias"))
    graph.node("Conv", ["conv_in", kernel, shift], "conv", kernel_shape=[3], pads=[1, 1])
    graph.node("Relu", [graph.node("Transpose", ["conv"], "conv_out", perm=[0, 2, 1])], "neighbours")
    # As many positions as the batch is wide.
    graph.node("Shape", ["input_ids"], "width", start=1, end=2)
    sliced = [graph.weight("position_table", places), graph.integers("zero", 0), "width", "zero"]
    graph.node("Slice", sliced, "positions")
    return graph.node("Add", [graph.node("Add", ["token_kept", "neighbours"], "mixed"), "positions"], "embedded")


def _block(graph: _Graph, weights: Weights, x: str, number: int, heads: int) -> str:
    """Add a block after x."""
    at, key = f"block{number}", f"blocks.{number}"
    width = weights[f"{key}.norm1.weight"].shape[0]
    split = graph.integers(f"{at}_split", 0, 0, 3, heads, width // heads)
    qkv = graph.linear(graph.norm(x, weights, f"{key}.norm1", f"{at}_norm1"), weights, f"{key}.qkv", f"{at}_qkv")
    parts = graph.node("Reshape", [qkv, split], f"{at}_parts")
    picked = {
        name: graph.node("Gather", [parts, graph.integers(f"{at}_{name}_at", index)], f"{at}_{name}_one", axis=2)
        for index, name in enumerate("qkv")
    }
    flat = graph.integers(f"{at}_flat", 0, 0, heads, width // heads)
    turned = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}
    for name, order in turned.items():
        plain = graph.node("Reshape", [picked[name], flat], f"{at}_{name}_flat")
        graph.node("Transpose", [plain], f"{at}_{name}", perm=order)
    product = graph.node("MatMul", [f"{at}_q", f"{at}_k"], f"{at}_scores")
    scaled = graph.node("Mul", [product, graph.number(f"{at}_scale", (width // heads) ** -0.5)], f"{at}_scaled")
    biased = graph.node("Add", [scaled, "attention_bias"], f"{at}_biased")
    attention = graph.node("Softmax", [biased], f"{at}_attention", axis=-1)
    mixed = graph.node("MatMul", [attention, f"{at}_v"], f"{at}_mixed")
    back = graph.node("Transpose", [mixed], f"{at}_back", perm=[0, 2, 1, 3])
    joined = graph.node("Reshape", [back, graph.integers(f"{at}_width", 0, 0, width)], f"{at}_joined")
    x = graph.node("Add", [x, graph.linear(joined, weights, f"{key}.out", f"{at}_out")], f"{at}_middle")
    normed = graph.norm(x, weights, f"{key}.norm2", f"{at}_norm2")
    inner = graph.node("Relu", [graph.linear(normed, weights, f"{key}.up", f"{at}_up")], f"{at}_inner")
    return graph.node("Add", [x, graph.linear(inner, weights, f"{key}.down", f"{at}_down")], f"{at}_end")


def _pooled(graph: _Graph, weights: Weights, x: str) -> None:
    """Add pooling and head."""
    x = graph.norm(x, weights, "norm", "last_norm")
    tokens = graph.integers("axis_1", 1)
    total = graph.node("ReduceSum", [graph.node("Mul", [x, "kept"], "kept_rows"), tokens], "total", keepdims=0)
    graph.node("ReduceSum", ["mask", tokens], "count", keepdims=1)
    mean = graph.node("Div", [total, graph.node("Max", ["count", "one"], "count_positive")], "mean")
    lowered = graph.node("Add", [x, "pooling_bias"], "lowered")
    most = graph.node("ReduceMax", [lowered], "most", axes=[1], keepdims=0)
    # A text without tokens has one masked slot, whose maximum means nothing.
    most = graph.node("Mul", [most, graph.node("Min", ["count", "one"], "any")], "most_kept")
    pooled = graph.node("Concat", [mean, most], "pooled", axis=1)
    graph.linear(pooled, weights, "head", "logits")


def build_transformer(weights: Weights, places: NDArray[np.float32], *, layers: int, heads: int) -> bytes:
    """Return the serialized graph; the same weights give the same bytes.

    Args:
        weights: By the names of `network.Encoder.state_dict`.
        places: What is added for each position, [most tokens, width].
        layers: Blocks.
        heads: Heads of the attention.
    """
    graph = _Graph()
    x = _input(graph, weights, places)
    for number in range(layers):
        x = _block(graph, weights, x, number, heads)
    _pooled(graph, weights, x)
    both = ["batch", "tokens"]
    built = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "sentiment_transformer",
            [helper.make_tensor_value_info(name, TensorProto.INT64, both) for name in ("input_ids", "attention_mask")],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(weights["head.bias"])])],
            graph.constants,
        ),
        producer_name="inferdeck",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(built, full_check=True)
    return bytes(built.SerializeToString())
