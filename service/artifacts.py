"""The trained model on disk: found, verified, and trained when it is missing.

Light on purpose: serving needs neither scikit-learn nor onnx, so everything of training is imported only when it is
about to run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from service.text.preprocessing import PREPROCESSING, Preprocessing

__all__ = [
    "CONFIG_FILE",
    "FORMAT",
    "LABELS",
    "MODEL_FILE",
    "REFERENCE_FILE",
    "SINGLE_FILE",
    "TOKENIZER_FILE",
    "Artifacts",
    "ArtifactsDamaged",
    "ArtifactsError",
    "ArtifactsMissing",
    "Fingerprints",
    "Progress",
    "load_artifacts",
    "model_version",
]

FORMAT = "inferdeck-model/1"
"""Shape of config.json; another shape is refused, not guessed at."""

LABELS = ("negative", "neutral", "positive")
"""Classes in the order of the model's outputs."""

MODEL_FILE, TOKENIZER_FILE, CONFIG_FILE = "model.onnx", "tokenizer.json", "config.json"

SINGLE_FILE = "single.onnx"
"""The smaller model, of single tokens: version 1 of a model repository; older trainings wrote none."""

REFERENCE_FILE = "reference.npz"
"""What inputs looked like in training; drift is measured against it. Older trainings wrote none."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the share done so far, 0..1."""

_MEND = "run `inferdeck train`"


class ArtifactsError(RuntimeError):
    """The model's folder cannot be used; the message is one line and names the mend."""


class ArtifactsMissing(ArtifactsError):  # noqa: N818 - says what is wrong
    """There is no trained model in the folder."""


class ArtifactsDamaged(ArtifactsError):  # noqa: N818 - says what is wrong
    """There is a model in the folder, but it is not what was written there."""


class Fingerprints(NamedTuple):
    """What a text goes through before a model reads it.

    Attributes:
        trained: In its training.
        served: In serving.
    """

    trained: str
    served: str

    @property
    def match(self) -> bool:
        """Whether the two are one."""
        return self.trained == self.served


@dataclass(frozen=True)
class Artifacts:
    """A verified model.

    Attributes:
        folder: Where it lies.
        model: Path of the ONNX graph, `input_ids, attention_mask -> logits[batch, 3]`.
        tokenizer: Path of the tokenizer file; it cuts at *max_tokens* and pads nothing.
        labels: Classes in the order of the logits.
        temperature: Divide logits by it before softmax; above 0.
        max_tokens: Most tokens per text.
        vocabulary: Entries of the tokenizer; ids outside 0..vocabulary-1 must not reach the graph.
        pad_id: Id for padding, with mask 0.
        version: Twelve hexadecimal digits over graph, tokenizer and temperature.
        model_sha256: Digest of the graph's file.
        tokenizer_sha256: Digest of the tokenizer's file.
        cleaning_fingerprint: Cleaning that the training texts went through.
        preprocess_fingerprint: Cleaning and chunking that they went through; empty of a training without chunking.
        data_fingerprint: Training data.
        config: The whole of config.json, figures included.
    """

    folder: Path
    model: Path
    tokenizer: Path
    labels: tuple[str, ...]
    temperature: float
    max_tokens: int
    vocabulary: int
    pad_id: int
    version: str
    model_sha256: str
    tokenizer_sha256: str
    cleaning_fingerprint: str
    data_fingerprint: str
    config: Mapping[str, Any]
    preprocess_fingerprint: str = ""

    def fingerprints(self, served: Preprocessing = PREPROCESSING) -> Fingerprints:
        """Return the fingerprints of the training and of the serving: of cleaning alone where the model has no other.

        Where they differ, answers are worth less than the figures say.

        Args:
            served: What serving does with a text.
        """
        if self.preprocess_fingerprint:
            return Fingerprints(self.preprocess_fingerprint, served.fingerprint)
        return Fingerprints(self.cleaning_fingerprint, served.cleaning_fingerprint)


def model_version(model_sha256: str, tokenizer_sha256: str, temperature: float) -> str:
    """Return the version that tells apart any two models that could answer differently."""
    return hashlib.sha256(f"{model_sha256} {tokenizer_sha256} {temperature!r}".encode()).hexdigest()[:12]


def load_artifacts(folder: Path) -> Artifacts:
    """Return the model in *folder* after comparing its files with the digests written beside them.

    Args:
        folder: Folder written by training.

    Raises:
        ArtifactsMissing: If there is no model.
        ArtifactsDamaged: If a file is gone, changed or unreadable, or the configuration makes no sense.
    """
    config_path = folder / CONFIG_FILE
    try:
        text = config_path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        if (folder / MODEL_FILE).exists():
            raise ArtifactsDamaged(f"{config_path} is missing beside {MODEL_FILE}; {_MEND}") from error
        raise ArtifactsMissing(f"no model in {folder}; {_MEND}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactsDamaged(f"{config_path} cannot be read ({_reason(error)}); {_mend(error)}") from error
    try:
        config = json.loads(text)
        artifacts = _from_config(folder, config)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactsDamaged(f"{config_path} is not a model's configuration ({_reason(error)}); {_MEND}") from error
    _compare(artifacts.model, artifacts.model_sha256)
    _compare(artifacts.tokenizer, artifacts.tokenizer_sha256)
    return artifacts


def _reason(error: Exception) -> str:
    """Return one short line; a message of several lines would break the promise of one line."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    detail = " ".join(str(error).split())[:120]
    return f"missing key {detail}" if isinstance(error, KeyError) else detail or type(error).__name__


def _mend(error: Exception) -> str:
    """Return what helps; a training could not replace files of somebody else."""
    if isinstance(error, PermissionError):
        return "let this user read it, or set INFERDECK_SERVICE_MODEL_DIR to another folder"
    return _MEND


def _number(config: Mapping[str, Any], key: str, lowest: float) -> float:
    value = config[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < lowest:
        raise ValueError(f"{key} must be a number of at least {lowest}")
    return value


def _text(config: Mapping[str, Any], key: str) -> str:
    value = config[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} must be a text")
    return value


def _from_config(folder: Path, config: Any) -> Artifacts:
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    if config["labels"] != list(LABELS):
        raise ValueError(f"labels must be {list(LABELS)}")
    temperature = float(_number(config, "temperature", 1e-3))
    model_sha256, tokenizer_sha256 = _text(config, "model_sha256"), _text(config, "tokenizer_sha256")
    version = _text(config, "version")
    if version != model_version(model_sha256, tokenizer_sha256, temperature):
        raise ValueError("version does not follow from digests and temperature")
    return Artifacts(
        folder=folder,
        model=folder / MODEL_FILE,
        tokenizer=folder / TOKENIZER_FILE,
        labels=LABELS,
        temperature=temperature,
        max_tokens=int(_number(config, "max_tokens", 1)),
        vocabulary=int(_number(config, "vocabulary", 1)),
        pad_id=int(_number(config, "pad_id", 0)),
        version=version,
        model_sha256=model_sha256,
        tokenizer_sha256=tokenizer_sha256,
        cleaning_fingerprint=_text(config, "cleaning_fingerprint"),
        preprocess_fingerprint=_text(config, "preprocess_fingerprint") if "preprocess_fingerprint" in config else "",
        data_fingerprint=_text(config, "data_fingerprint"),
        config=config,
    )


def _compare(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactsDamaged(f"{path} cannot be read ({_reason(error)}); {_mend(error)}") from error
    if actual != expected:
        raise ArtifactsDamaged(f"{path} is not the file that training wrote; {_MEND}")
