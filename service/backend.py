"""What answers for the model: text to token ids, token ids to logits. In process by ONNX Runtime.

`infer` is what a scheduler calls for one batch. A model in another process (service/triton_backend.py) tells its own
stages; any other one is told as `model.forward`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from service.artifacts import Fingerprints
from service.recording import Attribute, StageHandle
from service.replayed import Stored
from service.text.chunks import chunking_for, sentence_ends, spans

__all__ = [
    "Answer",
    "Backend",
    "BackendError",
    "Calls",
    "Encoded",
    "NotANumber",
    "OnnxBackend",
    "Staged",
    "StagedBackend",
    "SupportsCalls",
    "Window",
    "calls_of",
    "infer",
    "pad",
]

_UNKNOWN = "[UNK]"  # as the training names it (service/training/tokens.py)

Ids = NDArray[np.int64]
Logits = NDArray[np.float32]


class BackendError(RuntimeError):
    """The backend refused an input or gave no usable output."""


class NotANumber(BackendError):  # noqa: N818 - says what is wrong
    """A logit is NaN or infinite."""


class Window(NamedTuple):
    """A part of a text that is longer than what the model takes.

    Attributes:
        ids: Its token ids.
        new: How many of them no window before it has.
    """

    ids: list[int]
    new: int


class Encoded(NamedTuple):
    """A text as token ids.

    Attributes:
        ids: Token ids, none for a text without content; of a long text those of its first window.
        tokens: Tokens of the whole text.
        truncated: Whether part of the text reaches the model in no way.
        unknown: How many of the tokens stand for what the vocabulary does not have.
        windows: Of a text with more tokens than the model takes; none of a usual one.
    """

    ids: list[int]
    tokens: int
    truncated: bool
    unknown: int = 0
    windows: tuple[Window, ...] = ()


class Backend(Protocol):
    """A model that is loaded and ready; its methods are called from several threads at once."""

    @property
    def labels(self) -> Sequence[str]:
        """Names of the model's outputs, in order."""

    @property
    def temperature(self) -> float:
        """Divides the logits before the softmax."""

    @property
    def version(self) -> str:
        """Name of the model's version."""

    @property
    def device_type(self) -> str:
        """Where it computes: "cpu" or "gpu"."""

    def encode(self, text: str) -> Encoded:
        """Return the text as token ids."""

    def forward(self, ids: Ids, mask: Ids) -> Logits:
        """Return logits [batch, labels] for ids and mask, both [batch, seq].

        Raises:
            BackendError: If an id is outside the vocabulary, or a logit is no number.
        """


class Answer(NamedTuple):
    """What a call to the model came to.

    Attributes:
        logits: [batch, labels].
        degraded: Why another than the wanted model answered, or None.
        version: Version of the model that answered.
    """

    logits: Logits
    degraded: str | None
    version: str


class Staged(Protocol):
    """Where a call's stages are told: a request's row, or something that tells them to the rows of a whole batch."""

    def stage(self, name: str, /, **attributes: Attribute) -> AbstractContextManager[StageHandle]:
        """Enter a stage of all these requests."""


@runtime_checkable
class StagedBackend(Protocol):
    """A backend whose call has stages of its own."""

    def infer(self, ids: Ids, mask: Ids, told: Staged, seconds: float) -> Answer:
        """Return the answer for ids and mask, both [batch, seq], within the seconds that are left.

        Raises:
            BackendError: If nobody could answer.
        """


class Calls(NamedTuple):
    """How calls to a model in another process went, in this process since its start.

    Attributes:
        breaker: State of the circuit breaker: closed, half_open or open.
        opened: Times that it opened.
        unanswered: Calls that the model in process answered in its place, by why.
    """

    breaker: str
    opened: int
    unanswered: Mapping[str, int]


@runtime_checkable
class SupportsCalls(Protocol):
    """A backend that asks another process."""

    def snapshot(self) -> Calls:
        """Return how the calls went."""


