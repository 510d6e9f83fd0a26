"""What inputs look like in training, as a file that drift is measured against (read by exporters/drift)."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from service.text.character_classes import CharacterShares, character_shares
from service.text.quality import language
from service.training.tokens import MAX_TOKENS, UNKNOWN

__all__ = ["REFERENCE_ROWS", "reference_file"]

REFERENCE_ROWS: Final = 10_000
"""Texts of the sample: its own noise is 0.014 then (1.36 / sqrt(n), Kolmogorov's 5% bound)."""


def reference_file(
    texts: Sequence[str], tokenizer: Tokenizer, confidences: NDArray[np.float64], seed: int, rows: int = REFERENCE_ROWS
) -> bytes:
    """Return the reference as the bytes of an npz file, the same for the same arguments.

    Columns are named as in the service's rows, and worked out by the same functions.

    Args:
        texts: Training texts in the form that the contract lets through; empty ones never reach the service.
        tokenizer: The model's.
        confidences: Of texts that the model did not learn from: of those it did it is too sure.
        seed: Choice of the sample.
        rows: Most texts of the sample, and most confidences.
    """
    rng = np.random.default_rng(seed)
    known = [text for text in texts if text]
    sample = [known[place] for place in _chosen(rng, len(known), rows)]
    whole = Tokenizer.from_str(tokenizer.to_str())
    whole.no_truncation()
    encoded = [found.ids for found in whole.encode_batch_fast(sample)]
    unknown: int = int(whole.token_to_id(UNKNOWN) or 0)
    kept = [ids[:MAX_TOKENS] for ids in encoded]
    shares = np.array([character_shares(text) for text in sample], dtype=np.float64).reshape(len(sample), -1)
    words = sorted(Counter(language(text)[0] for text in sample).items())
    members: dict[str, NDArray[Any]] = {
        "number:input_length": np.array([len(text) for text in sample], dtype=np.float64),
        "number:tokens": np.array([len(ids) for ids in encoded], dtype=np.float64),
        "number:sentiment.tokenizer/unknown_ratio": np.array(
            [ids.count(unknown) / max(1, len(ids)) for ids in kept], dtype=np.float64
        ),
        "number:confidence": np.sort(confidences[_chosen(rng, len(confidences), rows)]).astype(np.float64),
        "words:sentiment.preprocess/language": np.array([word for word, _count in words]),
        "counts:sentiment.preprocess/language": np.array([count for _word, count in words], dtype=np.int64),
    }
    for place, name in enumerate(CharacterShares._fields):
        members[f"number:sentiment.preprocess/{name}"] = shares[:, place]
    # Sorted, an array keeps nothing of which text had which value beside which: no row of it describes a person's text.
    held: dict[str, Any] = {
        name: np.sort(array) if name.startswith("number:") else array for name, array in members.items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, **held)
    return file.getvalue()


def _chosen(rng: np.random.Generator, size: int, most: int) -> NDArray[np.int64]:
    return np.sort(rng.choice(size, min(size, most), replace=False))
