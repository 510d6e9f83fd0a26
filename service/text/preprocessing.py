"""What becomes of a text before the model reads it: one cleaning and one chunking, with one fingerprint of both.

Training writes the fingerprint beside the model, serving compares it with its own when it starts: a model that was
trained on texts cleaned or cut in another way answers, but not as its card says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from service.text.chunks import CHUNKING, Chunking, chunking_fingerprint
from service.text.clean import STEPS, Step, fingerprint

__all__ = ["PREPROCESSING", "STEP_NAMES", "Preprocessing", "preprocessing_without"]

STEP_NAMES: Final = tuple(name for name, _version, _step in STEPS)


@dataclass(frozen=True)
class Preprocessing:
    """Cleaning and chunking as one.

    Attributes:
        steps: Name, version and function of each cleaning step, in their order.
        chunking: How long texts are cut.
    """

    steps: tuple[tuple[str, int, Step], ...] = STEPS
    chunking: Chunking = CHUNKING

    def clean(self, text: str) -> str:
        """Return the text after all steps."""
        for _name, _version, step in self.steps:
            text = step(text)
        return text

    @property
    def cleaning_fingerprint(self) -> str:
        """The cleaning's alone; models of before there was chunking hold that and no other."""
        return fingerprint(self.steps)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when the code or the parameters of either do."""
        told = f"{self.cleaning_fingerprint} {chunking_fingerprint(self.chunking)}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]


PREPROCESSING: Final = Preprocessing()
"""What training uses, and serving unless a setting says otherwise."""


def preprocessing_without(names: Iterable[str]) -> Preprocessing:
    """Return the preprocessing without some cleaning steps.

    Args:
        names: Of the steps that are left out.

    Raises:
        ValueError: If there is no step of a name.
    """
    left_out = set(names)
    unknown = sorted(left_out - set(STEP_NAMES))
    if unknown:
        raise ValueError(f"no cleaning step {', '.join(unknown)}; there are {', '.join(STEP_NAMES)}")
    return Preprocessing(tuple(step for step in STEPS if step[0] not in left_out))