def calls_of(backend: object) -> Calls | None:
    """Return how calls of a backend to another process went; None for one that computes in this process."""
    return backend.snapshot() if isinstance(backend, SupportsCalls) else None


def infer(backend: Backend, ids: Ids, mask: Ids, told: Staged, seconds: float) -> Answer:
    """Return what the backend answers for one batch, with the stages of the call told.

    Args:
        backend: The model.
        ids: [batch, seq].
        mask: [batch, seq].
        told: Gets the stages.
        seconds: Time that is left for the answer; a model in process does not look at it.

    Raises:
        BackendError: If an input is refused, or there is no usable output.
    """
    if isinstance(backend, StagedBackend):
        return backend.infer(ids, mask, told, seconds)
    with told.stage(
        "model.forward",
        seq_len=ids.shape[1],
        batch_size=len(ids),
        device_type=backend.device_type,
        model_version=backend.version,
    ):
        return Answer(backend.forward(ids, mask), None, backend.version)


def pad(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """Return ids and mask [batch, seq] as wide as the longest row, at least one column.

    A text without tokens becomes one masked slot: the model then answers with its bias, which is what it knows.
    """
    width = max(1, *(len(row) for row in rows)) if rows else 1
    ids = np.zeros((len(rows), width), dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


class OnnxBackend:
    """A tokenizer and one ONNX Runtime session on the CPU.

    Args:
        tokenizer: A `tokenizers.Tokenizer`.
        session: An `onnxruntime.InferenceSession` with inputs input_ids and attention_mask [batch, seq].
        labels: Names of the model's outputs, in order.
        temperature: Divides the logits before the softmax; it is not part of the graph.
        max_tokens: Tokens that the model looks at; a longer text is read in windows.
        vocabulary: Number of token ids.
        version: Name of the model's version, for the rows.
        stored: Texts with what it answered when it was made.
    """

    device_type = "cpu"
    device_warning = ""
    """What it was asked to compute on and does not, in one line."""

    def __init__(
        self,
        tokenizer: Any,
        session: Any,
        *,
        labels: Sequence[str],
        temperature: float,
        max_tokens: int,
        vocabulary: int,
        version: str,
        stored: tuple[Stored, ...] = (),
    ) -> None:
        self.labels = tuple(labels)
        self.temperature = temperature
        self.version = version
        self.stored = stored
        # Set by who loads it and knows what serving does with a text.
        self.preprocess: Fingerprints | None = None
        self._max_tokens = max_tokens
        self._chunking = chunking_for(max_tokens)
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # None where the tokenizer has no such token: nothing is unknown to it then.
        self._unknown = tokenizer.token_to_id(_UNKNOWN)
        self._session = session

    def encode(self, text: str) -> Encoded:
        """Return the text as token ids, in windows where it has more of them than the model takes."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = found.ids
        unknown = ids.count(self._unknown)
        if len(ids) <= self._max_tokens:
            return Encoded(ids, len(ids), False, unknown)
        cuts = spans(sentence_ends(text, found.offsets), self._chunking)
        windows = tuple(Window(ids[one.start : one.end], one.new) for one in cuts)
        return Encoded(windows[0].ids, len(ids), False, unknown, windows)

    def check(self, ids: Ids) -> None:
        """Refuse ids that are none.

        Raises:
            BackendError: If an id is outside the vocabulary.
        """
        # ONNX's Gather takes negative ids from the end without a word, and refuses large ones deep in the runtime.
        if ids.size and (ids.min() < 0 or ids.max() >= self._vocabulary):
            raise BackendError(f"token id outside 0..{self._vocabulary - 1}")

    def forward(self, ids: Ids, mask: Ids) -> Logits:
        """Return logits [batch, labels].

        Raises:
            BackendError: If an id is outside the vocabulary, or a logit is no number.
        """
        self.check(ids)
        logits: Logits = self._session.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0]
        if logits.shape != (len(ids), len(self.labels)):
            raise BackendError("the model's output has the wrong shape")
        if not np.isfinite(logits).all():
            raise NotANumber("the model's output is no number")
        return logits
