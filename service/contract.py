"""Judge a request's body by the contract (openapi.yaml), in a fixed order.

First the document against the schema (400), then the length of the text (422), then its characters (422). So a text
that is too long in a document with a bad product_id is 400: what is not the schema is not looked at further.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from service.errors import Field, Refusal
from service.text.contract import MAX_CHARACTERS, fits_contract, illegal_characters

__all__ = ["Sentiment", "SentimentAnswer", "SentimentRequest", "read_request"]

Sentiment = Literal["negative", "neutral", "positive"]


class SentimentRequest(BaseModel):
    """One review; its length above the minimum and its characters are judged apart, since they answer 422."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    text: Annotated[str, StringConstraints(min_length=1)]
    # Not `\d`, which takes Arabic and Devanagari digits as well.
    product_id: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}[0-9]{8}$")]


class SentimentAnswer(BaseModel):
    """One judgement, as tests and clients read it; the service itself writes it without this class."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sentiment: Sentiment
    confidence: float
    latency_ms: float
    degraded: bool = False


_NOT_JSON: Final = "the body is not valid JSON in UTF-8"
_PRODUCT_ID: Final = "product_id must be two capital letters and eight digits, such as AB12345678"
_TYPES: Final = {
    "missing": "{field} is missing",
    "string_type": "{field} must be a string",
    "string_too_short": "{field} must not be empty",
    "string_pattern_mismatch": _PRODUCT_ID,
}

# Two keys and two values have eight quotation marks between them. With any other count a key may be there twice, or a
# string may hold an escaped mark.
_QUOTES: Final = 8


def read_request(body: bytes) -> SentimentRequest:
    """Return the request that the body holds.

    Args:
        body: The whole body as received.

    Raises:
        Refusal: 400 when it is not JSON or not the schema, 422 when the text is too long or has illegal characters.
    """
    try:
        request = SentimentRequest.model_validate_json(body)
    except ValidationError as error:
        raise _schema_refusal(error) from None
    if body.count(b'"') != _QUOTES and _has_duplicate_keys(body):
        raise Refusal(400, "schema", "a field is there twice")
    text = request.text
    # fits_contract is the one test that nearly all requests need; what follows only finds the words for a refusal.
    if not fits_contract(text):
        if len(text) > MAX_CHARACTERS:
            message = f"text has {len(text)} characters; at most {MAX_CHARACTERS} are allowed"
            raise Refusal(422, "too_long", message, "text")
        named = ", ".join(illegal_characters(text))
        raise Refusal(422, "illegal_characters", f"text holds characters that are not allowed: {named}", "text")
    return request


def _schema_refusal(error: ValidationError) -> Refusal:
    """Return the refusal for the first error; the error itself, which quotes the input, is never passed on."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind, place = first["type"], first["loc"]
    field: Field | None = None
    if place and place[0] == "text":
        field = "text"
    elif place and place[0] == "product_id":
        field = "product_id"
    if kind == "extra_forbidden":
        return Refusal(400, "schema", "there is an unknown field; known are text and product_id")
    if field is not None:
        return Refusal(400, "schema", _TYPES.get(kind, "{field} is not valid").format(field=field), field)
    if kind == "model_type":
        return Refusal(400, "schema", "the body must be a JSON object")
    return Refusal(400, "schema", _NOT_JSON)


def _has_duplicate_keys(body: bytes) -> bool:
    """Return whether a key is there twice; the document is already known to be a flat object that fits the schema."""

    def count(pairs: list[tuple[str, Any]]) -> bool:
        return len(pairs) != len({key for key, _value in pairs})

    return bool(json.loads(body, object_pairs_hook=count))
