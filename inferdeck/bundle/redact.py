"""What a bundle may not hold: session ids become their keyed hashes, secrets and addresses go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["Redactor"]

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,32}")
# whatever a log calls a session id or a secret, known or not
NAMED = re.compile(
    r"(?i)\b((?:x-)?session[-_. ]?id|session|token|secret|password|passwd|api[-_]?key|authorization|cookie)"
    r"(\"?\s*[=:]\s*\"?)((?:bearer|basic)\s+)?[^\s\",;&]+"
)


class Redactor:
    """Masks texts.

    Args:
        sessions: Pairs of session id as stored and its keyed hash.
    """

    def __init__(self, sessions: Iterable[tuple[str, int]] = ()) -> None:
        self._sessions = {name: f"{number:016x}" for name, number in sessions if name and number}

    def know(self, sessions: Iterable[tuple[str, int]]) -> None:
        """Learn further session ids."""
        self._sessions |= {name: f"{number:016x}" for name, number in sessions if name and number}

    def nameless(self) -> Redactor:
        """Return a redactor that leaves no hash either: for texts in which an eraser could not find it."""
        found = Redactor()
        found._sessions = dict.fromkeys(self._sessions, "(session)")
        return found

    def text(self, text: str) -> str:
        """Return *text* without session ids and secrets."""
        from runbooks.redaction import redact

        named = NAMED.sub(lambda found: f"{found[1]}{found[2]}(removed)", str(redact(text)))
        # the whole token: an id inside a longer word is another word
        return TOKEN.sub(lambda found: self._sessions.get(found[0], found[0]), named)

    def value(self, value: object) -> object:
        """Return a JSON value with its texts masked."""
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return self.text(value) if isinstance(value, str) else value

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines of a log, masked."""
        return (self.text(line) for line in lines)
