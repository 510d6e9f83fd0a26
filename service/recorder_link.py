"""The one place where the service meets the flight recorder: attached, asked for the request's row, told the phases."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI

from service.lifecycle import Phase
from service.recording import NO_RECORD, RequestRecord
from service.settings import Settings

__all__ = ["RecorderLink"]


class RecorderLink:
    """A recorder that may be absent."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        del app, settings

    def record(self) -> RequestRecord:
        """Return the row of the request that runs in this context, or what takes its place."""
        return NO_RECORD

    def phase(self, phase: Phase) -> None:
        """Tell the recorder where the service stands."""

    def loss(self) -> Mapping[str, int]:
        """Return what the recorder could not write, by reason."""
        return {}
