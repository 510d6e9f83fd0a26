from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from service.training.figures import calibration_error, class_figures, figures_by_language, macro_f1

NAMES = ("negative", "neutral", "positive")
PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60)


@given(PAIRS)
def test_f1_is_what_scikit_learn_says(pairs: list[tuple[int, int]]) -> None:
    """Macro-F1 over the labelled classes equals scikit-learn's."""
    predicted, truth = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    present = sorted(set(truth.tolist()))
    expected = f1_score(truth, predicted, labels=present, average="macro", zero_division=0.0)

    assert expected == pytest.approx(macro_f1(class_figures(predicted, truth, NAMES)))


def test_a_class_without_texts_has_no_f1() -> None:
    """Absence is None, not 0: the Chinese neutral class must not pull the mean down."""
    figures = class_figures(np.array([0, 2]), np.array([0, 2]), NAMES)

    assert {"texts": 0, "precision": None, "recall": None, "f1": None} == figures["neutral"]
    assert 1.0 == macro_f1(figures)


def test_calibration_error_is_the_weighted_distance() -> None:
    """Ten answers at 0.9 of which 6 are right, and ten at 0.5 of which 5 are right: half of 0.3."""
    confidence = np.array([0.9] * 10 + [0.5] * 10)
    correct = np.array([True] * 6 + [False] * 4 + [True] * 5 + [False] * 5)

    assert 0.15 == pytest.approx(calibration_error(confidence, correct))


def test_calibration_takes_the_edges() -> None:
    """Confidence of exactly 0 or 1 falls into a bin, and no answers are no error."""
    assert 0.5 == pytest.approx(calibration_error(np.array([0.0, 1.0]), np.array([False, False])))
    assert 0.0 == calibration_error(np.array([]), np.array([], dtype=bool))


def test_figures_are_told_per_language() -> None:
    """Each language is scored on its own texts, and all together once."""
    probabilities = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.2, 0.6, 0.2]])

    figures = figures_by_language(probabilities, np.array([0, 0, 1]), ["zh", "zh", "en"], NAMES)

    assert {"all": 3, "en": 1, "zh": 2} == {name: one["texts"] for name, one in figures.items()}
    assert {"all": 2 / 3, "en": 1.0, "zh": 0.5} == {name: one["accuracy"] for name, one in figures.items()}
