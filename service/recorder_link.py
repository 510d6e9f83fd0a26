"""The one place where the service meets the flight recorder: attached, asked for the request's row, told the phases."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI

from probes import Identity, Record, Recorder, attach, batch_stage, current, define_stage
from probes.folder import prepare_folder
from probes.plan import FIXED_INDEX
from probes.private_file import write_private
from probes.settings import default_ring_dir
from probes.span_ids import stage_salt, stage_span_id
from service.lifecycle import Phase
from service.recording import NO_RECORD, Attribute, RequestRecord, StageHandle

__all__ = ["RecorderLink", "define_stages", "drift_of", "publish_reference", "traceparent"]

_log = logging.getLogger("service.recorder_link")

SERVICE: Final = "sentiment"
_NOTHING: Final[Mapping[str, float]] = {}
_SPAN_ID: Final = FIXED_INDEX["span_id"]


def define_stages(*, triton: bool = False) -> None:
    """Declare the service's stages and the types of their attributes, so that they share one revision of the rows.

    Args:
        triton: Those of a model behind Triton as well; each stage makes every row longer.
    """
    define_stage(
        "sentiment.preprocess",
        cpu=True,
        input_length=int,
        cleaned_length=int,
        language=str,
        non_ascii_ratio=float,
        digit_ratio=float,
        mark_ratio=float,
    )
    define_stage("scheduler.dispatch", queue_wait_ns=int, queue=str, queue_depth=int)
    define_stage(
        "sentiment.tokenizer",
        parent="scheduler.dispatch",
        tokens=int,
        truncated=bool,
        seq_len=int,
        padding_ratio=float,
        widest=bool,
        unknown_ratio=float,
    )
    define_stage(
        "photo.quality",
        cpu=True,
        queue_wait_ns=int,
        verdict=str,
        format=str,
        pixels=int,
        sharpness=float,
        brightness=float,
    )
    if triton:
        _define_triton()
    define_stage("fallback.cpu", parent="scheduler.dispatch", because=str, batch_size=int)
    define_stage("vectorizer", parent="fallback.cpu", seq_len=int, model_version=str)
    define_stage(
        "model.forward",
        parent="triton.client" if triton else "scheduler.dispatch",
        seq_len=int,
        batch_size=int,
        device_type=str,
        model_version=str,
    )
    define_stage("postprocess.confidence", where=str)


def _define_triton() -> None:
    define_stage(
        "triton.client",
        parent="scheduler.dispatch",
        batch_size=int,
        seq_len=int,
        pool_wait_ns=int,
        serialize_ns=int,
        wait_ns=int,
        deserialize_ns=int,
        status=int,
        error=str,
    )


def traceparent(record: RequestRecord, stage: str) -> str:
    """Return the W3C header that makes another process' spans children of a stage of the request, or "" without a row.

    Args:
        record: The request's row.
        stage: The stage in which the other process is asked.
    """
    if not isinstance(record, Record):
        return ""
    span = stage_span_id(record.row[_SPAN_ID], stage_salt(stage))
    # 01: recorded. Whether the exporter keeps the spans is decided when the request has ended.
    return f"00-{record.trace_id}-{span:016x}-01"


def drift_of(control: Mapping[str, Any]) -> Mapping[str, float]:
    """Return what rows tell of the inputs' drift: score and confidence weight, or nothing where the page has neither.

    Args:
        control: The exporter's control page.
    """
    found = control.get("drift")
    if not isinstance(found, dict):
        return _NOTHING
    score, weight = found.get("score"), found.get("weight")
    if not isinstance(score, float | int) or not isinstance(weight, float | int):
        return _NOTHING
    return {"data_drift_score": float(score), "confidence_weight": float(weight)}


def publish_reference(reference: Path, ring_dir: Path | None = None) -> None:
    """Lay what the training's texts looked like beside the rows, for an exporter that has no folder of models.

    Without it nothing but the drift is missing: a file that cannot be read or written is said, and the service goes on.

    Args:
        reference: The file beside the model that answers, some 75 kB.
        ring_dir: Folder of the rows; by default the service's.
    """
    folder = ring_dir or default_ring_dir(SERVICE)
    try:
        content = reference.read_bytes()
        prepare_folder(folder)
        write_private(folder / reference.name, content)
    except OSError as error:
        _log.warning("the exporter is not told what the model was trained on: %s", error)


class RecorderLink:
    """A recorder that may be absent.

    Args:
        app: The app to attach to, before it starts and after its other middleware, so that the recorder is outermost.
        enabled: False attaches nothing.
        config: Fingerprint of the settings, for the ring's header.
        build: Commit of the build, for the ring's header.
        triton: Whether the model is behind Triton.
    """

    def __init__(self, app: FastAPI, *, enabled: bool, config: str, build: str, triton: bool = False) -> None:
        self._recorder: Recorder | None = None
        if enabled:
            define_stages(triton=triton)
            self._recorder = attach(app, service=SERVICE, identity=Identity(build=build, config=config))

    def record(self) -> RequestRecord:
        """Return the row of the request that runs in this context, or what takes its place."""
        return current() or NO_RECORD

    @staticmethod
    def batch_stage(
        records: Sequence[RequestRecord], name: str, batch_id: int, attributes: dict[str, Attribute]
    ) -> AbstractContextManager[StageHandle]:
        """Enter one stage of many rows, those that there are."""
        rows = [record for record in records if isinstance(record, Record)]
        return batch_stage(rows, name, batch_id, **attributes)

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

    def drift(self) -> Mapping[str, float]:
        """Return how far inputs are from the training and what a confidence is worth then; empty while not known.

        The exporter says so on the control page, which expires.
        """
        if self._recorder is None:
            return _NOTHING
        return drift_of(self._recorder.control)

    def loss(self) -> Mapping[str, int]:
        """Return what the recorder could not write, by reason."""
        if self._recorder is None:
            return {}
        loss: Mapping[str, int] = self._recorder.status()["loss"]
        return loss
