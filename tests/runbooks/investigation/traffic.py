"""Traffic as feature records, drawn by a seed, into which a test plants a change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exporters.drift.reference import Reference
from exporters.feature_records import Codes, FeatureRecords, derived

START = 1_700_000_000.0
"""Unix seconds of the first record."""
HOURS = 24


def drawn(rng: np.random.Generator, words: tuple[str, ...], shares: tuple[float, ...], count: int) -> Codes:
    """Return a column of words by their shares."""
    return Codes(rng.choice(len(words), count, p=shares).astype(np.int16), words)


def numbers(rng: np.random.Generator, count: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return features as a review service has them: lengths with a long tail, ratios that are mostly nothing or all."""
    chinese = rng.random(count) < 0.5
    drawn_numbers = {
        "input_length": rng.lognormal(4, 0.8, count).round(),
        "tokens": rng.lognormal(3, 0.8, count).round(),
        "unknown_ratio": rng.beta(1, 20, count),
        "non_ascii_ratio": np.where(chinese, rng.beta(20, 2, count), 0.0),
        "digit_ratio": np.where(rng.random(count) < 0.7, 0.0, rng.beta(1, 20, count)),
        "mark_ratio": rng.beta(2, 10, count),
        "confidence": rng.beta(5, 2, count),
    }
    return {name: values.astype(np.float32) for name, values in drawn_numbers.items()}


def traffic(seed: int, count: int = 12_000) -> FeatureRecords:
    """Return a day of traffic in which nothing happens."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, HOURS * 3600, count)) + START
    found = numbers(rng, count)
    words = {
        "device_type": drawn(rng, ("mobile", "web", "app"), (0.5, 0.3, 0.2), count),
        "client_release": drawn(rng, tuple(f"5.{n}" for n in range(8)), (0.2, 0.2, *(0.1,) * 6), count),
        "agent_family": drawn(rng, ("okhttp", "chrome", "python"), (0.4, 0.4, 0.2), count),
        "model_version": drawn(rng, ("v1",), (1.0,), count),
        "language": Codes((found["non_ascii_ratio"] > 0.2).astype(np.int16), ("en", "zh")),
        "product_line": drawn(rng, ("books", "phones", "food"), (0.4, 0.3, 0.3), count),
        "build": drawn(rng, ("b1",), (1.0,), count),
    }
    return FeatureRecords(at, found, words | derived(at, found["input_length"]))


def training(seed: int, count: int = 10_000) -> Reference:
    """Return the training's distributions, of the same kind."""
    found = numbers(np.random.default_rng(seed), count)
    return Reference({name: values.astype(np.float64) for name, values in found.items()})


def of_word(records: FeatureRecords, dimension: str, word: str) -> npt.NDArray[np.bool_]:
    """Return which records have a word."""
    codes = records.words[dimension]
    return np.asarray(codes.places == codes.words.index(word))


def after(records: FeatureRecords, hours: float) -> npt.NDArray[np.bool_]:
    """Return which records came later than so many hours."""
    return np.asarray(records.at >= START + hours * 3600)


def with_word(records: FeatureRecords, dimension: str, word: str, chosen: npt.NDArray[np.bool_]) -> FeatureRecords:
    """Return the records with another word, a new one, in some of them."""
    codes = records.words[dimension]
    places = np.where(chosen, np.int16(len(codes.words)), codes.places)
    words = dict(records.words) | {dimension: Codes(places, (*codes.words, word))}
    return FeatureRecords(records.at, records.numbers, words)
