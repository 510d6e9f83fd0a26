"""What a refused request is told, in one shape, with reasons from a closed set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

__all__ = ["REASONS", "Field", "Reason", "Refusal", "error_body"]

Reason = Literal[
    "schema",
    "too_long",
    "illegal_characters",
    "body_too_large",
    "not_found",
    "method",
    "queue_full",
    "rate_limited",
    "expired",
    "memory",
    "other",
]
Field = Literal["text", "product_id", "body", "content-type"]

REASONS: Final[tuple[Reason, ...]] = (
    "schema",
    "too_long",
    "illegal_characters",
    "body_too_large",
    "not_found",
    "method",
    "queue_full",
    "rate_limited",
    "expired",
    "memory",
    "other",
)
"""Every reason there is; the labels of `model_refused_total`."""


class Refusal(Exception):  # noqa: N818 - says what is wrong
    """A request that gets an error instead of a judgement.

    Args:
        status: HTTP status.
        reason: Why, out of the closed set.
        message: One sentence for the caller, which never repeats what was sent.
        field: The part of the request at fault, where one can be named.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        reason: Reason,
        message: str,
        field: Field | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.field = field
        self.headers = dict(headers or {})


def error_body(reason: Reason, message: str, field: Field | None = None) -> bytes:
    """Return an error as the contract writes it, JSON in UTF-8."""
    return json.dumps({"error": {"reason": reason, "field": field, "message": message}}).encode()
