"""What a dead letter holds, and how the folder of them is read.

Texts of reviews are never stored, in a dead letter neither: by default its text is a shape, in which every letter is an
a, every digit a 0, every Chinese character a 字 (an ideograph), and all else is as it came: that is what broke the
contract. With the setting `dead_letter_text: masked` it is the text itself with personal data masked.
"""

from __future__ import annotations

import json
import re
import secrets
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from service.filters.masking import MaskFormat, mask
from service.text.clean import drop_invisible, fold_width

__all__ = ["FOLDER", "NAME", "Failure", "Kept", "TextForm", "letter_of", "read_letters", "remove_letters"]

TextForm = Literal["shape", "masked"]
FOLDER: Final = "deadletters"
NAME: Final = "letters"
FORMAT: Final = 1
MOST_TEXT: Final = 256
"""Most characters of a text that are kept."""
# A line is longer than this only when somebody else wrote it.
_MOST_LINE_BYTES: Final = 16 * 1024

# Of any script.
_DIGIT: Final = re.compile(r"\d")
_IDEOGRAPH: Final = re.compile(r"[〇㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]")
# Letters in circles, brackets, squares, and those that make up flags are symbols to Unicode, and as legible.
_LETTER: Final = re.compile(r"[^\W\d_a字]|[\u2460-\u24ff\U0001f100-\U0001f1ff]")


@dataclass(frozen=True)
class Failure:
    """A request that is not judged, as it was when it was refused.

    Attributes:
        link: Link of the chain that refused it.
        status: Status of the answer.
        reason: Why, out of the contract's closed set.
        field: The part at fault; None when none can be named.
        trace_id: Of its row, 32 hexadecimal digits; empty without a recorder.
        body: What was sent; it stays in memory until the letter is written, and is not kept.
    """

    link: str
    status: int
    reason: str
    field: str | None
    trace_id: str
    body: bytes


@dataclass(frozen=True)
class Kept:
    """What was found in the folder.

    Attributes:
        letters: Oldest first.
        lost: Letters that could not be written, as far as that could be noted.
        unreadable: Lines that are none, such as one during which its writer was killed.
        size_bytes: Bytes of the files.
    """

    letters: tuple[dict[str, Any], ...]
    lost: int
    unreadable: int
    size_bytes: int


def letter_of(failure: Failure, text_form: TextForm, mask_format: MaskFormat) -> dict[str, Any]:
    """Return the letter that is kept of a failed request.

    Args:
        failure: The request and why it failed.
        text_form: What is kept of its text.
        mask_format: How personal data in it is masked.
    """
    text = _text_in(failure.body)
    letter: dict[str, Any] = {
        "format": FORMAT,
        "id": secrets.token_hex(8),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "trace_id": failure.trace_id,
        "link": failure.link,
        "status": failure.status,
        "reason": failure.reason,
        "field": failure.field,
        "body_bytes": len(failure.body),
        "text_form": text_form,
        "text": None,
        "text_length": None,
        "mask_format": mask_format,
        "masked": {},
    }
    if text is not None:
        # not cleaned further: cleaning takes handles and links apart, and e-mail addresses with them
        masked = mask(_fold_digits(fold_width(drop_invisible(text))) if text_form == "masked" else text, mask_format)
        shown = masked.text if text_form == "masked" else _shape(masked.text)
        letter |= {"text": shown[:MOST_TEXT], "text_length": len(text), "masked": dict(masked.counts)}
    return letter


def _fold_digits(text: str) -> str:
    """Return the text with the digits of all scripts as ASCII ones, the only ones in which numbers are looked for."""
    return _DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), text)


def _shape(text: str) -> str:
    text = _LETTER.sub("a", _IDEOGRAPH.sub("字", _DIGIT.sub("0", text)))
    return text.encode("utf-8", "replace").decode()


def _text_in(body: bytes) -> str | None:
    """Return the text of a document, if it is one; what else is in it may be anything and is not looked at."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, Mapping):
        return None
    # of a review, or of a message of the stream
    return next((text for name in ("text", "utterance") if isinstance(text := document.get(name), str)), None)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{NAME}-*.jsonl"))


def read_letters(folder: Path) -> Kept:
    """Return all letters in the folder; a folder that is not there holds none.

    Args:
        folder: Where the letters are.

    Raises:
        OSError: If a file cannot be read.
    """
    letters: list[dict[str, Any]] = []
    lost = unreadable = size = 0
    for path in _files(folder):
        try:
            size += path.stat().st_size
            lines = list(_lines(path))
        except FileNotFoundError:
            # Removed by its bound meanwhile.
            continue
        for line in lines:
            document = _document(line)
            if document is None:
                unreadable += 1
            elif "lost" in document:
                lost += int(document["lost"])
            else:
                letters.append(document)
    return Kept(tuple(letters), lost, unreadable, size)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(_MOST_LINE_BYTES):
            yield line


def _document(line: bytes) -> dict[str, Any] | None:
    """Return what the line holds: a letter of this format, or a note of losses; None when it is neither."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    whole = document.get("format") == FORMAT and isinstance(document.get("id"), str)
    return document if whole or isinstance(document.get("lost"), int) else None


def remove_letters(folder: Path) -> int:
    """Remove all letters and return how many bytes that were; a running service goes on with a new file.

    Raises:
        OSError: If a file cannot be removed.
    """
    removed = 0
    for path in _files(folder):
        size = path.stat().st_size
        path.unlink(missing_ok=True)
        removed += size
    return removed
