"""Drives a recorder through random requests and prints all that does not depend on time: run once on each core."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from probes import Recorder, RecorderSettings, batch_stage, bind, current, stage
from probes.asgi import FlightRecorder
from probes.reader import RingFile

# Columns that time decides; their stage must have run on both cores, or on neither.
TIMES = ("start_unix_ns", "duration_ns", "span_id", "start_ns", "cpu_ns", "first_body_ns")
VALUES: list[Any] = [
    *(None, 0, 1, -1, 7, 255, 256, 65536, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**70, -(2**70), 10**400),
    *(True, False, 0.5, 3.0, -0.0, float("inf"), float("nan"), 1e300, complex(1, 2)),
    *("zh", "a" * 100, "naïve", "\ud800", b"raw", [1], {}, object()),
    *(np.int64(5), np.float64(0.25), np.bool_(True), np.float32(0.5)),
]
NAMES = ("tokens", "lang", "ratio", "hit", "a.b", "bad name", "late")
REQUEST = ("input_length", "tokens", "confidence", "label", "batch_id", "route", "reason", "outcome", "own", "more")
STAGES = ("tokenizer", "model.forward", "declared", "network.send", "bad stage", "late")
HEADERS: list[tuple[Any, Any]] = [
    *((b"host", b"x"), (b"user-agent", b"curl/8"), (b"User-Agent", b"upper"), (b"user-agent", b"")),
    *((b"x-client-release", b"4.12.0"), (b"x-client-release", b"not one")),
    *((b"x-device-type", b"mobile"), (b"x-device-type", b"toaster")),
    *((b"x-session-id", b"session-0123456789"), (b"x-session-id", b"short"), (b"x-session-id", b"")),
    *((b"x-session-id", b"y" * 3000), ("x-session-id", "text")),
    *((b"baggage", b"a=b, session.id=session-9876543210;p=1"), (b"baggage", b"session.id=short"), (b"baggage", b"")),
    *((b"baggage", b"a=b"), (b"baggage", b"session.id=" + b"z" * 9000), (b"baggage", b"session.id=s%zz%00%41")),
    *((b"traceparent", b"nonsense"), (b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")),
]


def attributes(dice: random.Random, names: tuple[str, ...]) -> dict[str, Any]:
    """Draw a call's attributes."""
    return {name: dice.choice(VALUES) for name in dice.sample(names, dice.randint(0, 4))}


def work(dice: random.Random) -> None:
    """Do what an app does with its record, in random order."""
    record = current()
    for _ in range(dice.randint(0, 4)):
        kind = dice.randrange(7)
        if kind < 3:
            with stage(dice.choice(STAGES), **attributes(dice, NAMES)) as running:
                running.set(**attributes(dice, NAMES))
        elif record is None:
            continue
        elif kind == 3:
            record.set(**attributes(dice, REQUEST))
        elif kind == 4:
            record.low_quality()
        elif kind == 5:
            record.degraded("deadline") if dice.random() < 0.5 else record.refused("schema")
        else:
            with (
                bind(record),
                contextlib.suppress(KeyError),
                batch_stage([record, None], "batch", batch_id=dice.choice([None, 3, 2**70]), size=2),
            ):
                raise KeyError


class App:
    """Answers at random, wrongly as well."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        dice = self.dice
        for _ in range(dice.randint(0, 3)):
            await receive()
        work(dice)
        scope["route"] = dice.choice([None, type("R", (), {"path_format": "/r/{x}"})(), type("R", (), {"path": 7})()])
        if dice.random() < 0.1:
            raise ValueError("app")
        status = dice.choice([200, 204, 302, 404, 422, 500, 503, 0, 70000, "200", None, 200.0])
        await send({"type": "http.response.start", "status": status})
        work(dice)
        for more in [True] * dice.randint(0, 2) + [False] * dice.randint(0, 1):
            await send({"type": "http.response.body", "body": b"x" * dice.randint(0, 9), "more_body": more})


async def one(app: FlightRecorder, dice: random.Random) -> list[str]:
    """Make one request and return what came out."""
    sent: list[str] = []
    messages = [{"type": "http.request", "body": b"abc", "more_body": dice.random() < 0.5}, {"type": "http.request"}]

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(f"{message['type']} {message.get('status')} {message.get('body')}")

    headers = dice.sample(HEADERS, dice.randint(0, 5))
    scope = {"type": "http", "method": dice.choice(["GET", "POST", "BREW"]), "path": "/", "headers": headers}
    try:
        await app(scope, receive, send)
    except Exception as error:  # noqa: BLE001  # what the app raised must come through alike
        sent.append(repr(error))
    return sent


def plain(ring: RingFile, row: Any, strings: list[str]) -> dict[str, Any]:
    """Return a row without what time and chance decide."""
    told: dict[str, Any] = {}
    for name, kind in ring.header.columns.items():
        value = strings[row[name]] if kind == "str" else row[name].item()
        if name.split("/")[-1] in TIMES:
            value = "absent" if value in (0, 2**64 - 1) else "there"
        elif name in ("trace_hi", "trace_lo", "session_hash"):
            value = f"{value:x}" if row["flags"] & 2 or (name == "session_hash" and not row["flags"] & 1) else "drawn"
        elif name == "session" and row["flags"] & 1:
            value = "drawn"
        told[name] = repr(value)
    return told


def main(folder: Path, seed: int, requests: int) -> dict[str, Any]:
    """Return all that can be compared."""
    from probes import define_stage

    define_stage("declared", cpu=True, tokens=int, lang=str, ratio=float, hit=bool)
    (folder / "key").parent.mkdir(mode=0o700, exist_ok=True)
    (folder / "key").write_bytes(bytes(32))
    (folder / "key").chmod(0o600)
    recorder = Recorder.open(
        folder,
        "core",
        settings=RecorderSettings(ring_rows=max(16, requests), row_bytes=1024, open_slots=4, sensors=False),
    )
    dice = random.Random(seed)
    app = FlightRecorder(App(dice), recorder)
    sent = [asyncio.run(one(app, dice)) for _ in range(requests)]
    begun = recorder.begin({"type": "http", "method": "GET", "headers": HEADERS[-1:]})
    assert begun is not None
    with bind(begun[1]), stage("tokenizer"), RingFile(recorder.path or "") as ring:
        in_flight = [
            {name: slot[name].item() for name in ("seq", "trace_hi", "trace_lo", "parent_span_id", "stage")}
            for slot in ring.open_slots()
        ]
        strings = ring.strings()
        rows = [plain(ring, row, strings) for row in ring.read(0, 1 << 20).rows]
        columns = dict(ring.header.columns)
        torn = ring.read(0, 1 << 20).torn
    recorder.close()
    with bind(begun[1]), stage("tokenizer", tokens=1):  # the ring is gone: nothing happens, and the request goes on
        begun[1].set(tokens=2)
    recorder.finish(begun, {}, 200, False)
    status = recorder.status()
    return {
        "sent": sent, "rows": rows, "columns": columns, "torn": torn, "in_flight": in_flight, "loss": status["loss"],
        "failures": status["probe_failures"], "overflow": status["open_overflow"], "core": status["core"],
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201
