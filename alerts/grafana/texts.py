"""Prometheus' alert texts as Grafana's templates: the few things that differ, and a refusal of what Grafana lacks."""

from __future__ import annotations

import re
from typing import Final

from alerts.grafana.model import FormatError

__all__ = ["QUERY", "grafana_text"]

# The step of a rule that asks Prometheus; Grafana's own import of Prometheus rules uses the same name.
QUERY: Final = "query"
_ACTION: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_VALUE: Final = re.compile(r"\$value\b")
# Prometheus only: they ask its database, or name what its configuration holds.
_FOREIGN: Final = re.compile(
    r"\b(query|first|value|strvalue|sortByLabel|safeHtml|stripPort|stripDomain|parseDuration|toTime)\b"
    r"|\$external(Labels|URL)"
)


def grafana_text(text: str) -> str:
    """Return an annotation that says in Grafana what *text* says in Prometheus.

    `$value` is a sentence about all steps there; the number of the question is `$values.query.Value`.

    Args:
        text: An annotation with Prometheus' templates.

    Raises:
        FormatError: For a function or variable that Grafana does not have.
    """
    return _ACTION.sub(_action, text)


def _action(found: re.Match[str]) -> str:
    action = found[0]
    # Texts within quotes are arguments, not names.
    bare = _VALUE.sub("", re.sub(r'"[^"]*"', '""', action))
    if foreign := _FOREIGN.search(bare):
        raise FormatError(f"{action} uses {foreign[0]}, which Grafana's templates do not have")
    return _VALUE.sub(f"$values.{QUERY}.Value", action)
