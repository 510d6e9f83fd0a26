"""Load the model from its folder into one ONNX Runtime session, after asking whether memory allows it."""

from __future__ import annotations

from pathlib import Path

import psutil

from service.artifacts import Artifacts, load_artifacts
from service.backend import BackendError, OnnxBackend

__all__ = ["NotEnoughMemory", "load_onnx", "require_memory"]

_OVERHEAD_RATIO = 1.2
"""Row B11: a model takes parameters x bytes x 1.2; the graph's file is nearly all parameters."""


class NotEnoughMemory(RuntimeError):  # noqa: N818 - says what is wrong
    """The model would not fit beside what else runs."""


def require_memory(model_bytes: int, total_bytes: int, used_bytes: int, reserve_bytes: int) -> None:
    """Refuse a model that does not fit (row B11: usable = total - reserve - other processes).

    Args:
        model_bytes: Parameters times their size.
        total_bytes: Memory of the machine.
        used_bytes: Memory that processes hold now.
        reserve_bytes: Memory to leave alone.

    Raises:
        NotEnoughMemory: If it does not fit.
    """
    needed = int(model_bytes * _OVERHEAD_RATIO)
    usable = total_bytes - reserve_bytes - used_bytes
    if needed > usable:
        raise NotEnoughMemory(
            f"the model needs {needed} bytes and {max(0, usable)} are usable; free memory or lower "
            "INFERDECK_SERVICE_MEMORY_RESERVE_BYTES"
        )


def load_onnx(folder: Path, reserve_bytes: int) -> tuple[OnnxBackend, Artifacts]:
    """Return the verified model, loaded once, and what was read about it.

    Args:
        folder: Folder written by training.
        reserve_bytes: Memory to leave alone.

    Raises:
        ArtifactsMissing, ArtifactsDamaged: If the folder does not hold a whole model.
        NotEnoughMemory: If it would not fit.
        BackendError: If tokenizer and graph do not belong together.
    """
    artifacts = load_artifacts(folder)
    memory = psutil.virtual_memory()
    require_memory(artifacts.model.stat().st_size, memory.total, memory.total - memory.available, reserve_bytes)
    # 120 ms of imports: here, in the loading thread, they hold up neither the admin port nor the event loop.
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(artifacts.tokenizer))
    if tokenizer.get_vocab_size() > artifacts.vocabulary:
        raise BackendError(f"the tokenizer has more than {artifacts.vocabulary} ids; run `inferdeck train`")
    options = onnxruntime.SessionOptions()
    # Two threads never helped this model and slowed batches down (facts: feasibility 1.3).
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(artifacts.model), options, providers=["CPUExecutionProvider"])
    backend = OnnxBackend(
        tokenizer,
        session,
        labels=artifacts.labels,
        temperature=artifacts.temperature,
        max_tokens=artifacts.max_tokens,
        vocabulary=artifacts.vocabulary,
        version=artifacts.version,
    )
    return backend, artifacts
