"""What a page expects of a step's value: `> 0.05`, `== true`, `present`. Judging is here; measuring is in the steps."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Expectation", "ExpectationError"]

_FORM = re.compile(r"^(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?(?:e-?\d+)?|true|false)$")
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}


class ExpectationError(ValueError):
    """An expectation that is written wrongly; the text says how to write it."""


@dataclass(frozen=True)
class Expectation:
    """One parsed expectation.

    Attributes:
        text: As the page has it.
        sign: Comparison, or "present".
        bound: What is compared with; true is 1, false is 0.
    """

    text: str
    sign: str
    bound: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Return the expectation that a text states.

        Raises:
            ExpectationError: If it is neither `present` nor a sign with a number, true or false.
        """
        stripped = text.strip()
        if stripped == "present":
            return cls(stripped, "present")
        match = _FORM.match(stripped)
        if not match:
            raise ExpectationError(f"expectation {text!r}: write `present`, or one of > >= < <= == and a number")
        word = match[2]
        bound = float(word == "true") if word in ("true", "false") else float(word)
        return cls(stripped, match[1], bound)

    def judge(self, value: float | str | bool | None) -> bool | None:
        """Return whether a value meets the expectation; None when there is no value to judge."""
        if value is None:
            return None
        if self.sign == "present":
            return bool(value)
        return None if isinstance(value, str) else _COMPARE[self.sign](float(value), self.bound)
