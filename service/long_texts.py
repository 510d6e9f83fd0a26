"""A text longer than the model takes: its windows as rows of one call, and one answer of theirs.

Measures  tokens, label and confidence of each window, in the stage `postprocess.chunks` of the request's row; it and
          its attributes are declared by the first long text, so that rows of a service that gets none are no longer.
Source    the logits of the windows, which are averaged by the tokens that each has new.
Cost      nothing for a text of one window; the contract's 1,024 characters are at most four.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from service.backend import Backend, Encoded, Logits, NotANumber, pad
from service.postprocess.confidence import Verdict, verdict
from service.recording import NO_RECORD, Attribute, RequestRecord

__all__ = ["STAGE", "TOLD", "judged", "merged", "rows_of"]

STAGE: Final = "postprocess.chunks"
TOLD: Final = 4
"""Most windows that a row tells of, which bounds its columns; a text of the contract has no more."""


def rows_of(found: Encoded) -> list[list[int]]:
    """Return the rows of a text in the model's tensor: itself, or its windows."""
    return [window.ids for window in found.windows] or [found.ids]


def merged(logits: Logits, found: Encoded, backend: Backend, record: RequestRecord = NO_RECORD) -> Logits:
    """Return the logits of the text, [1, labels], from those of its rows; a long text's windows are told to its row.

    Args:
        logits: One row for each of `rows_of`.
        found: The text.
        backend: Whose temperature and labels make a window's confidence.
        record: The request's row.
    """
    if not found.windows:
        return logits
    # Attributes at its entrance: the first use of a stage declares it with them, in one revision of the rows.
    with record.stage(STAGE, **_told(logits, found, backend)):
        new = np.array([window.new for window in found.windows], dtype=np.float32)
        whole: Logits = (new @ logits / new.sum()).reshape(1, -1).astype(np.float32)
    return whole


def _told(logits: Logits, found: Encoded, backend: Backend) -> dict[str, Attribute]:
    told: dict[str, Attribute] = {"chunks": len(found.windows)}
    for number, (window, row) in enumerate(zip(found.windows[:TOLD], logits.tolist(), strict=False), 1):
        said = verdict(row, backend.temperature, backend.labels)
        told |= {
            f"chunk_{number}_tokens": len(window.ids),
            f"chunk_{number}_label": said.label,
            f"chunk_{number}_confidence": said.confidence,
        }
    return told


def judged(backend: Backend, texts: Sequence[str], rows: int = 32) -> list[Verdict]:
    """Return what the model says of cleaned texts of any length, in this process: for files, streams and jobs.

    Args:
        backend: The model.
        texts: Cleaned texts.
        rows: Most rows of one call, which bounds its memory.

    Raises:
        BackendError: As the backend's `forward`.
        NotANumber: If an answer is none.
    """
    answers: list[Verdict] = []
    for text in texts:
        found = backend.encode(text)
        parts = rows_of(found)
        logits = np.concatenate(
            [backend.forward(*pad(parts[place : place + rows])) for place in range(0, len(parts), rows)]
        )
        whole = merged(logits, found, backend)
        if not np.isfinite(whole).all():
            raise NotANumber("the model's output is no number")
        answers.append(verdict(whole[0].tolist(), backend.temperature, backend.labels))
    return answers
