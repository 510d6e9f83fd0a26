"""The mock: answers of the contract's examples, for those who write a client before there is a service."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.contract_mock.examples import Answer, Operation, operations

__all__ = ["create_mock"]

_WANTED: Final = re.compile(r"(?:^|[,;\s])(code|example)\s*=\s*([A-Za-z0-9_\-]{1,64})")
_TOO_LONG: Final = frozenset({"maxLength", "pattern"})


def create_mock(document: Mapping[str, Any], body_bytes: int = 16_384, photo_bytes: int = 8_388_608) -> Starlette:
    """Return the mock as an ASGI app.

    A request that does not fit the schema is answered as the service would, by status. The header
    `Prefer: code=429`, as other mocks read it, asks for an answer of that status, `Prefer: example=chinese` for an
    example by its name.

    Args:
        document: openapi.yaml as data.
        body_bytes: Most bytes of a body.
        photo_bytes: Most bytes of a photo.
    """
    known = operations(document)

    async def answer(request: Request) -> Response:
        body = await _body(request, photo_bytes if request.url.path == "/v1/photos" else body_bytes)
        return _answer(known, document, request, body)

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", answer, methods=methods)])


async def _body(request: Request, most: int) -> bytes | None:
    """Return the body, or None when it is over *most*."""
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > most:
            return None
    return content


def _answer(known: Sequence[Operation], document: Mapping[str, Any], request: Request, body: bytes | None) -> Response:
    here = [one for one in known if re.match(one.pattern, request.url.path)]
    # What no path of the contract answers is told by the first that knows the status.
    if not here:
        return _response(_first(known, 404), {})
    found = next((one for one in here if one.method == request.method), None)
    if found is None:
        return _response(_first([*here, *known], 405), {"allow": ", ".join(one.method for one in here)})
    if request.url.path == "/openapi.yaml":
        return Response(json.dumps(document, ensure_ascii=False), media_type="application/yaml")
    wanted = dict(_WANTED.findall(request.headers.get("prefer", "")))
    status = int(wanted["code"]) if wanted.get("code", "").isdigit() else _judged(found, body)
    if status not in found.answers:
        status = 400 if 400 in found.answers else min(found.answers)
    allowed = {"allow": ", ".join(one.method for one in here)} if status == 405 else {}
    return _response(found.answers[status], allowed, wanted.get("example", ""))


def _judged(operation: Operation, body: bytes | None) -> int:
    """Return the status that the contract has for the body."""
    if body is None:
        return 413
    if operation.schema is None:
        return min(operation.answers)
    try:
        content = json.loads(body)
    except ValueError:
        return 400
    errors = list(Draft202012Validator(dict(operation.schema)).iter_errors(content))
    if not errors:
        return min(operation.answers)
    # As the contract has it: 422 only where all that is wrong is the text's length or characters.
    only_text = all(list(one.path) == ["text"] and one.validator in _TOO_LONG for one in errors)
    return 422 if only_text and content["text"] else 400


def _first(known: Sequence[Operation], status: int) -> Answer:
    answers = (one.answers[status] for one in known if status in one.answers)
    return next((one for one in answers if one.body), Answer(status))


def _response(answer: Answer, headers: Mapping[str, str], example: str = "") -> Response:
    return Response(
        answer.text(example), answer.status, {**answer.headers, **headers}, answer.media_type or "application/json"
    )
