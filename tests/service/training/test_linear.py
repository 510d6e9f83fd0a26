from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier

from service.training.linear import BUCKETS, EPOCHS, feature_matrix, fit_linear, fit_temperature, pair_ids, softmax


def test_features_are_counts_over_the_root_of_the_length() -> None:
    """A token that occurs twice among four has 2 / sqrt(4); pairs count beside tokens; an empty text has nothing."""
    matrix = feature_matrix([[5, 7, 5, 9], []], vocabulary=10).toarray()

    assert (2, 10 + BUCKETS) == matrix.shape
    assert [1.0, 0.5, 0.5] == [matrix[0, 5], matrix[0, 7], matrix[0, 9]]
    assert 3.5 == matrix[0].sum()
    assert 0.0 == matrix[1].sum()


@given(st.lists(st.integers(0, 2**31), max_size=20))
def test_pairs_stay_inside_their_table(ids: list[int]) -> None:
    """Every pair of neighbours has one row of the table, and only its own order gives it."""
    hashed = pair_ids(np.array(ids, dtype=np.int64))

    assert max(0, len(ids) - 1) == len(hashed)
    assert all(0 <= value < BUCKETS for value in hashed)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=5), st.floats(0.1, 10))
def test_softmax_is_a_distribution_that_keeps_the_order(logits: list[float], temperature: float) -> None:
    """Probabilities add up to one, and the largest logit keeps the largest share at every temperature."""
    probabilities = softmax(np.array(logits), temperature)

    assert 1.0 == pytest.approx(float(probabilities.sum()))
    assert float(probabilities.max()) == probabilities[int(np.argmax(logits))]


def test_the_temperature_undoes_overconfidence() -> None:
    """Logits that are three times too large are found to need a temperature of about three."""
    rng = np.random.default_rng(1)
    honest = rng.normal(size=(4000, 3)) * 2
    labels = np.array([rng.choice(3, p=row) for row in softmax(honest)])

    assert 3.0 == pytest.approx(fit_temperature(honest * 3, labels), rel=0.1)


def test_idf_is_folded_into_the_weights() -> None:
    """On plain features the fitted model answers as a classifier that saw features with idf."""
    rows = [[n % 7, (n * 3) % 7, n % 5] for n in range(60)]
    labels = np.array([n % 3 for n in range(60)])
    plain = feature_matrix(rows, 7)
    idf = np.sqrt(np.log(61 / (1 + np.asarray((plain > 0).sum(axis=0)).ravel())) + 1)
    peer = SGDClassifier(loss="log_loss", alpha=1e-4, max_iter=EPOCHS, tol=None, random_state=0)
    peer.fit(plain.multiply(idf).tocsr(), labels)

    logits = fit_linear(plain, labels, 1e-4, 0).logits(plain)

    assert np.allclose(peer.decision_function(plain.multiply(idf).tocsr()), logits, atol=1e-9)


def test_fitting_repeats_itself() -> None:
    """The same rows, penalty and seed give the same weights to the last bit; the seed alone changes them."""
    rows = [[n % 7, (n * 3) % 7, n % 5] for n in range(60)]
    labels = np.array([n % 3 for n in range(60)])
    matrix = feature_matrix(rows, 7)

    first, again, other = (fit_linear(matrix, labels, 1e-4, seed) for seed in (0, 0, 1))

    assert np.array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights, other.weights)
    assert math.isfinite(float(first.logits(matrix).sum()))
