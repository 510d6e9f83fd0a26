"""The linear model: what it sees of a text, how it is fitted, and how its confidence is made honest.

Features are counts of tokens and of hashed pairs of neighbouring tokens, divided by sqrt(number of tokens): the only
usual normalisation that a sum of looked-up rows can express, so that the ONNX graph computes the very same numbers. The
inverse document frequency is a factor per column, hence it folds into the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

__all__ = [
    "BUCKETS",
    "EPOCHS",
    "MULTIPLIER",
    "Linear",
    "feature_matrix",
    "fit_linear",
    "fit_temperature",
    "pair_ids",
    "softmax",
]

BUCKETS = 131_072
"""Rows of the table of hashed pairs."""

MULTIPLIER = 31_337
"""Pair (a, b) goes to row (a * MULTIPLIER + b) mod BUCKETS, in the graph as here; int64 is wide enough for it."""

EPOCHS = 30
"""Passes over the training texts; with 20, macro-F1 on dev was 0.001 to 0.003 lower."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A fitted model.

    Attributes:
        weights: One row per class over all columns, idf folded in.
        bias: One value per class.
        alpha: Strength of the L2 penalty that was used.
    """

    weights: Floats
    bias: Floats
    alpha: float

    def logits(self, matrix: csr_matrix) -> Floats:
        """Return one row of logits per row of *matrix*."""
        return np.asarray(matrix @ self.weights.T + self.bias, dtype=np.float64)


def pair_ids(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the hashed row of each pair of neighbours; one fewer than there are tokens."""
    return np.asarray((ids[:-1] * MULTIPLIER + ids[1:]) % BUCKETS, dtype=np.int64)


def feature_matrix(rows: Sequence[Sequence[int]], vocabulary: int) -> csr_matrix:
    """Return the features of tokenized texts: shape (texts, vocabulary + BUCKETS).

    Args:
        rows: Token ids per text; an empty text gives an empty row.
        vocabulary: Entries of the tokenizer.
    """
    columns: list[NDArray[np.int64]] = []
    values: list[Floats] = []
    lengths = np.zeros(len(rows) + 1, dtype=np.int64)
    for number, row in enumerate(rows):
        ids = np.asarray(row, dtype=np.int64)
        both = np.concatenate([ids, pair_ids(ids) + vocabulary])
        columns.append(both)
        values.append(np.full(len(both), 1 / math.sqrt(max(1, len(ids)))))
        lengths[number + 1] = len(both)
    matrix = csr_matrix(
        (np.concatenate(values), np.concatenate(columns), np.cumsum(lengths)),
        shape=(len(rows), vocabulary + BUCKETS),
    )
    matrix.sum_duplicates()
    return matrix


def fit_linear(matrix: csr_matrix, labels: NDArray[np.int64], alpha: float, seed: int) -> Linear:
    """Return one logistic regression per class against the rest, fitted by stochastic gradient descent.

    Args:
        matrix: Features without idf.
        labels: Class index per row; all three must occur.
        alpha: Strength of the L2 penalty.
        seed: Order of the rows; the same seed gives the same weights on one thread.
    """
    documents = np.bincount(matrix.indices, minlength=matrix.shape[1])
    # The root of the usual idf: the whole of it makes rare pairs so heavy that the descent needs a temperature of 5 to
    # 10 afterwards and loses one to two points of F1 on dev.
    idf = np.sqrt(np.log((1 + matrix.shape[0]) / (1 + documents)) + 1)
    scaled = matrix.copy()
    scaled.data = scaled.data * idf[scaled.indices]
    # A fixed number of passes: a stop by tolerance moves with the last bit of the loss.
    model = SGDClassifier(loss="log_loss", alpha=alpha, max_iter=EPOCHS, tol=None, random_state=seed)
    model.fit(scaled, labels)
    return Linear(np.asarray(model.coef_ * idf), np.asarray(model.intercept_), alpha)


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Return probabilities over the last axis.

    Args:
        logits: Any finite values.
        temperature: Above 0; larger is less sure.
    """
    scaled = logits / temperature
    raised = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def fit_temperature(logits: Floats, labels: NDArray[np.int64]) -> float:
    """Return the temperature with the smallest negative log likelihood (Guo et al. 2017, "On Calibration").

    Args:
        logits: Logits of texts that the weights were not fitted on, shape (texts, classes).
        labels: Their true class indices.
    """

    def loss(log_temperature: float) -> float:
        probabilities = softmax(logits, math.exp(log_temperature))
        return float(-np.log(probabilities[np.arange(len(labels)), labels] + 1e-12).mean())

    # Between a tenth and ten: outside of that a model is broken, not badly calibrated.
    found = minimize_scalar(loss, bounds=(math.log(0.1), math.log(10)), method="bounded")
    return round(math.exp(float(found.x)), 4)
