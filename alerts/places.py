"""Where something stands in the catalogue: file and line, as an editor opens them."""

from __future__ import annotations

from pathlib import Path

from alerts.yaml_text import YamlError, parse

__all__ = ["place"]


def place(path: Path, key: str, word: str = "") -> str:
    """Return `file:line` of a key of a catalogue's file, or of a word in what stands there.

    Args:
        path: The file.
        key: A key of its top level; the first line where it has none of that name.
        word: Looked for from the key's line on; a text of several lines is found where it says so.
    """
    try:
        text = path.read_text(encoding="utf-8")
        line = parse(text)[1].get((key,), 1)
    except (OSError, UnicodeDecodeError, YamlError):
        return path.name
    if word:
        numbered = enumerate(text.splitlines()[line - 1 :], line)
        line = next((number for number, one in numbered if word in one), line)
    return f"{path.name}:{line}"
