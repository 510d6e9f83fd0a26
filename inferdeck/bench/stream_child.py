"""One measurement of `inferdeck bench stream`, in a process of its own: `python -m inferdeck.bench.stream_child`.

Reads what to do as JSON on stdin, prints what it took as JSON. Times begin behind imports and opening.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["main"]

_MOST_BYTES = 16 * 1024
_DEADLINE_SECONDS = 120.0


def _bare(lines: list[bytes]) -> Callable[[], int]:
    """Return the same work without an engine: no source, no state on disk, no row; all in dicts."""
    from service.stream.features import features_of
    from service.stream.message import Message, read_query
    from service.stream.windows import Window, minute_of

    def run() -> int:
        seen: set[bytes] = set()
        windows: dict[int, Window] = {}
        key = b"k" * 16
        for number, line in enumerate(lines):
            read = read_query(Message("0", number, line, len(line)), _MOST_BYTES)
            identity = read.identity(key)
            if identity not in seen:
                seen.add(identity)
                minute = minute_of(read.event_ns)
                if minute not in windows:
                    windows[minute] = Window(minute)
                windows[minute].add(features_of(read.query.utterance), read.query.device_type)
        return sum(window.messages for window in windows.values())

    return run


def _stream(settings: dict[str, Any], count: int) -> Callable[[], int]:
    """Return our stream, with its state on disk and a row for each message, until all is read."""
    from service.stream.app import build
    from service.stream.settings import StreamSettings

    consumer = build(StreamSettings(**settings))

    def run() -> int:
        until = time.monotonic() + _DEADLINE_SECONDS
        done = 0
        while done < count and time.monotonic() < until:
            done += consumer.step(0.5)
        total = consumer.view.totals.counts.get("messages:ok", 0)
        consumer.close()
        return total

    return run


def _quix(brokers: str, topic: str, folder: str, count: int) -> Callable[[], int]:
    """Return Quix Streams with the same judgement, duplicates by its state, and two sums of its windows."""
    import uuid

    from quixstreams import Application

    from service.stream.features import features_of
    from service.stream.message import Message, read_query

    def read(value: bytes) -> Any:
        return read_query(Message("0", 1, value, len(value)), _MOST_BYTES)

    app = Application(
        broker_address=brokers,
        consumer_group=uuid.uuid4().hex,
        auto_offset_reset="earliest",
        state_dir=folder,
        loglevel="ERROR",
        commit_interval=1.0,
    )
    source = app.topic(
        topic, value_deserializer="bytes", timestamp_extractor=lambda value, *_: read(value).event_ns // 1_000_000
    )
    key = b"k" * 16
    sums: dict[int, int] = {}

    def features(value: bytes) -> dict[str, Any]:
        found = read(value)
        return {"length": features_of(found.query.utterance).length, "id": found.identity(key).hex()}

    def new(value: dict[str, Any], state: Any) -> bool:
        if state.exists(value["id"]):
            return False
        state.set(value["id"], 1)
        return True

    def note(window: dict[str, Any]) -> None:
        sums[window["start"]] = window["value"]["messages"]

    frame = app.dataframe(source).apply(features).filter(new, stateful=True)
    windows = frame.tumbling_window(60_000, grace_ms=3_600_000, name="minutes").reduce(
        initializer=lambda value: {"messages": 1, "length": value["length"]},
        reducer=lambda sum_, value: {"messages": sum_["messages"] + 1, "length": sum_["length"] + value["length"]},
    )
    windows.current().update(note)

    def run() -> int:
        app.run(count=count, timeout=30.0)
        return sum(sums.values())

    return run


def main() -> int:
    """Measure what stdin asks for."""
    asked = json.load(sys.stdin)
    if asked["variant"] == "bare":
        run = _bare(Path(asked["file"]).read_bytes().splitlines())
    elif asked["variant"] == "quix":
        run = _quix(asked["brokers"], asked["topic"], asked["folder"], asked["count"])
    else:
        run = _stream(asked["settings"], asked["count"])
    began, cpu = time.perf_counter(), time.process_time()
    messages = run()
    result = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu, "messages": messages}
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
