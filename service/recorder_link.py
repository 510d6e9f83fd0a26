"""The one place where the service meets the flight recorder: attached, asked for the request's row, told the phases."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI

from probes import Identity, Recorder, attach, current, define_stage
from service.lifecycle import Phase
from service.recording import NO_RECORD, RequestRecord

__all__ = ["RecorderLink", "define_stages"]


def define_stages() -> None:
    """Declare the service's stages and the types of their attributes, so that they share one revision of the rows."""
    define_stage("sentiment.preprocess", cpu=True, input_length=int, cleaned_length=int)
    define_stage("scheduler.dispatch", queue_wait_ns=int)
    define_stage(
        "sentiment.tokenizer",
        parent="scheduler.dispatch",
        tokens=int,
        truncated=bool,
        seq_len=int,
        padding_ratio=float,
    )
    define_stage(
        "model.forward",
        parent="scheduler.dispatch",
        seq_len=int,
        batch_size=int,
        device_type=str,
        model_version=str,
    )
    define_stage("postprocess.confidence")


class RecorderLink:
    """A recorder that may be absent.

    Args:
        app: The app to attach to, before it starts and after its other middleware, so that the recorder is outermost.
        enabled: False attaches nothing.
        config: Fingerprint of the settings, for the ring's header.
        build: Commit of the build, for the ring's header.
    """

    def __init__(self, app: FastAPI, *, enabled: bool, config: str, build: str) -> None:
        self._recorder: Recorder | None = None
        if enabled:
            define_stages()
            self._recorder = attach(app, service="sentiment", identity=Identity(build=build, config=config))

    def record(self) -> RequestRecord:
        """Return the row of the request that runs in this context, or what takes its place."""
        return current() or NO_RECORD

    def phase(self, phase: Phase) -> None:
        """Tell the recorder where the service stands."""
        if self._recorder is None:
            return
        if phase == "ready":
            self._recorder.ready()
        else:
            self._recorder.phase(phase)

    def model_loaded(self, version: str) -> None:
        """Tell the recorder which model answers from now on."""
        if self._recorder is not None:
            self._recorder.identify(model=version)

    def loss(self) -> Mapping[str, int]:
        """Return what the recorder could not write, by reason."""
        if self._recorder is None:
            return {}
        loss: Mapping[str, int] = self._recorder.status()["loss"]
        return loss
