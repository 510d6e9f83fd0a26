"""From labelled rows to a fitted, checked model: the part of training that needs scikit-learn, onnx and tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn
from tokenizers import Tokenizer

from service.artifacts import LABELS, Progress
from service.text.contract import to_contract
from service.training.corpus import Corpus, Row
from service.training.figures import Figures, figures_by_language
from service.training.graph import build_graph, run_graph
from service.training.linear import Linear, feature_matrix, fit_linear, fit_temperature, softmax
from service.training.reference import reference_file
from service.training.tokens import (
    MAX_TOKENS,
    PAD,
    UNKNOWN,
    VOCABULARY,
    Piece,
    build_tokenizer,
    encode,
    encode_whole,
)

__all__ = [
    "ALPHAS",
    "KNOWN_ERRORS",
    "NGRAMS",
    "Fitted",
    "Prepared",
    "Single",
    "dev_logits",
    "fit_model",
    "prepare",
    "refuse_thin",
]

ALPHAS = (3e-5, 5e-5, 1e-4)
"""Penalties tried; the best macro-F1 on dev wins. Around the optimum of a wider search (5e-6 to 2e-4), also on dev."""

NGRAMS = (1, 2)
"""Fewest and most neighbours that are a feature: single tokens, and hashed pairs."""

# Made-up sentences, none from the corpora, with what a person would answer. The model gets several of them wrong; the
# model card says which, so that nobody has to find out.
KNOWN_ERRORS = (
    ("一点都不差", "positive"),
    ("包裹周二到的", "neutral"),
    ("不是不好，只是太贵", "negative"),
    ("great phone, terrible battery", "neutral"),
    ("not bad at all", "positive"),
    ("I cannot say that it is good", "negative"),
)


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what was measured of it.

    Attributes:
        graph: The ONNX graph, serialized.
        tokenizer: The tokenizer file.
        vocabulary: Entries of the tokenizer.
        pad_id: Id for padding.
        max_tokens: Where the tokenizer cuts.
        temperature: Fitted on dev.
        alpha: Chosen penalty.
        dev_macro_f1: Macro-F1 on dev by penalty.
        dev: Figures on dev, by language.
        test: Figures on test, by language; computed once, after everything was chosen.
        max_logit_difference: Largest distance between the graph's logits and scikit-learn's, over dev and test.
        unknown_token_ratio: Share of unknown tokens in test.
        known_errors: The made-up sentences with what was expected and answered.
        single: The smaller model.
        reference: What inputs looked like in training, for drift; a file.
    """

    graph: bytes
    tokenizer: bytes
    vocabulary: int
    pad_id: int
    max_tokens: int
    temperature: float
    alpha: float
    dev_macro_f1: dict[str, float]
    dev: dict[str, Figures]
    test: dict[str, Figures]
    max_logit_difference: float
    unknown_token_ratio: float
    known_errors: list[dict[str, str | float]]
    single: Single
    reference: bytes


@dataclass(frozen=True)
class Single:
    """The smaller model beside it, of single tokens alone: what a model repository serves as version 1.

    Attributes:
        graph: The ONNX graph, serialized.
        temperature: Fitted on dev.
        test: Figures on test, by language.
    """

    graph: bytes
    temperature: float
    test: dict[str, Figures]


@dataclass(frozen=True)
class Prepared:
    """What training needs of the texts, each step of which may have been done by an earlier process.

    Attributes:
        texts: Cleaned texts of train, dev and test.
        tokenizer: Learnt from those of train.
        pieces: Their windows.
    """

    texts: tuple[list[str], list[str], list[str]]
    tokenizer: Tokenizer
    pieces: tuple[list[Piece], list[Piece], list[Piece]]


