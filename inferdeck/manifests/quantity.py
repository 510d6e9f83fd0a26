"""Kubernetes' quantities: 128Mi, 500m, 1e3."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["quantity", "share"]

_FORM: Final = re.compile(r"^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
_FACTORS: Final = {
    **{name: 1024.0**power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{name: 1000.0**power for power, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{name: 1000.0**-power for power, name in enumerate(("m", "u", "n"), 1)},
}


def quantity(text: str | float) -> float:
    """Return the value of a quantity (k8s.io/apimachinery, pkg/api/resource).

    Args:
        text: As it stands in an object.

    Raises:
        ValueError: If it is none.
    """
    match = _FORM.match(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is no quantity; write for example 500m, 2, 128Mi")
    number, suffix = float(match[1]), match[2] or ""
    return float(match[0]) if suffix[:1] in ("e", "E") and len(suffix) > 1 else number * _FACTORS.get(suffix, 1.0)


def share(value: str | int, whole: int, *, up: bool) -> int:
    """Return a number of pods that is given as such, or as a percentage of all.

    Args:
        value: 1 or "25%".
        whole: All pods.
        up: Round up (maxSurge, as the deployment controller does) or down (maxUnavailable).

    Raises:
        ValueError: If it is neither.
    """
    text = str(value).strip()
    if not re.fullmatch(r"[0-9]+%?", text):
        raise ValueError(f"{value!r} is neither a number of pods nor a percentage")
    if not text.endswith("%"):
        return int(text)
    exact = whole * int(text[:-1])
    return -(-exact // 100) if up else exact // 100
