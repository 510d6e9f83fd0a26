"""What Grafana fills into a query before it asks: its own macros, and the reader's choices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Moment", "fill", "variables_in"]

# `$name`, `${name}`, `${name:format}`, `[[name]]`; dots belong to what Grafana fills in at a click.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.]*)(?::[^}]*)?\}|\$([A-Za-z_]\w*)|\[\[(\w+)\]\]")


@dataclass(frozen=True)
class Moment:
    """What is on the screen.

    Attributes:
        start, end: Seconds since 1970.
        step: Seconds between two points.
        scrape: Seconds between two scrapes, as the data source says.
        choices: Variable -> what its values are replaced by; All is `.*`.
    """

    start: float
    end: float
    step: float = 15.0
    scrape: float = 15.0
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate_interval(self) -> float:
        """Grafana's `$__rate_interval`: four scrapes at least, and never less than a step and a scrape."""
        return max(self.step + self.scrape, 4 * self.scrape)


def fill(text: str, moment: Moment) -> str:
    """Return a query as Grafana would send it.

    Args:
        text: PromQL, or a variable's question.
        moment: What is on the screen.

    Raises:
        KeyError: For a variable that is neither Grafana's nor chosen.
    """
    macros = {
        "__rate_interval": f"{moment.rate_interval:.0f}s",
        "__interval": f"{moment.step:.0f}s",
        "__interval_ms": f"{moment.step * 1000:.0f}",
        "__range": f"{max(moment.end - moment.start, 1):.0f}s",
        "__range_s": f"{max(moment.end - moment.start, 1):.0f}",
        "__range_ms": f"{max(moment.end - moment.start, 1) * 1000:.0f}",
        **moment.choices,
    }
    return _VARIABLE.sub(lambda match: macros[match[1] or match[2] or match[3]], text)


def variables_in(text: str) -> set[str]:
    """Return the names of the variables in a text, Grafana's own (`__...`) left out."""
    names = {match[1] or match[2] or match[3] for match in _VARIABLE.finditer(text)}
    return {name for name in names if not name.startswith("__")}
