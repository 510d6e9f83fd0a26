"""One message of the stream, and the contract that it is held to (requirements, row B3).

A message is a JSON object in UTF-8 with exactly four fields. Its identity is all of them together: a producer that
sends again sends the same bytes or at least the same values, and there is no other id in the contract.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

__all__ = ["DEVICES", "LETTER_REASONS", "Header", "Message", "Reason", "Refused", "UserQuery", "read_query"]

Reason = Literal["too_large", "not_json", "schema", "late", "future"]
LETTER_REASONS: Final[tuple[Reason, ...]] = ("too_large", "not_json", "schema", "late", "future")
DEVICES: Final = ("mobile", "web", "app")
Header = tuple[str, bytes | None]

# RFC 3339: date and time with a zone. Not pydantic's own datetime, which also takes texts of digits for seconds.
_TIMESTAMP: Final = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$"
# Four keys and four values have 16 quotation marks: any other count may be a key that is there twice.
_QUOTES: Final = 16


class Message(NamedTuple):
    """A message as its source hands it over.

    Attributes:
        partition: Part of the source that it comes from: a number of a topic's, a file's name.
        position: Where that part is read on from once the message is done.
        value: Its bytes; None for none, or for more than the source would hold.
        size: Bytes that it really has.
        headers: Its headers, in order.
        stamp_ns: When the source took it, ns since 1970; None where the source does not know.
    """

    partition: str
    position: int
    value: bytes | None
    size: int
    headers: Sequence[Header] = ()
    stamp_ns: int | None = None


class UserQuery(BaseModel):
    """What somebody asked, from which kind of device, and when."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    session_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{16,32}$")]
    utterance: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    timestamp: Annotated[str, StringConstraints(pattern=_TIMESTAMP)]
    device_type: Literal["mobile", "web", "app"]


class Refused(Exception):  # noqa: N818 - reads as what it says
    """A message is none of the contract's; the reason is a word of a closed list.

    Args:
        reason: Why.
        field: The field at fault, where one can be named.
    """

    def __init__(self, reason: Reason, field: str | None = None) -> None:
        super().__init__(reason if field is None else f"{reason}: {field}")
        self.reason: Reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Read:
    """A message that fits the contract, with what follows from it alone.

    Attributes:
        query: The message.
        event_ns: Its own time, ns since 1970.
    """

    query: UserQuery
    event_ns: int

    def identity(self, key: bytes) -> bytes:
        """Return 8 bytes that are the same for the same message, and tell nobody without *key* what was asked."""
        query = self.query
        whole = f"{query.session_id}\0{self.event_ns}\0{query.device_type}\0{query.utterance}"
        return blake2b(whole.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()


def read_query(message: Message, most_bytes: int) -> Read:
    """Return what the message says.

    Args:
        message: As the source handed it over.
        most_bytes: A larger one is not looked at.

    Raises:
        Refused: too_large, not_json or schema.
    """
    value = message.value
    if message.size > most_bytes:
        raise Refused("too_large")
    if not value:
        raise Refused("not_json")
    try:
        query = UserQuery.model_validate_json(value)
    except ValidationError as error:
        raise _refusal(error) from None
    if value.count(b'"') != _QUOTES and _has_duplicate_keys(value):
        raise Refused("schema")
    try:
        moment = datetime.fromisoformat(query.timestamp)
        # rounded once, in microseconds: floats have no room for nanoseconds of today
        event_ns = round(moment.timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError):
        # the 30th of February
        raise Refused("schema", "timestamp") from None
    return Read(query, event_ns)


def _refusal(error: ValidationError) -> Refused:
    """Return the refusal for the first error; the error itself, which quotes the input, is never passed on."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return Refused("not_json")
    place = first["loc"]
    known = bool(place) and place[0] in UserQuery.model_fields
    return Refused("schema", str(place[0]) if known else None)


def _has_duplicate_keys(value: bytes) -> bool:
    def count(pairs: list[tuple[str, Any]]) -> bool:
        return len(pairs) != len({key for key, _value in pairs})

    return bool(json.loads(value, object_pairs_hook=count))
