"""Grafana's ids of units, as the library lists them."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

__all__ = ["UNITS"]

UNITS: Final = frozenset(
    value for name, value in vars(units).items() if not name.startswith("_") and isinstance(value, str)
) | {"dateTimeFromNow"}
