"""The compose file as data: variables filled in, and the line where something stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["ComposeFile", "fill_in", "load_compose_file"]

# $$, or ${NAME}, ${NAME:-default}, ${NAME-default}, ${NAME:?message}; docker's further forms are not used here
_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:?[-?])(?P<word>[^{}]*))?\}")


def fill_in(text: str, variables: Mapping[str, str]) -> str:
    """Return a value of the compose file as docker compose would read it.

    Args:
        text: The value.
        variables: The environment; a required variable that is missing becomes `<NAME>`.
    """

    def value(match: re.Match[str]) -> str:
        name, how, word = match["name"], match["how"] or "", match["word"] or ""
        if name is None:
            return "$"
        known = variables.get(name)
        if known is None or (known == "" and how.startswith(":")):
            return f"<{name}>" if how.endswith("?") else word
        return known

    return _VARIABLE.sub(value, text)


@dataclass(frozen=True)
class ComposeFile:
    """A compose file that could be read.

    Attributes:
        path: Where it is.
        text: As it stands there.
        raw: The document, variables not filled in.
    """

    path: Path
    text: str
    raw: dict[str, Any]

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        """Return the parts by name."""
        return dict(self.raw.get("services") or {})

    def line_of(self, service: str, word: str = "") -> int:
        """Return the line of *word* inside a part, else of the part itself; 1 when neither is found."""
        lines = self.text.splitlines()
        start = next((at for at, line in enumerate(lines, 1) if line.startswith(f"  {service}:")), 0)
        if not start:
            return 1
        for at, line in enumerate(lines[start:], start + 1):
            if re.match(r" {0,2}\S", line) and not line.lstrip().startswith("#"):
                break
            if word and word in line:
                return at
        return start

    def variables_with_default(self) -> dict[str, set[str]]:
        """Return the defaults that the file gives to each variable."""
        found: dict[str, set[str]] = {}
        for match in _VARIABLE.finditer(self.text):
            if match["name"] and (match["how"] or "").endswith("-"):
                found.setdefault(match["name"], set()).add(match["word"])
        return found


def load_compose_file(path: Path) -> ComposeFile:
    """Read a compose file.

    Args:
        path: The file.

    Raises:
        OSError, ValueError: If it cannot be read, or is no compose file; the message is one line.
    """
    text = path.read_text(encoding="utf-8")
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1 if mark else 1}: {getattr(error, 'problem', None) or error}") from error
    services = raw.get("services") if isinstance(raw, dict) else None
    if not isinstance(services, dict) or not all(isinstance(one, dict) for one in services.values()):
        raise ValueError("line 1: it has no services")
    return ComposeFile(path, text, raw)
