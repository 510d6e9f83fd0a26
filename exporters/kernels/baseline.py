"""The baseline of kernel times on disk: per model, kernel and shape, with the environment that it was taken in.

It is learned once and then stands, over upgrades too: a kernel that an upgrade made slower is found because the
baseline is older than the upgrade. Removing the file, or a new model, learns anew.

Memory and disk: KERNEL_LIMIT kernels x LEARN_WINDOWS numbers a model and shape, 8 of these.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from probes.private_file import write_private

__all__ = ["LEARN_WINDOWS", "Baseline", "BaselineStore"]

# Fewer windows tell too little about how much the times move by themselves.
LEARN_WINDOWS: Final = 8
_MOST_BASELINES: Final = 8
_MOST_BYTES: Final = 1 << 20
_FORMAT: Final = "inferdeck-kernels/1"

_log = logging.getLogger(__name__)


@dataclass
class Baseline:
    """What a model's kernels took when they were first seen.

    Attributes:
        environment: Versions that it was taken with.
        since_unix: When its first window was taken, seconds since 1970.
        fastest_seconds: Kernel -> fastest run of each of its windows.
    """

    environment: dict[str, str]
    since_unix: float
    fastest_seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def windows(self) -> int:
        """How many windows it is made of."""
        return max(map(len, self.fastest_seconds.values()), default=0)

    @property
    def complete(self) -> bool:
        """Whether it may be judged by."""
        return self.windows >= LEARN_WINDOWS

    def add(self, fastest_seconds: Mapping[str, float]) -> None:
        """Add one window."""
        for kernel, seconds in fastest_seconds.items():
            self.fastest_seconds.setdefault(kernel, []).append(seconds)


class BaselineStore:
    """The file."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a file that cannot be used is left to be replaced, and that is said.

        Args:
            path: Where; its folder exists.
        """
        self._path = path
        self._found: dict[str, Baseline] = {}
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("kernel baseline %s cannot be read (%s): learning anew", path, error.strerror)
            return
        try:
            self._found = _parse(content)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            _log.warning("kernel baseline %s makes no sense (%s): learning anew", path, str(error)[:100])

    def get(self, model: str, shape: str) -> Baseline | None:
        """Return the baseline of a model at a shape."""
        return self._found.get(f"{model} {shape}")

    def put(self, model: str, shape: str, baseline: Baseline) -> None:
        """Keep a baseline; the oldest ones go when there are too many.

        Raises:
            OSError: If it cannot be written; it is kept in memory all the same.
        """
        self._found[f"{model} {shape}"] = baseline
        for key in sorted(self._found, key=lambda key: self._found[key].since_unix)[:-_MOST_BASELINES]:
            del self._found[key]
        form = {
            "format": _FORMAT,
            "baselines": {
                key: {
                    "environment": one.environment,
                    "since_unix": one.since_unix,
                    "fastest_seconds": one.fastest_seconds,
                }
                for key, one in self._found.items()
            },
        }
        write_private(self._path, json.dumps(form, separators=(",", ":")).encode())


def _parse(content: bytes) -> dict[str, Baseline]:
    """Return what a file holds.

    Raises:
        ValueError: If it is not one of ours.
    """
    if len(content) > _MOST_BYTES:
        raise ValueError("too large")
    form: Any = json.loads(content)
    if form["format"] != _FORMAT:
        raise ValueError("another format")
    found = {}
    for key, one in form["baselines"].items():
        times = {str(kernel): [float(value) for value in values] for kernel, values in one["fastest_seconds"].items()}
        if any(not 0 <= value < float("inf") for values in times.values() for value in values):
            raise ValueError("a time that is none")
        environment = {str(name): str(value) for name, value in one["environment"].items()}
        found[str(key)] = Baseline(environment, float(one["since_unix"]), times)
    return found
