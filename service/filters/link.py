"""One link of the chain: a step with a circuit breaker and an audit of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

from service.breaker import Breaker
from service.errors import Refusal
from service.filters.audit import Audit
from service.recording import RequestRecord

__all__ = ["LINKS", "Link", "LinkName"]

_log = logging.getLogger("service.filters")

LinkName = Literal["protocol", "schema", "pii", "quality"]
LINKS: Final[tuple[LinkName, ...]] = ("protocol", "schema", "pii", "quality")
"""The links, in their order; the model comes behind them."""

Given = TypeVar("Given")
Made = TypeVar("Made")


class Link:
    """A step that judges or changes requests; a refusal is its work, any other exception its failure.

    Args:
        name: Which link.
        audit: Where its doings are written down.
        required: What it does must be done: while it fails, requests are answered 503. One that is not required is
            left out meanwhile.
        breaker: After failures in a row it is not tried for a while.
    """

    def __init__(self, name: LinkName, audit: Audit, *, required: bool, breaker: Breaker | None = None) -> None:
        self.name: Final = name
        self.audit: Final = audit
        self.breaker: Final = breaker or Breaker()
        self._required = required
        # Most requests come while nothing fails: then nobody asks the breaker, which has a lock.
        self._troubled = False

    def run(self, step: Callable[[Given], Made], given: Given, record: RequestRecord, instead: Made | None) -> Made:
        """Return what the step makes of what it is given.

        Args:
            step: The work.
            given: Its argument.
            record: The request's row.
            instead: What stands in for the result where the link is left out; None where it is required.

        Raises:
            Refusal: The step's own; or 503 when the link is required and fails.
        """
        if self._troubled and not self.breaker.allow():
            return self._without(record, "skipped", instead)
        try:
            made = step(given)
        except Refusal:
            self._worked()
            raise
        except Exception as error:  # noqa: BLE001  a broken link must not take the request's connection down
            self._troubled = True
            self.breaker.failed()
            # Neither message nor stack: an exception may quote the text.
            _log.error("link %s failed: %s", self.name, type(error).__name__)
            return self._without(record, "failed", instead)
        self._worked()
        return made

    def _worked(self) -> None:
        if self._troubled:
            self.breaker.succeeded()
            self._troubled = self.breaker.state != "closed"

    def _without(self, record: RequestRecord, action: str, instead: Made | None) -> Made:
        record.set(filter_failed=self.name)
        self.note(record, action, {"breaker": self.breaker.state})
        if self._required or instead is None:
            message = f"the filter {self.name} does not work; ask again"
            raise Refusal(503, "other", message, headers={"retry-after": "1"})
        return instead

    def note(self, record: RequestRecord, action: str, what: Mapping[str, Any]) -> None:
        """Write down what the link did to a request, if it is one of the sample."""
        self.audit.note(self.name, record, action, what)
