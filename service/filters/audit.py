"""The audit of the filter chain: which link did what to which request, and never what the request said."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from service.deadletters.journal import Journal
from service.recording import RequestRecord

__all__ = ["AUDIT_FOLDER", "Audit", "trace_id_of"]

AUDIT_FOLDER: Final = "audit"


def trace_id_of(record: RequestRecord) -> str:
    """Return the trace id of the request's row, empty without a recorder."""
    found = getattr(record, "trace_id", "")
    return found if isinstance(found, str) else ""


class Audit:
    """Writes a share of the links' doings to a bounded journal.

    Args:
        journal: Where it is written; None: nowhere.
        shares: Link -> share of its doings that is written, 0 to 1; 1 for a link that is not there.
    """

    def __init__(self, journal: Journal | None, shares: Mapping[str, float]) -> None:
        self._journal = journal
        self._shares = dict(shares)
        self._numbers = {link: count() for link in shares}

    def note(self, link: str, record: RequestRecord, action: str, what: Mapping[str, Any]) -> None:
        """Note what a link did.

        Args:
            link: Which one.
            record: The request's row, for its trace id.
            action: refused, masked, marked, failed or skipped.
            what: Words from closed sets and numbers: reason, field, kinds. Never values of a request.
        """
        if self._journal is None or not self._in_sample(link):
            return
        at = time.time()
        entry = {"at": round(at, 3), "link": link, "action": action, "trace_id": trace_id_of(record), **what}
        self._journal.put(lambda: entry)

    def close(self) -> None:
        """Write what waits, within two seconds."""
        if self._journal is not None:
            self._journal.close()

    def _in_sample(self, link: str) -> bool:
        share = self._shares.get(link, 1.0)
        if share >= 1.0:
            return True
        # Spread evenly, and without chance: of a share of 0.1 every tenth.
        number = next(self._numbers[link])
        return int((number + 1) * share) > int(number * share)
