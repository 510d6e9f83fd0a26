"""From effect size to verdict: large, seen on enough requests, no accident however often one looks, and lasting.

Thresholds   effect 0.3: requirements row A8. Requests 200: the effect's own noise is below 0.1 (1.36 / sqrt(200)).
Looks        the k-th look at one of m features may err with alpha * 6 / (pi^2 k^2 m), whose sum over all looks and
             features is alpha: looking for ever finds a drift that is none with at most that probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Judge", "Rules", "State", "confidence_weight"]

State = Literal["few", "same", "suspected", "drift"]

_BASEL: Final = 6 / math.pi**2


@dataclass(frozen=True, slots=True)
class Rules:
    """When a distance is called drift.

    Attributes:
        effect: Least effect size, 0..1.
        rows: Fewest observations in the window.
        looks: So many looks in a row must find it, each with new observations.
        alpha: Probability of ever calling drift what is none, over all features and looks.
    """

    effect: float = 0.3
    rows: int = 200
    looks: int = 3
    alpha: float = 0.01


class Judge:
    """The verdict over one feature, look after look.

    Args:
        rules: When a distance is called drift.
        features: How many features are judged beside each other.
    """

    def __init__(self, rules: Rules, features: int) -> None:
        self._rules = rules
        self._features = max(1, features)
        self._looks = self._in_a_row = 0
        self.state: State = "few"

    def look(self, effect: float | None, p_value: float, rows: int) -> State:
        """Return the verdict after one more look.

        Args:
            effect: Effect size, 0..1; None where there is none.
            p_value: Probability of so large an effect without drift.
            rows: Observations in the window.
        """
        if effect is None or rows < self._rules.rows:
            self._in_a_row = 0
            self.state = "few"
            return self.state
        self._looks += 1
        allowed = self._rules.alpha * _BASEL / (self._looks**2 * self._features)
        found = effect > self._rules.effect and p_value < allowed
        self._in_a_row = self._in_a_row + 1 if found else 0
        lasting = self._in_a_row >= self._rules.looks
        self.state = "drift" if lasting else "suspected" if found else "same"
        return self.state


def confidence_weight(score: float) -> float:
    """Return what a confidence is worth while inputs have drifted: 1 less the score.

    A distance D of two distributions says that at least the share D of live inputs is where the training had none to
    match them; no more than the rest is covered by what the model has learnt.

    Args:
        score: Effect size, 0..1.
    """
    return min(1.0, max(0.0, 1.0 - score))
