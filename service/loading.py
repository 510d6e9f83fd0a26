"""Load the model from its folder into one ONNX Runtime session, after asking whether memory allows it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from service.artifacts import Artifacts, load_artifacts
from service.backend import BackendError, OnnxBackend
from service.backend_caching import CachingBackend
from service.device import Wanted, judge, providers
from service.memory import Memory, available_memory
from service.memory_sessions import watch_sessions
from service.replayed import KEY, Stored, stored_answers
from service.tokens import load_tokenizer

__all__ = ["NotEnoughMemory", "load_onnx", "require_memory"]

_OVERHEAD_RATIO = 1.2
"""Row B11: a model takes parameters x bytes x 1.2; the graph's file is nearly all parameters."""


class NotEnoughMemory(RuntimeError):  # noqa: N818 - says what is wrong
    """The model would not fit beside what else runs."""


_log = logging.getLogger("service.loading")
_MIB = 1 << 20
_MENDS = {"machine": "free memory", "container": "raise the container's memory limit"}


def require_memory(model_bytes: int, memory: Memory, reserve_bytes: int) -> None:
    """Refuse a model that does not fit (row B11: usable = total - reserve - other processes).

    Args:
        model_bytes: Parameters times their size.
        memory: What there is, and what processes hold of it now.
        reserve_bytes: Memory to leave alone.

    Raises:
        NotEnoughMemory: If it does not fit.
    """
    needed = int(model_bytes * _OVERHEAD_RATIO)
    usable = memory.left_bytes - reserve_bytes
    if needed > usable:
        raise NotEnoughMemory(
            f"the model needs {needed / _MIB:.1f} MiB ({_OVERHEAD_RATIO} x its parameters) and "
            f"{max(0, usable) / _MIB:.1f} MiB are usable (the {memory.place}'s {memory.total_bytes / _MIB:.0f} MiB, "
            f"less {memory.used_bytes / _MIB:.0f} held and {reserve_bytes / _MIB:.0f} in reserve); "
            f"{_MENDS[memory.place]} or lower INFERDECK_SERVICE_MEMORY_RESERVE_BYTES"
        )


def load_onnx(
    folder: Path, reserve_bytes: int, device: Wanted = "cpu", cache_texts: int = 0
) -> tuple[OnnxBackend, Artifacts]:
    """Return the verified model, loaded once, and what was read about it.

    Args:
        folder: Folder written by training.
        reserve_bytes: Memory to leave alone.
        device: What it shall compute on.
        cache_texts: Most texts whose tokens are kept.

    Raises:
        ArtifactsMissing, ArtifactsDamaged: If the folder does not hold a whole model.
        NotEnoughMemory: If it would not fit.
        BackendError: If tokenizer and graph do not belong together.
        WrongDevice: If it got another device than the one without which it shall not start.
    """
    artifacts = load_artifacts(folder)
    require_memory(artifacts.model.stat().st_size, available_memory(), reserve_bytes)
    # 120 ms of imports: here, in the loading thread, they hold up neither the admin port nor the event loop.
    import onnxruntime

    watch_sessions(onnxruntime)
    tokenizer = load_tokenizer(artifacts.tokenizer)
    if tokenizer.get_vocab_size() > artifacts.vocabulary:
        raise BackendError(f"the tokenizer has more than {artifacts.vocabulary} ids; run `inferdeck train`")
    options = onnxruntime.SessionOptions()
    # Two threads never helped this model and slowed batches down (facts: feasibility 1.3).
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    available = onnxruntime.get_available_providers()
    session = onnxruntime.InferenceSession(str(artifacts.model), options, providers=providers(device, available))
    placed = judge(device, available, session.get_providers())
    if placed.warning:
        _log.error("%s; the model computes on the CPU", placed.warning)
    make = partial(CachingBackend, cache_texts=cache_texts) if cache_texts else OnnxBackend
    backend = make(
        tokenizer,
        session,
        labels=artifacts.labels,
        temperature=artifacts.temperature,
        max_tokens=artifacts.max_tokens,
        vocabulary=artifacts.vocabulary,
        version=artifacts.version,
        stored=_stored(artifacts),
    )
    backend.device_type, backend.device_warning = placed.type, placed.warning
    return backend, artifacts


def _stored(artifacts: Artifacts) -> tuple[Stored, ...]:
    try:
        return stored_answers(artifacts.config)
    except (KeyError, TypeError, ValueError) as error:
        raise BackendError(f"the model's {KEY} answers cannot be read; run `inferdeck train`") from error
