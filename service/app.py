"""The service, put together; `create_app` is the factory that uvicorn's workers call.

From outside in: recorder, the middleware of the settings, FastAPI with the one route of the contract and the contract
itself.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from service.backend import Backend
from service.endpoint import Limits, SentimentEndpoint
from service.errors import Reason, error_body
from service.identity import commit
from service.loading import load_onnx
from service.plugins import load_middleware
from service.predict import Predictor
from service.recorder_link import RecorderLink
from service.settings import Settings, load_settings
from service.startup import Startup
from service.worker import Worker

__all__ = ["create_app", "load_model"]

_log = logging.getLogger("service.app")

LoadModel = Callable[[Settings], Backend]

# What Starlette's routing answers by itself: status, reason, message.
_ROUTING: Final[dict[int, tuple[Reason, str]]] = {
    404: ("not_found", "there is nothing at this path; the service answers POST /v1/sentiment"),
    405: ("method", "this path does not take this method; see the header Allow"),
}


class _NamedRoute(Route):
    """A plain route that leaves itself in the scope, as FastAPI's own do: rows take their route from there."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return match, {**child_scope, "route": self} if match is not Match.NONE else child_scope


def load_model(settings: Settings) -> Backend:
    """Load the model that the settings name, and say so where its training cleaned texts otherwise than this code."""
    backend, artifacts = load_onnx(settings.model_dir, settings.memory_reserve_bytes)
    if not artifacts.cleaning_matches:
        _log.warning("the model was trained with other cleaning than this code's; mend: inferdeck train")
    return backend


def create_app(settings: Settings | None = None, load: LoadModel = load_model) -> FastAPI:
    """Return the service as an ASGI app.

    Args:
        settings: The settings; read from files and environment unless given.
        load: Loads the model; called in a thread while the app starts.

    Raises:
        SettingsError: If a setting cannot be used, a middleware of the settings included.
    """
    settings = settings or load_settings()
    worker: Worker

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        worker.start()
        try:
            yield
        finally:
            worker.stop()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    middleware = [load_middleware(name) for name in settings.middleware]
    app.add_middleware(Startup, middleware=middleware, worker=lambda: worker)
    # Last, hence outermost: what the middleware of the settings does is part of the request that is recorded.
    build = commit()
    link = RecorderLink(app, enabled=settings.recorder, config=settings.fingerprint, build=build)
    worker = Worker(settings, functools.partial(load, settings), link, build)
    app.state.worker = worker
    endpoint = SentimentEndpoint(
        worker.lifecycle,
        Predictor(worker.executor, settings.deadline_seconds),
        Limits(settings.body_limit_bytes, settings.receive_timeout_seconds),
        link.record,
    )
    app.router.routes.append(_NamedRoute("/v1/sentiment", endpoint, methods=["POST"]))
    app.router.routes.append(_NamedRoute("/openapi.yaml", _contract, methods=["GET"]))

    async def routing_error(_request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = getattr(error, "headers", None)
        reason, message = _ROUTING.get(status, ("other", "the service failed on this request"))
        if status < 500:
            link.record().refused(reason)
        return Response(error_body(reason, message), status, headers, "application/json")

    app.add_exception_handler(HTTPException, routing_error)
    app.add_exception_handler(Exception, routing_error)
    return app


async def _contract(_request: Request) -> Response:
    """Serve the contract's source, not one that a framework derives from code."""
    return Response(_contract_text(), media_type="application/yaml")


@functools.cache
def _contract_text() -> bytes:
    return files("service").joinpath("openapi.yaml").read_bytes()
