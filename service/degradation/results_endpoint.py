"""GET /v1/results/{id}: the answer to a request that got 202, from whichever worker is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from service.degradation.fallback import Deferred
from service.degradation.results import ResultStore
from service.errors import error_body
from service.recording import RequestRecord

__all__ = ["PATH", "accepted", "results_endpoint"]

PATH: Final = "/v1/results/{id}"
_JSON: Final = "application/json"
_GONE: Final = {
    "unknown": (404, "not_found", "there is no such result; it may never have been promised"),
    "expired": (410, "expired", "the result has expired; ask anew"),
}


def accepted(deferred: Deferred) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Return status, body and headers of an answer that will be there later."""
    place, seconds = f"/v1/results/{deferred.number}", str(deferred.retry_seconds)
    body = json.dumps({"result": place, "retry_after_s": deferred.retry_seconds}, separators=(",", ":")).encode()
    return (
        202,
        body,
        [(b"location", place.encode()), (b"retry-after", seconds.encode()), (b"cache-control", b"no-store")],
    )


def results_endpoint(store: ResultStore, record: Callable[[], RequestRecord]) -> Callable[[Request], object]:
    """Return the route's endpoint.

    Args:
        store: Where the results are.
        record: Returns the row of the request that runs in this context.
    """

    async def result(request: Request) -> Response:
        number: str = request.path_params["id"]
        found = store.get(number)
        if found == "pending":
            status, body, headers = accepted(Deferred(number, 1))
            return Response(body, status, {name.decode(): value.decode() for name, value in headers}, _JSON)
        if isinstance(found, str):
            status, reason, message = _GONE[found]
            record().refused(reason)
            return Response(error_body(reason, message), status, media_type=_JSON)  # type: ignore[arg-type]  # of _GONE
        headers_told = {"x-degraded": str(found.pop("reason")), "cache-control": "no-store"}
        return Response(json.dumps(found, separators=(",", ":")), 200, headers_told, _JSON)

    return result
