"""Grafana's policies and mute timings as an Alertmanager configuration: amtool can judge one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from alerts.grafana.model import variables

__all__ = ["alertmanager_of", "expanded"]


def alertmanager_of(
    policies: Mapping[str, Any],
    mute_times: Sequence[Mapping[str, Any]],
    contact_points: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the configuration whose routes are the policies'.

    Args:
        policies: One entry of `policies`, expanded.
        mute_times: The entries of `muteTimes`.
        contact_points: The entries of `contactPoints`; every one becomes a receiver that sends nothing.
    """
    return {
        "route": _route({key: value for key, value in policies.items() if key != "orgId"}),
        "time_intervals": [
            {"name": timing["name"], "time_intervals": timing["time_intervals"]} for timing in mute_times
        ],
        "receivers": [{"name": point["name"]} for point in contact_points],
    }


def _route(route: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in route.items() if key not in ("object_matchers", "routes")}
    if "object_matchers" in route:
        found["matchers"] = [f'{name}{sign}"{value}"' for name, sign, value in route["object_matchers"]]
    if "routes" in route:
        found["routes"] = [_route(below) for below in route["routes"]]
    return found


def expanded(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a value with its variables replaced as Grafana does: an unset one is empty, `$$` is a `$`.

    Args:
        value: A text, or lists and mappings that hold texts.
        environ: The variables.

    Raises:
        FormatError: For a lone `$`.
    """
    if isinstance(value, Mapping):
        return {key: expanded(one, environ) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [expanded(one, environ) for one in value]
    if not isinstance(value, str):
        return value
    variables(value)
    return re.sub(
        r"\$(?:\{(\w+)\}|(\w+)|\$)",
        lambda found: environ.get(found[1] or found[2], "") if found[1] or found[2] else "$",
        value,
    )
