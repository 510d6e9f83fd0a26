"""Training cut into the stages of dvc.yaml: `python -m service.training.stages clean | tokenizer | windows | train`.

Each stage reads what the one before wrote below build/pipeline, and params.yaml; what they do is `prepare` and `train`,
as `inferdeck train` does in one process. DVC runs again those whose code, parameters or inputs have changed.
Files hold cleaned texts: they are readable by their owner alone and are neither cached nor committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from tokenizers import Tokenizer

from service.text.contract import to_contract
from service.training.command import Floors, TrainingError, train
from service.training.corpus import Corpus, CorpusMissing, Row, load_corpus
from service.training.pipeline import Prepared
from service.training.tokens import Piece, build_tokenizer, encode_whole

__all__ = ["STAGES", "Params", "main", "read_params"]

_SPLITS: Final = ("train", "dev", "test")
_ROWS, _TOKENIZER, _WINDOWS = "rows.json", "tokenizer.json", "windows.npz"


@dataclass(frozen=True)
class Params:
    """What params.yaml holds.

    Attributes:
        share: Share of the reviews that is used, chosen by their text, 0..1.
        vocabulary: Most entries of the tokenizer.
        ngrams: Fewest and most neighbouring tokens that are a feature.
        penalties: Tried on dev.
        seed: Order of the rows in the descent.
        floors: What the model must reach.
    """

    share: float
    vocabulary: int
    ngrams: tuple[int, int]
    penalties: tuple[float, ...]
    seed: int
    floors: Floors


def read_params(path: Path) -> Params:
    """Return the parameters.

    Args:
        path: The file.

    Raises:
        TrainingError: If it cannot be read, or a parameter is missing, unknown or of a wrong kind.
    """
    try:
        found: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        params = Params(
            **{
                **found,
                "ngrams": tuple(int(one) for one in found["ngrams"]),
                "penalties": tuple(float(one) for one in found["penalties"]),
                "floors": Floors(**found["floors"]),
            }
        )
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise TrainingError(f"{path} cannot be used: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not 0 < params.share <= 1 or len(params.ngrams) != 2:
        raise TrainingError(f"{path}: share is above 0 and at most 1, ngrams are two numbers")
    return params


def clean(folder: Path, params: Params) -> None:
    """Write the reviews, deduplicated, split and cleaned."""
    corpus = load_corpus()
    kept = {name: [row for row in getattr(corpus, name) if _chosen(row.text, params.share)] for name in _SPLITS}
    told = {name: [[row.label, row.language, to_contract(row.text, None)] for row in kept[name]] for name in _SPLITS}
    about = {
        "raw_rows": corpus.raw_rows,
        "contradictory_keys": corpus.contradictory_keys,
        # Of a part another fingerprint: figures of a model of it must not pass for those of the whole.
        "fingerprint": corpus.fingerprint if params.share == 1 else f"{corpus.fingerprint}*{params.share:g}",
        "files": corpus.files,
    }
    _write(folder / _ROWS, json.dumps({"about": about, "rows": told}, ensure_ascii=False).encode("utf-8"))


def tokenizer(folder: Path, params: Params) -> None:
    """Write the tokenizer, learnt from the texts of train."""
    texts = [row.text for row in _corpus(folder).train]
    _write(folder / _TOKENIZER, build_tokenizer(texts, params.vocabulary).to_str(pretty=False).encode("utf-8"))


def windows(folder: Path, _params: Params) -> None:
    """Write the token ids of all texts, long ones in windows."""
    corpus, learnt = _corpus(folder), Tokenizer.from_file(str(folder / _TOKENIZER))
    held: dict[str, Any] = {}
    for name in _SPLITS:
        pieces = encode_whole(learnt, [row.text for row in getattr(corpus, name)])
        held[f"{name}_ids"] = np.array([token for piece in pieces for token in piece.ids], dtype=np.int32)
        held[f"{name}_pieces"] = np.array([(one.text, len(one.ids), one.new) for one in pieces], dtype=np.int32)
    path = folder / _WINDOWS
    _write(path, b"")
    with path.open("wb") as file:
        np.savez(file, **held)


def fit(folder: Path, params: Params) -> None:
    """Train and publish the model with its reference distributions, card and figures."""
    corpus, learnt = _corpus(folder), Tokenizer.from_file(str(folder / _TOKENIZER))
    with np.load(folder / _WINDOWS) as held:
        pieces = [_pieces(held[f"{name}_ids"].tolist(), held[f"{name}_pieces"].tolist()) for name in _SPLITS]
    texts = [[row.text for row in getattr(corpus, name)] for name in _SPLITS]
    prepared = Prepared((texts[0], texts[1], texts[2]), learnt, (pieces[0], pieces[1], pieces[2]))
    report = train(
        folder.parent / "model",
        progress=lambda what, share: _say(f"{share:4.0%} {what}"),
        corpus=corpus,
        floors=params.floors,
        options={
            "alphas": params.penalties,
            "ngrams": params.ngrams,
            "seed": params.seed,
            "prepared": prepared,
        },
    )
    _say(f"model {report.version} in {report.folder}")


STAGES: Final[Mapping[str, Callable[[Path, Params], None]]] = {
    "clean": clean,
    "tokenizer": tokenizer,
    "windows": windows,
    "train": fit,
}
"""By the names that dvc.yaml has for them."""


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _chosen(text: str, share: float) -> bool:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") < share * 2**32


def _corpus(folder: Path) -> Corpus:
    held = json.loads((folder / _ROWS).read_text(encoding="utf-8"))
    train_rows, dev, test = (
        tuple(Row(text, label, language) for label, language, text in held["rows"][name]) for name in _SPLITS
    )
    return Corpus(train_rows, dev, test, **held["about"])


def _pieces(ids: list[int], told: list[list[int]]) -> list[Piece]:
    pieces: list[Piece] = []
    place = 0
    for text, length, new in told:
        pieces.append(Piece(text, ids[place : place + length], new))
        place += length
    return pieces


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def main(arguments: list[str], folder: Path = Path("build/pipeline"), params: Path = Path("params.yaml")) -> int:
    """Run one stage; 0 when it is done, 1 with one line of what was wrong, 2 for a stage that is none.

    Args:
        arguments: The stage's name.
        folder: Where stages find each other's files; the model lies beside it.
        params: The parameters.
    """
    if len(arguments) != 1 or arguments[0] not in STAGES:
        _say(f"usage: python -m service.training.stages {' | '.join(STAGES)}")
        return 2
    try:
        STAGES[arguments[0]](folder, read_params(params))
    except (TrainingError, CorpusMissing, OSError) as error:
        _say(f"{arguments[0]}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
