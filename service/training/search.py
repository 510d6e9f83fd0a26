"""Search for hyper-parameters within what production allows (row C5): Optuna over the one training there is.

A trial is worth its macro-F1 on dev, or -100 where production could not run it: estimated memory over 12 GB at its
batch, or a batch that takes longer than the budget on ONNX Runtime. Nobody looks at test here. The study is a database:
a search that was ended goes on where it was; one that another process works on is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from service.artifacts import LABELS, Progress
from service.text.preprocessing import PREPROCESSING
from service.training.corpus import Corpus
from service.training.figures import figures_by_language
from service.training.graph import build_graph
from service.training.linear import BUCKETS, softmax
from service.training.pipeline import ALPHAS, NGRAMS, Prepared, dev_logits, prepare, refuse_thin
from service.training.publish import Busy, training_lock
from service.training.tokens import MAX_TOKENS, VOCABULARY

if TYPE_CHECKING:
    import optuna

__all__ = ["PENALTY", "Found", "Limits", "SearchError", "batch_seconds", "memory_bytes", "search"]

PENALTY: Final = -100.0
"""What a trial is worth that production could not run; row C5."""

BATCHES: Final = (16, 32, 64, 128)
VOCABULARIES: Final = (8192, VOCABULARY)
# The training's own defaults come first: a search never ends below them.
_DEFAULTS: Final = {"penalty": ALPHAS[1], "vocabulary": VOCABULARY, "ngrams": NGRAMS[1], "batch": 16}
_LOCK_SECONDS: Final = 2.0
# Seconds that SQLite waits for somebody else's transaction.
_DATABASE_SECONDS: Final = 5.0
_BYTES: Final = 4
_OVERHEAD: Final = 1.2


class SearchError(RuntimeError):
    """The search could not be done; the message is one line."""


@dataclass(frozen=True)
class Limits:
    """What production allows, and how long the search may take.

    Attributes:
        trials: Finished trials of the study, those of earlier runs included.
        seconds: Wall-clock time of this run.
        memory_bytes: Of the model with its largest batch.
        batch_seconds: For a batch of texts of 128 tokens, one thread.
    """

    trials: int = 50
    seconds: float = 3600.0
    memory_bytes: int = 12 * 10**9
    batch_seconds: float = 0.3


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        penalty: Strength of the L2 penalty.
        vocabulary: Most entries of the tokenizer.
        ngrams: Most neighbouring tokens that are a feature.
        batch: Largest batch within the limits.
        dev_macro_f1: On dev.
        memory_bytes: Estimated, with that batch.
        batch_seconds: Measured, with that batch.
        trials: Finished trials of the study.
        refused: Those outside the limits.
    """

    penalty: float
    vocabulary: int
    ngrams: int
    batch: int
    dev_macro_f1: float
    memory_bytes: int
    batch_seconds: float
    trials: int
    refused: int

    def options(self) -> dict[str, Any]:
        """Return the arguments for `fit_model`."""
        return {"alphas": (self.penalty,), "vocabulary": self.vocabulary, "ngrams": (NGRAMS[0], self.ngrams)}

    def told(self) -> dict[str, Any]:
        """Return what config.json holds of it."""
        return asdict(self)


def memory_bytes(columns: int, batch: int, tokens: int = MAX_TOKENS) -> int:
    """Return the estimated memory of the model with a batch: parameters x 4 x 1.2 (row B11), and the looked-up rows.

    Args:
        columns: Rows of the tables of weights, of three numbers each.
        batch: Texts.
        tokens: Of each text.
    """
    looked_up = 2 * batch * tokens * (len(LABELS) * _BYTES + 16)  # tokens and pairs, with their int64 ids and masks
    return int(columns * len(LABELS) * _BYTES * _OVERHEAD) + looked_up


