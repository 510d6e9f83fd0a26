from __future__ import annotations

import os

import pytest

from service.training.corpus import Corpus, Row, load_corpus
from service.training.pipeline import KNOWN_ERRORS, fit_model


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Return three classes, each told by one word."""
    words = (("bad", "坏"), ("flat", "平"), ("good", "好"))
    return load_corpus(
        Row(f"{words[label][chinese]} item {number}", label, ("en", "zh")[chinese])
        for number in range(60)
        for label in range(3)
        for chinese in range(2)
    )


def silent(_stage: str, _share: float) -> None:
    """Show no progress."""


def test_the_best_penalty_on_dev_is_taken(corpus: Corpus) -> None:
    """A penalty that flattens everything loses to one that lets the model learn, in whatever order they come."""
    for alphas in ((1e-4, 1e3), (1e3, 1e-4)):
        fitted = fit_model(corpus, silent, alphas=alphas, vocabulary=200)

        assert 1e-4 == fitted.alpha
        assert fitted.dev_macro_f1["0.0001"] > fitted.dev_macro_f1["1000"]


def test_known_errors_are_answered_not_assumed(corpus: Corpus) -> None:
    """Each made-up sentence carries what this model really answered, with a confidence."""
    answers = fit_model(corpus, silent, alphas=(1e-4,), vocabulary=200).known_errors

    assert [text for text, _expected in KNOWN_ERRORS] == [answer["text"] for answer in answers]
    assert all(1 / 3 <= float(answer["confidence"]) <= 1 for answer in answers)


@pytest.mark.parametrize("before", [None, "true"])
def test_the_environment_is_left_as_it_was(corpus: Corpus, monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    """The switch for the tokenizer's threads is put back."""
    if before is None:
        monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    else:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", before)

    fit_model(corpus, silent, alphas=(1e-4,), vocabulary=200)

    assert before == os.environ.get("TOKENIZERS_PARALLELISM")


def test_nothing_to_try_is_an_error(corpus: Corpus) -> None:
    """Without a penalty there is no model to choose."""
    with pytest.raises(ValueError, match="no penalty"):
        fit_model(corpus, silent, alphas=(), vocabulary=200)
