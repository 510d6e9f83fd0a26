"""The model behind Triton, with the same model in process as what answers when Triton does not.

The text becomes tokens here; Triton gets ids and a mask, both padded to one length, since it only batches requests of
equal shape. An answer is held to its shape and to being numbers: it comes from outside. Whatever goes wrong, the model
in process answers in the time that is left, and the answer says so; a circuit breaker keeps a dead or hung Triton from
costing every request its timeout. Only what is Triton's fault counts there: not a caller who came late, nor our own
connections being all in use.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from service.artifacts import Fingerprints
from service.backend import Answer, BackendError, Calls, Encoded, Ids, Logits, NotANumber, OnnxBackend, Staged
from service.breaker import Breaker
from service.replayed import Stored
from service.tokens import SupportsTokenCache
from service.triton.transport import Call, TritonError, TritonHttp

__all__ = ["TritonBackend"]

_RESERVE_SECONDS = 0.1
"""Left for the model in process, which takes well under a millisecond, and for a thread that must be found for it."""
_LEAST_SECONDS = 0.05
"""With less left for Triton it is not asked: so short a call would take a connection from others for nothing."""


class TritonBackend:
    """Asks Triton, else the model in process.

    Args:
        local: The same model in process; it is also the tokenizer.
        triton: Triton.
        breaker: Whether Triton is asked.
        served: Version of the repository that is asked.
        timeout_seconds: Most time for a call. Only a call that was granted all of it and ran out of it is held against
            Triton, so it must be less than what requests usually have left, by 0.1 s.
        pad_tokens: Length that rows are padded to; 0 leaves them.
        name: Name of the version, when it is not the local model's; such a one raises when Triton fails, since the
            local model is another.
    """

    device_type = "cpu"

    def __init__(
        self,
        local: OnnxBackend,
        triton: TritonHttp,
        breaker: Breaker,
        *,
        served: str = "2",
        timeout_seconds: float = 0.4,
        pad_tokens: int = 0,
        name: str | None = None,
    ) -> None:
        self._local, self._triton, self.breaker = local, triton, breaker
        self._served, self._timeout, self._pad_tokens = served, timeout_seconds, pad_tokens
        self._name = name
        self._counting = threading.Lock()
        self._failures: Counter[str] = Counter()

    @property
    def labels(self) -> Sequence[str]:
        """Names of the model's outputs, in order."""
        return self._local.labels

    @property
    def temperature(self) -> float:
        """Divides the logits before the softmax."""
        return self._local.temperature

    @property
    def version(self) -> str:
        """Name of the model's version."""
        return self._name or self._local.version

    def beside(self, served: str) -> TritonBackend:
        """Return another version of the repository, by the same connections; it raises when Triton fails."""
        return TritonBackend(
            self._local,
            self._triton,
            Breaker(),
            served=served,
            timeout_seconds=self._timeout,
            pad_tokens=self._pad_tokens,
            name=f"triton-{served}",
        )

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Texts with their answers; none for the repository's version 1, the smaller model that nobody asked then."""
        return self._local.stored if self._served == "2" else ()

    @property
    def preprocess(self) -> Fingerprints | None:
        """What texts go through in training and in serving: Triton's models are of the same training."""
        return self._local.preprocess

    def snapshot(self) -> Calls:
        """Return how the calls to Triton went."""
        with self._counting:
            return Calls(self.breaker.state, self.breaker.opened, dict(self._failures))

    @property
    def token_cache(self) -> tuple[Any, int] | None:
        """Return what keeps the tokens of texts, with how many it may keep; None where none are kept."""
        return self._local.token_cache if isinstance(self._local, SupportsTokenCache) else None

    def encode(self, text: str) -> Encoded:
        """Return the text as token ids."""
        return self._local.encode(text)

    def forward(self, ids: Ids, mask: Ids) -> Logits:
        """Return logits of the model in process: the warm-up must not depend on another process.

        Raises:
            BackendError: As for `OnnxBackend.forward`.
        """
        return self._local.forward(ids, mask)

    def infer(self, ids: Ids, mask: Ids, told: Staged, seconds: float) -> Answer:
        """Return Triton's answer, or that of the model in process.

        Args:
            ids: [batch, seq].
            mask: [batch, seq].
            told: Gets the stages triton.client > model.forward, or fallback.cpu > vectorizer, or both.
            seconds: Time that is left.

        Raises:
            BackendError: If the input is refused, or the model in process gives no usable output either.
        """
        self._local.check(ids)
        left = seconds - _RESERVE_SECONDS
        because = "breaker_open"
        if left < min(_LEAST_SECONDS, self._timeout):
            because = "late"
        elif self.breaker.allow():
            try:
                logits = self._ask(ids, mask, told, min(self._timeout, left))
            except TritonError as error:
                because = error.reason
                if because == "no_connection" or (because == "timeout" and left < self._timeout):
                    self.breaker.released()
                else:
                    self.breaker.failed()
            except BaseException:
                self.breaker.failed()
                raise
            else:
                self.breaker.succeeded()
                return Answer(logits, None, self.version)
        with self._counting:
            self._failures[because] += 1
        if self._name is not None:
            raise (NotANumber if because == "wrong_answer" else BackendError)(because)
        with (
            told.stage("fallback.cpu", because=because, batch_size=len(ids)),
            told.stage("vectorizer", seq_len=ids.shape[1], model_version=self.version),
        ):
            return Answer(self._local.forward(ids, mask), because, self.version)

    def _ask(self, ids: Ids, mask: Ids, told: Staged, seconds: float) -> Logits:
        ids, mask = self._padded(ids), self._padded(mask)
        call = Call()
        parent = getattr(told, "traceparent", None)
        traceparent: str = parent("triton.client") if callable(parent) else ""
        with told.stage("triton.client", batch_size=len(ids), seq_len=ids.shape[1]) as stage:
            try:
                logits = self._triton.infer(
                    ids,
                    mask,
                    version=self._served,
                    seconds=seconds,
                    headers={"traceparent": traceparent} if traceparent else None,
                    call=call,
                    around=lambda: told.stage(
                        "model.forward",
                        seq_len=ids.shape[1],
                        batch_size=len(ids),
                        device_type=self.device_type,
                        model_version=self.version,
                    ),
                )
                if logits.shape != (len(ids), len(self.labels)) or not np.isfinite(logits).all():
                    raise TritonError("wrong_answer", "Triton's logits have the wrong shape or are no numbers")
            except TritonError as error:
                stage.set(error=error.reason, status=error.status if error.status >= 400 else 500)
                raise
            finally:
                stage.set(
                    pool_wait_ns=call.pool_wait_ns,
                    serialize_ns=call.serialize_ns,
                    wait_ns=call.wait_ns,
                    deserialize_ns=call.deserialize_ns,
                )
        return logits

    def _padded(self, rows: Ids) -> Ids:
        missing = self._pad_tokens - rows.shape[1]
        return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else rows

    def close(self) -> None:
        """Close the connections."""
        self._triton.close()