def batch_seconds(graph: bytes, batch: int, tokens: int = 128, repeats: int = 7) -> float:
    """Return the median time of a batch on ONNX Runtime, one thread, on this machine as busy as it is.

    Args:
        graph: The serialized graph.
        batch: Texts.
        tokens: Of each text.
        repeats: Calls.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    ids = np.full((batch, tokens), 2, dtype=np.int64)
    took = []
    for _ in range(repeats):
        started = time.perf_counter()
        session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        took.append(time.perf_counter() - started)
    return float(np.median(took))


class _Trials:
    """Makes and judges a model for each trial; tokenized texts are kept by vocabulary."""

    def __init__(self, corpus: Corpus, limits: Limits, vocabularies: tuple[int, ...], seed: int) -> None:
        self._corpus, self._limits, self._vocabularies, self._seed = corpus, limits, vocabularies, seed
        self._prepared: dict[int, Prepared] = {}
        self._truth = np.array([row.label for row in corpus.dev], dtype=np.int64)
        self._languages = [row.language for row in corpus.dev]

    def __call__(self, trial: optuna.Trial) -> float:
        penalty = trial.suggest_float("penalty", 1e-5, 3e-4, log=True)
        vocabulary = trial.suggest_categorical("vocabulary", self._vocabularies)
        ngrams = trial.suggest_int("ngrams", *NGRAMS)
        batch = trial.suggest_categorical("batch", BATCHES)
        needed = memory_bytes(vocabulary + (BUCKETS if ngrams > 1 else 0), batch)
        trial.set_user_attr("memory_bytes", needed)
        if needed > self._limits.memory_bytes:
            return PENALTY
        if vocabulary not in self._prepared:
            self._prepared[vocabulary] = prepare(self._corpus, lambda _what, _share: None, vocabulary)
        prepared = self._prepared[vocabulary]
        model, logits = dev_logits(self._corpus, prepared, penalty, (NGRAMS[0], ngrams), self._seed)
        seconds = batch_seconds(build_graph(model, prepared.tokenizer.get_vocab_size()), batch)
        trial.set_user_attr("batch_seconds", seconds)
        if seconds > self._limits.batch_seconds:
            return PENALTY
        found = figures_by_language(softmax(logits), self._truth, self._languages, LABELS)
        trial.set_user_attr("languages", {name: one["macro_f1"] for name, one in found.items()})
        return float(found["all"]["macro_f1"])


def search(
    corpus: Corpus,
    database: Path,
    progress: Progress,
    *,
    limits: Limits | None = None,
    vocabularies: tuple[int, ...] = VOCABULARIES,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """Return the best settings of a study, after going on with it until a limit.

    Args:
        corpus: Reviews, split; test is not used.
        database: File of the study; made when missing, gone on with when there is one of these data.
        progress: Called with each trial and the share done.
        limits: What production allows.
        vocabularies: Sizes to choose from.
        seed: Of sampler and training.
        clock: Monotonic seconds.

    Raises:
        SearchError: If the database is another's, locked or none, or no trial is within the limits.
        ValueError: As `fit_model`, for data that nothing can be learnt from.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    limits = limits or Limits()
    refuse_thin(corpus)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with training_lock(database, lambda: None, _LOCK_SECONDS):
            study = _study(database, f"{corpus.fingerprint}-{PREPROCESSING.fingerprint}", seed)
            trials = _Trials(corpus, limits, vocabularies, seed)
            _go_on(study, trials, limits, progress, clock)
            return _best(study)
    except Busy as error:
        raise SearchError(f"another search works on {database}; end it, or choose another file by --study") from error
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        told = " ".join(str(error.__cause__ or error).split())[:160]
        raise SearchError(f"{database} cannot be used as a study: {told}; choose another file by --study") from error
    except OSError as error:
        raise SearchError(f"{error.filename or database}: {error.strerror or error}") from error


def _study(database: Path, name: str, seed: int) -> optuna.Study:
    import optuna

    storage = optuna.storages.RDBStorage(
        f"sqlite:///{database}", engine_kwargs={"connect_args": {"timeout": _DATABASE_SECONDS}}
    )
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed),
        load_if_exists=True,
    )
    if not study.trials:
        study.enqueue_trial(_DEFAULTS, skip_if_exists=True)
    # We hold the lock: whatever still runs was left behind by a search that was killed.
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _go_on(
    study: optuna.Study, trials: _Trials, limits: Limits, progress: Progress, clock: Callable[[], float]
) -> None:
    started = clock()
    while (done := len(_finished(study))) < limits.trials and clock() - started < limits.seconds:
        best = max((trial.value or PENALTY for trial in _finished(study)), default=None)
        told = f"trial {done + 1} of {limits.trials}" + (f", best {best:.4f}" if best is not None else "")
        progress(told, done / limits.trials)
        study.optimize(trials, n_trials=1)


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    import optuna

    return study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))


def _best(study: optuna.Study) -> Found:
    finished = _finished(study)
    within = [trial for trial in finished if trial.value is not None and trial.value > PENALTY]
    if not within:
        raise SearchError(f"none of {len(finished)} trials is within the limits of memory and latency")
    # Of equals the larger batch: it serves more.
    best = max(within, key=lambda trial: (trial.value or 0.0, trial.params["batch"]))
    return Found(
        penalty=float(best.params["penalty"]),
        vocabulary=int(best.params["vocabulary"]),
        ngrams=int(best.params["ngrams"]),
        batch=int(best.params["batch"]),
        dev_macro_f1=float(best.value or 0.0),
        memory_bytes=int(best.user_attrs["memory_bytes"]),
        batch_seconds=float(best.user_attrs["batch_seconds"]),
        trials=len(finished),
        refused=len(finished) - len(within),
    )