@dataclass(frozen=True)
class _Part:
    """Texts of one split: rows of the matrix are their windows, of which a usual text has one."""

    ids: list[list[int]]
    owners: NDArray[np.int64]
    new: NDArray[np.float64]
    matrix: csr_matrix
    labels: NDArray[np.int64]
    languages: list[str]

    @property
    def row_labels(self) -> NDArray[np.int64]:
        return self.labels[self.owners]

    def of_texts(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logits of texts from those of rows, as serving merges them (service/long_texts.py)."""
        weights = np.maximum(self.new, 1.0)[:, None]
        sums = np.zeros((len(self.labels), logits.shape[1]))
        np.add.at(sums, self.owners, logits * weights)
        return np.asarray(sums / np.bincount(self.owners, weights[:, 0], len(self.labels))[:, None])

    def figures(self, logits: NDArray[np.float64], temperature: float) -> dict[str, Figures]:
        return figures_by_language(softmax(logits, temperature), self.labels, self.languages, LABELS)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep BLAS, OpenMP and the tokenizer on one thread: sums in another order are other weights."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def _features(rows: Sequence[Sequence[int]], vocabulary: int, ngrams: tuple[int, int]) -> csr_matrix:
    """Return the features; without pairs the columns end with the vocabulary.

    Raises:
        ValueError: If the graph cannot compute such features.
    """
    if ngrams not in ((1, 1), (1, 2)):
        raise ValueError(f"n-grams of {ngrams[0]} to {ngrams[1]} tokens: the graph computes 1 to 1 and 1 to 2")
    matrix = feature_matrix(rows, vocabulary)
    return matrix if ngrams == NGRAMS else matrix[:, :vocabulary]


def _prepare(rows: Sequence[Row], pieces: Sequence[Piece], vocabulary: int, ngrams: tuple[int, int]) -> _Part:
    ids = [piece.ids for piece in pieces]
    return _Part(
        ids,
        np.array([piece.text for piece in pieces], dtype=np.int64),
        np.array([piece.new for piece in pieces], dtype=np.float64),
        _features(ids, vocabulary, ngrams),
        np.array([row.label for row in rows], dtype=np.int64),
        [row.language for row in rows],
    )


def _choose(
    train: _Part, dev: _Part, alphas: Sequence[float], seed: int, progress: Progress
) -> tuple[Linear, dict[str, float]]:
    """Return the model with the best macro-F1 on dev, and that figure for each penalty."""
    tried: dict[str, float] = {}
    best: tuple[float, Linear] | None = None
    for number, alpha in enumerate(alphas):
        progress("fitting", 0.5 + 0.35 * number / len(alphas))
        model = fit_linear(train.matrix, train.row_labels, alpha, seed)
        score = dev.figures(dev.of_texts(model.logits(dev.matrix)), 1.0)["all"]["macro_f1"]
        tried[f"{alpha:g}"] = score
        if best is None or score > best[0]:
            best = (score, model)
    if best is None:
        raise ValueError("no penalty to try")
    return best[1], tried


def prepare(corpus: Corpus, progress: Progress, vocabulary: int = VOCABULARY) -> Prepared:
    """Return the corpus' texts cleaned, a tokenizer learnt from those of train, and their windows.

    Texts are put into the form that the contract lets through, since that is all the service will ever show the model.

    Args:
        corpus: Reviews, split.
        progress: Called with each stage and the share done.
        vocabulary: Most entries of the tokenizer.
    """
    progress("cleaning", 0.08)
    train, dev, test = (
        [to_contract(row.text, None) for row in rows] for rows in (corpus.train, corpus.dev, corpus.test)
    )
    progress("tokenizer", 0.15)
    tokenizer = build_tokenizer(train, vocabulary)
    progress("features", 0.3)
    pieces = (encode_whole(tokenizer, train), encode_whole(tokenizer, dev), encode_whole(tokenizer, test))
    return Prepared((train, dev, test), tokenizer, pieces)


def fit_model(
    corpus: Corpus,
    progress: Progress,
    *,
    alphas: Sequence[float] = ALPHAS,
    vocabulary: int = VOCABULARY,
    ngrams: tuple[int, int] = NGRAMS,
    seed: int = 0,
    prepared: Prepared | None = None,
) -> Fitted:
    """Return the model fitted on the corpus; the same corpus and seed give the same bytes.

    Args:
        corpus: Reviews, split.
        progress: Called with each stage and the share done.
        alphas: Penalties to try on dev.
        vocabulary: Most entries of the tokenizer.
        ngrams: Fewest and most neighbouring tokens that are a feature.
        seed: Order of the rows in the descent.
        prepared: What `prepare` made of this corpus before.

    Raises:
        ValueError: If there is no penalty, no text, a class without texts, or no such features.
    """
    refuse_thin(corpus)
    with _one_thread():
        found = prepare(corpus, progress, vocabulary) if prepared is None else prepared
        tokenizer, size = found.tokenizer, found.tokenizer.get_vocab_size()
        train = _prepare(corpus.train, found.pieces[0], size, ngrams)
        dev = _prepare(corpus.dev, found.pieces[1], size, ngrams)
        model, tried = _choose(train, dev, alphas, seed, progress)
        dev_rows = model.logits(dev.matrix)
        dev_logits = dev.of_texts(dev_rows)
        temperature = fit_temperature(dev_logits, dev.labels)
        progress("exporting", 0.85)
        graph = build_graph(model, size)
        progress("reporting", 0.9)
        # From here on nothing is chosen any more: this is the one time that test is looked at.
        test = _prepare(corpus.test, found.pieces[2], size, ngrams)
        test_rows = model.logits(test.matrix)
        test_logits = test.of_texts(test_rows)
        difference = max(
            float(np.abs(run_graph(graph, part.ids) - logits).max())
            for part, logits in ((dev, dev_rows), (test, test_rows))
        )
        return Fitted(
            graph=graph,
            tokenizer=tokenizer.to_str(pretty=False).encode("utf-8"),
            vocabulary=size,
            pad_id=_id_of(tokenizer, PAD),
            max_tokens=MAX_TOKENS,
            temperature=temperature,
            alpha=model.alpha,
            dev_macro_f1=tried,
            dev=dev.figures(dev_logits, temperature),
            test=test.figures(test_logits, temperature),
            max_logit_difference=difference,
            unknown_token_ratio=_share_of(test.ids, _id_of(tokenizer, UNKNOWN)),
            known_errors=_answers(model, tokenizer, temperature, ngrams),
            reference=reference_file(found.texts[0], tokenizer, softmax(dev_logits, temperature).max(axis=1), seed),
            single=_fit_single(train, dev, test, vocabulary=size, alpha=model.alpha, seed=seed),
        )


def dev_logits(
    corpus: Corpus, prepared: Prepared, alpha: float, ngrams: tuple[int, int] = NGRAMS, seed: int = 0
) -> tuple[Linear, NDArray[np.float64]]:
    """Return a model fitted with one penalty, and its logits of the texts of dev: what a search chooses by.

    Args:
        corpus: Reviews, split.
        prepared: What `prepare` made of them.
        alpha: Strength of the L2 penalty.
        ngrams: Fewest and most neighbouring tokens that are a feature.
        seed: Order of the rows in the descent.

    Raises:
        ValueError: As `fit_model`.
    """
    refuse_thin(corpus)
    size = prepared.tokenizer.get_vocab_size()
    with _one_thread():
        train, dev = (
            _prepare(rows, pieces, size, ngrams)
            for rows, pieces in ((corpus.train, prepared.pieces[0]), (corpus.dev, prepared.pieces[1]))
        )
        model = fit_linear(train.matrix, train.row_labels, alpha, seed)
        return model, dev.of_texts(model.logits(dev.matrix))


def refuse_thin(corpus: Corpus) -> None:
    """Refuse what no model can be learnt from, or chosen and measured by.

    Args:
        corpus: Reviews, split.

    Raises:
        ValueError: Naming what is missing.
    """
    for name, rows in (("train", corpus.train), ("dev", corpus.dev), ("test", corpus.test)):
        if not rows:
            raise ValueError(f"there are no texts to {'learn from' if name == 'train' else 'measure by'} ({name})")
    missing = [LABELS[label] for label in range(len(LABELS)) if all(row.label != label for row in corpus.train)]
    if missing:
        raise ValueError(f"there is no text of class {', '.join(missing)} to learn from")


def _fit_single(train: _Part, dev: _Part, test: _Part, *, vocabulary: int, alpha: float, seed: int) -> Single:
    """Fit the model of single tokens with the penalty that won for the other; nothing is chosen by its figures."""
    model = fit_linear(train.matrix[:, :vocabulary], train.row_labels, alpha, seed)
    temperature = fit_temperature(dev.of_texts(model.logits(dev.matrix[:, :vocabulary])), dev.labels)
    figures = test.figures(test.of_texts(model.logits(test.matrix[:, :vocabulary])), temperature)
    return Single(build_graph(model, vocabulary), temperature, figures)


def _id_of(tokenizer: Tokenizer, token: str) -> int:
    identity: int | None = tokenizer.token_to_id(token)
    if identity is None:
        raise ValueError(f"the tokenizer has no {token}")
    return identity


def _share_of(rows: Sequence[Sequence[int]], identity: int) -> float:
    total = sum(len(row) for row in rows)
    return sum(row.count(identity) for row in rows) / total if total else 0.0


def _answers(
    model: Linear, tokenizer: Tokenizer, temperature: float, ngrams: tuple[int, int]
) -> list[dict[str, str | float]]:
    texts = [to_contract(text) for text, _expected in KNOWN_ERRORS]
    matrix = _features(encode(tokenizer, texts), tokenizer.get_vocab_size(), ngrams)
    probabilities = softmax(model.logits(matrix), temperature)
    return [
        {
            "text": text,
            "expected": expected,
            "answered": LABELS[int(row.argmax())],
            "confidence": round(float(row.max()), 4),
        }
        for (text, expected), row in zip(KNOWN_ERRORS, probabilities, strict=True)
    ]
