"""Postprocessing as a small web app: POST /v1/confidence, for a Unix socket beside the service."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI
from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, model_validator

from service.postprocess.confidence import verdict

__all__ = ["Logits", "VerdictBody", "create_app"]

# Three classes today; what bounds the body is that nothing larger is a classifier's answer to one text.
_MOST_CLASSES = 1000

_Finite = Annotated[float, AllowInfNan(False)]


class Logits(BaseModel):
    """What a model answered for one text."""

    model_config = ConfigDict(extra="forbid")

    logits: Annotated[list[_Finite], Field(min_length=1, max_length=_MOST_CLASSES)]
    temperature: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    labels: Annotated[list[Annotated[str, Field(max_length=64)]], Field(min_length=1, max_length=_MOST_CLASSES)]

    @model_validator(mode="after")
    def _as_many(self) -> Logits:
        if len(self.labels) != len(self.logits):
            raise ValueError("there must be as many labels as logits")
        return self


class VerdictBody(BaseModel):
    """The likeliest label and its calibrated probability."""

    label: str
    confidence: float


def create_app() -> FastAPI:
    """Return the app."""
    app = FastAPI(title="Postprocessing of logits", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/confidence")
    async def confidence(body: Logits) -> VerdictBody:
        found = verdict(body.logits, body.temperature, body.labels)
        return VerdictBody(label=found.label, confidence=found.confidence)

    return app
