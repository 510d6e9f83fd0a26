"""A row for each message, as the service writes one for each request: found by session or trace, beside the HTTP ones.

Rows lie in a folder of their own below the service's, so that they count as no requests and move no alert of the
service; `inferdeck trace` looks into both. Trace, parent span and session come from the message's headers; without
them the session is the message's own field.

Cost      1 us a message with the compiled core, 8 us without.
Bounded   by the ring: the latest 16,384 messages, 16 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from probes import Identity, Recorder, RecorderSettings
from service.identity import commit
from service.stream.process import Done

__all__ = ["FOLDER", "Records"]

FOLDER: Final = "stream"
"""Folder of the messages' rows, below that of the requests'."""
_ROUTE: Final = SimpleNamespace(path="user_queries")
_TAKEN: Final = {b"traceparent", b"baggage"}
# As for HTTP: what the contract refuses is the sender's fault, anything that was counted is fine.
_OK, _REFUSED = 200, 422


class Records:
    """Writes rows; never raises.

    Args:
        ring_dir: Folder of the requests' rows; None to write none.
    """

    def __init__(self, ring_dir: Path | None) -> None:
        self._recorder: Recorder | None = None
        if ring_dir is not None:
            identity = Identity(build=commit())
            settings = RecorderSettings(sensors=False)
            self._recorder = Recorder.open(ring_dir / FOLDER, "stream", identity, settings)
            self._recorder.ready()

    def write(self, done: Iterable[Done]) -> None:
        """Write a row for each message."""
        recorder = self._recorder
        if recorder is None:
            return
        for one in done:
            scope = {"type": "http", "method": "PROCESS", "route": _ROUTE, "headers": _headers(one)}
            begun = recorder.begin(scope)
            if begun is None:
                continue
            told = _attributes(one)
            if told:
                begun[1].set(**told)
            refused = one.reason is not None and one.reason != "duplicate"
            recorder.finish(begun, scope, _REFUSED if refused else _OK, False)

    def close(self) -> None:
        """Close the ring; its file stays for its readers."""
        if self._recorder is not None:
            self._recorder.close()


def _headers(one: Done) -> list[tuple[bytes, bytes]]:
    """Return the headers that the recorder reads."""
    found = []
    for name, value in one.message.headers:
        low = name.lower().encode()
        if value is not None and low in _TAKEN:
            found.append((low, value))
    session = one.context.session or (one.read.query.session_id if one.read is not None else "")
    if session:
        found.append((b"x-session-id", session.encode()))
    if one.read is not None:
        found.append((b"x-device-type", one.read.query.device_type.encode()))
    return found


def _attributes(one: Done) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if one.reason is not None:
        told["reason"] = one.reason
    if one.features is not None:
        told["input_length"] = one.features.length
        if one.features.quality is not None:
            told["quality_modality"], told["quality_reason"] = "text", one.features.quality
    return told
