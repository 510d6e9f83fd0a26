"""Figures of a classifier on labelled texts: accuracy, F1 per class, and how far its confidence is from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassFigures", "Figures", "calibration_error", "class_figures", "figures_by_language", "macro_f1"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ClassFigures(TypedDict):
    """Figures of one class; None where the class has no texts or was never answered."""

    texts: int
    precision: float | None
    recall: float | None
    f1: float | None


class Figures(TypedDict):
    """Figures of a set of texts; ratios 0..1."""

    texts: int
    accuracy: float
    macro_f1: float
    calibration_error: float
    mean_confidence: float
    classes: dict[str, ClassFigures]


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def class_figures(predicted: Ints, truth: Ints, names: Sequence[str]) -> dict[str, ClassFigures]:
    """Return precision, recall and F1 per class.

    Args:
        predicted: Answered class per text.
        truth: Labelled class per text.
        names: Class names in index order.
    """
    result: dict[str, ClassFigures] = {}
    for index, name in enumerate(names):
        hits = int(((predicted == index) & (truth == index)).sum())
        labelled, answered = int((truth == index).sum()), int((predicted == index).sum())
        f1 = _ratio(2 * hits, labelled + answered) if labelled else None
        result[name] = {
            "texts": labelled,
            "precision": _ratio(hits, answered),
            "recall": _ratio(hits, labelled),
            "f1": f1,
        }
    return result


def macro_f1(classes: dict[str, ClassFigures]) -> float:
    """Return the mean F1 of the classes that have texts; 0.0 when none has."""
    scores = [figures["f1"] for figures in classes.values() if figures["f1"] is not None]
    return sum(scores) / len(scores) if scores else 0.0


def calibration_error(confidence: Floats, correct: NDArray[np.bool_], bins: int = 15) -> float:
    """Return the expected calibration error: mean distance of confidence from accuracy, weighted by texts per bin.

    Args:
        confidence: Probability of the answered class per text, 0..1.
        correct: Whether that answer was right.
        bins: Bins of equal width; 15 as in Guo et al. 2017.
    """
    if not len(confidence):
        return 0.0
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    error = 0.0
    for index in range(bins):
        inside = which == index
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - correct[inside].mean())
    return float(error)


def _figures(probabilities: Floats, truth: Ints, names: Sequence[str]) -> Figures:
    predicted = probabilities.argmax(axis=1).astype(np.int64)
    confidence = probabilities.max(axis=1)
    classes = class_figures(predicted, truth, names)
    return {
        "texts": len(truth),
        "accuracy": float((predicted == truth).mean()),
        "macro_f1": macro_f1(classes),
        "calibration_error": calibration_error(confidence, predicted == truth),
        "mean_confidence": float(confidence.mean()),
        "classes": classes,
    }


def figures_by_language(
    probabilities: Floats, truth: Ints, languages: Sequence[str], names: Sequence[str]
) -> dict[str, Figures]:
    """Return the figures of all texts ("all") and of each language.

    Args:
        probabilities: Shape (texts, classes).
        truth: Labelled class per text.
        languages: Language per text.
        names: Class names in index order.
    """
    tags = np.asarray(languages)
    result = {"all": _figures(probabilities, truth, names)}
    for language in sorted(set(languages)):
        mine = tags == language
        result[language] = _figures(probabilities[mine], truth[mine], names)
    return result
