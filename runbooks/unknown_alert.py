"""What is said of an alert that the catalogue does not have: mistyped, or somebody's own rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["unknown_alert"]

# The name comes from outside, and the sentence goes to terminals and chats.
MOST_CHARACTERS = 60


def unknown_alert(alert: str | None, known: Iterable[str]) -> str:
    """Return a sentence, with a space before it, if an alert is none of the catalogue's; else an empty text.

    Args:
        alert: Name that was given; None when none was.
        known: The names of the catalogue.
    """
    names = {name.casefold(): name for name in known}
    if not alert or alert in names.values():
        return ""
    close = [names[name] for name in get_close_matches(alert.casefold(), names, n=3, cutoff=0.5)]
    meant = f" (close: {', '.join(close)})" if close else f" (it has: {', '.join(sorted(names.values()))})"
    shown = re.sub(r"[^\w.:-]", "?", alert[:MOST_CHARACTERS])
    return f" The catalogue has no alert {shown}{meant}; what is told goes by the time alone."
