"""The service, put together; `create_app` is the factory that uvicorn's workers call.

From outside in: recorder, the middleware of the settings, FastAPI with the routes of the contract and the contract
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

from service.artifacts import REFERENCE_FILE
from service.backend import Backend, BackendError, OnnxBackend
from service.canary.assemble import CanaryPart
from service.chosen_model import load_chosen
from service.degradation.assemble import DegradedParts
from service.degradation.results_endpoint import PATH, results_endpoint
from service.endpoint import Limits, SentimentEndpoint
from service.errors import Reason, error_body
from service.filters.chain import FilterChain, open_chain
from service.identity import commit
from service.photos import PhotoEndpoint, PhotoLimits
from service.plugins import load_middleware
from service.postprocess.confidence import InProcess, Postprocess
from service.predict import Predictor
from service.recorder_link import RecorderLink, publish_reference
from service.scheduler.assemble import priority_rule, scheduler
from service.settings import Settings, load_settings
from service.startup import Startup
from service.state_folder import state_folder
from service.text.preprocessing import preprocessing_without
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
    backend, artifacts = load_chosen(settings)
    if settings.recorder:
        publish_reference(artifacts.folder / REFERENCE_FILE)
    found = backend.preprocess = artifacts.fingerprints(preprocessing_without(settings.cleaning_without))
    if not found.match:
        _log.warning(
            "the model was trained on texts cleaned and cut otherwise than here (fingerprint %s, here %s); mend: %s",
            found.trained,
            found.served,
            "unset INFERDECK_SERVICE_CLEANING_WITHOUT" if settings.cleaning_without else "inferdeck train",
        )
    return backend if settings.backend == "onnx" else _behind_triton(backend, settings)


def _behind_triton(local: OnnxBackend, settings: Settings) -> Backend:
    from service.backend_triton import TritonBackend
    from service.breaker import Breaker
    from service.triton.repository import MODEL
    from service.triton.transport import TritonHttp

    try:
        triton = TritonHttp(settings.triton_host, settings.triton_port, MODEL, settings.triton_connections)
    except ImportError as error:
        raise BackendError(f"{error.name} is missing; run `pip install 'inferdeck[triton]'`") from error
    return TritonBackend(
        local,
        triton,
        Breaker(),
        served=settings.triton_version,
        timeout_seconds=settings.triton_timeout_seconds,
        pad_tokens=settings.triton_pad_tokens,
    )


def _postprocess(settings: Settings) -> Postprocess:
    if settings.postprocess_socket is None:
        return InProcess()
    from service.postprocess.remote import OverSocket

    return OverSocket(settings.postprocess_socket, settings.postprocess_timeout_seconds)


def _filters(settings: Settings) -> FilterChain:
    return open_chain(
        settings.records_dir or state_folder(),
        letter_bytes=settings.dead_letter_bytes,
        audit_bytes=settings.audit_bytes,
        audit_shares=dict(settings.audit_shares.items()),
        mask_format=settings.pii_mask_format,
        text_form=settings.dead_letter_text,
        preprocessing=preprocessing_without(settings.cleaning_without),
    )


def _photos(settings: Settings, link: RecorderLink) -> PhotoEndpoint:
    limits = PhotoLimits(
        settings.photo_limit_bytes, settings.receive_timeout_seconds, settings.photo_places, settings.photo_pixels
    )
    return PhotoEndpoint(limits, link.record)


def _link(app: FastAPI, settings: Settings, build: str) -> RecorderLink:
    triton = settings.backend == "triton"
    return RecorderLink(app, enabled=settings.recorder, config=settings.fingerprint, build=build, triton=triton)


def create_app(settings: Settings | None = None, load: LoadModel = load_model) -> FastAPI:
    """Return the service as an ASGI app.

    Args:
        settings: The settings; read from files and environment unless given.
        load: Loads the model; called in a thread while the app starts.

    Raises:
        SettingsError: If a setting cannot be used, a middleware or a key of the settings included.
    """
    settings = settings or load_settings()
    priority = priority_rule(settings)
    worker: Worker

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        running = (worker, photos, degraded, canary)
        for part in running:
            part.start()
        try:
            yield
        finally:
            for part in running:
                part.stop()
            filters.close()
            await postprocess.close()
            close_tracing()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    middleware = [load_middleware(name) for name in settings.middleware]
    app.add_middleware(Startup, middleware=middleware, worker=lambda: worker)
    # Last, hence outermost: what the middleware of the settings does is part of the request that is recorded.
    build = commit()
    link = _link(app, settings, build)
    worker = Worker(settings, functools.partial(load, settings), link, build)
    app.state.worker = worker
    filters = app.state.filters = _filters(settings)
    postprocess = _postprocess(settings)
    degraded = DegradedParts(settings)
    worker.degraded, worker.on_model = degraded.snapshot, degraded.model_loaded
    queues = scheduler(settings, worker.executor, worker.vip_executor, link.batch_stage, gate=degraded.gate)
    canary = CanaryPart(settings, lambda: worker.lifecycle.backend, queues, link.batch_stage)
    worker.canary = canary.versions.view
    endpoint = SentimentEndpoint(
        worker.lifecycle,
        Predictor(queues, link.drift, postprocess, degraded.answers, canary.route),
        Limits(settings.body_limit_bytes, settings.receive_timeout_seconds),
        filters=filters,
        record=link.record,
        priority=priority.get_priority,
    )
    app.router.routes.append(_NamedRoute("/v1/sentiment", endpoint, methods=["POST"]))
    photos = _photos(settings, link)
    app.router.routes.append(_NamedRoute("/v1/photos", photos, methods=["POST"]))
    app.router.routes.append(_NamedRoute(PATH, results_endpoint(degraded.store, link.record), methods=["GET"]))
    app.router.routes.append(_NamedRoute("/openapi.yaml", _contract, methods=["GET"]))
    _tell_errors(app, link)
    close_tracing = _traced(app) if settings.opentelemetry else _nothing
    return app


def _nothing() -> None:
    """End nothing: there is no tracing but ours."""


def _traced(app: FastAPI) -> Callable[[], None]:
    from service.otel_parent import instrument

    return instrument(app)


def _tell_errors(app: FastAPI, link: RecorderLink) -> None:
    """Answer in the contract's shape where the framework would in its own."""

    async def routing_error(_request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = getattr(error, "headers", None)
        reason, message = _ROUTING.get(status, ("other", "the service failed on this request"))
        if status < 500:
            link.record().refused(reason)
        return Response(error_body(reason, message), status, headers, "application/json")

    app.add_exception_handler(HTTPException, routing_error)
    app.add_exception_handler(Exception, routing_error)


async def _contract(_request: Request) -> Response:
    """Serve the contract's source, not one that a framework derives from code."""
    return Response(_contract_text(), media_type="application/yaml")


@functools.cache
def _contract_text() -> bytes:
    return files("service").joinpath("openapi.yaml").read_bytes()
