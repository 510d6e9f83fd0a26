from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.training.graph import IR_VERSION, OPSET, build_graph, run_graph
from service.training.linear import BUCKETS, Linear, feature_matrix

VOCABULARY = 50
RNG = np.random.default_rng(7)
MODEL = Linear(RNG.normal(size=(3, VOCABULARY + BUCKETS)), RNG.normal(size=3), 1e-4)
GRAPH = build_graph(MODEL, VOCABULARY)
ROWS = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=30), min_size=1, max_size=6)


@given(ROWS)
@settings(max_examples=50)
def test_the_graph_computes_what_the_model_does(rows: list[list[int]]) -> None:
    """Logits of the graph equal the linear model's, for any batch, empty texts included."""
    expected = MODEL.logits(feature_matrix(rows, VOCABULARY))

    assert np.allclose(expected, run_graph(GRAPH, rows), atol=1e-4)


def test_padding_changes_nothing() -> None:
    """A text has the same logits alone and beside a longer one."""
    alone = run_graph(GRAPH, [[3, 4, 5]])
    beside = run_graph(GRAPH, [[3, 4, 5], list(range(40))])

    assert np.array_equal(alone[0], beside[0])


def test_the_graph_is_named_versioned_and_free_in_both_axes() -> None:
    """Every node has a name of its own, versions are the portable ones, batch and length are symbols."""
    model = onnx.load_from_string(GRAPH)
    names = [node.name for node in model.graph.node]

    assert len(names) == len(set(names))
    assert all(names)
    assert (IR_VERSION, OPSET) == (model.ir_version, model.opset_import[0].version)
    assert [["batch", "tokens"]] * 2 == [
        [axis.dim_param for axis in value.type.tensor_type.shape.dim] for value in model.graph.input
    ]


def test_the_same_weights_give_the_same_bytes() -> None:
    """Nothing of time or machine is in the file."""
    assert GRAPH == build_graph(MODEL, VOCABULARY)


def test_an_id_beyond_the_vocabulary_is_an_error_of_the_runtime() -> None:
    """Gather does not clip: this is why the service must check ids."""
    with pytest.raises(Exception, match="indices element out of data bounds"):
        run_graph(GRAPH, [[VOCABULARY]])


@given(ROWS)
@settings(max_examples=30)
def test_a_model_of_single_tokens_has_a_graph_without_pairs(rows: list[list[int]]) -> None:
    """With as many columns as the vocabulary the graph looks at single tokens, and computes what the model does."""
    model = Linear(MODEL.weights[:, :VOCABULARY], MODEL.bias, 1e-4)
    graph = build_graph(model, VOCABULARY)

    assert not [node.name for node in onnx.load_from_string(graph).graph.node if "pair" in node.name]
    assert len(graph) < len(GRAPH) / 100
    expected = model.logits(feature_matrix(rows, VOCABULARY)[:, :VOCABULARY])
    assert np.allclose(expected, run_graph(graph, rows), atol=1e-4)
