"""Which device the model in this process was asked to compute on, and which it got (requirements D2).

ONNX Runtime goes on, without a word or with one on stderr, when its GPU provider is not built in or cannot start:
answers are right and take longer. So the providers of the session that was made are looked at, not those asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["CPU", "CUDA", "Device", "Wanted", "WrongDevice", "judge", "providers"]

Wanted = Literal["cpu", "cuda", "cuda_or_cpu"]
CUDA: Final = "CUDAExecutionProvider"
CPU: Final = "CPUExecutionProvider"


class WrongDevice(RuntimeError):  # noqa: N818 - says what is wrong
    """The model got another device than the one without which it shall not start."""


@dataclass(frozen=True)
class Device:
    """Where a model computes.

    Attributes:
        type: "cpu" or "gpu".
        warning: What was asked for and is not so, in one line; empty where all is as asked for.
    """

    type: Literal["cpu", "gpu"]
    warning: str = ""


def providers(wanted: Wanted, available: Sequence[str]) -> list[str]:
    """Return the providers to make a session with: the CPU is last, since some nodes have no other kernel.

    Args:
        wanted: The setting.
        available: Those that this build of ONNX Runtime has; another would be a warning of its own.
    """
    return [CPU] if wanted == "cpu" or CUDA not in available else [CUDA, CPU]


def judge(wanted: Wanted, available: Sequence[str], got: Sequence[str]) -> Device:
    """Return where a session computes, by the providers that it has.

    Args:
        wanted: The setting.
        available: Those that this build of ONNX Runtime has.
        got: Those that the session has, the preferred one first.

    Raises:
        WrongDevice: If it shall compute on the GPU alone, and does not.
    """
    if CUDA in got:
        return Device("gpu")
    if wanted == "cpu":
        return Device("cpu")
    why = (
        f"its {CUDA} did not start: a library of CUDA or cuDNN, or the driver, is missing or does not fit (see the log)"
        if CUDA in available
        else f"this ONNX Runtime has no {CUDA}: install onnxruntime-gpu in place of onnxruntime"
    )
    said = f"asked for CUDA, got {', '.join(got) or 'nothing'}: {why}"
    if wanted == "cuda":
        raise WrongDevice(said)
    return Device("cpu", said)
