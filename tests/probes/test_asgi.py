from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from probes import FlightRecorder, Recorder, RecorderSettings, current, stage
from probes.folder import read_key, session_hash, session_hashes
from probes.reader import RingFile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.probes.conftest import Client, Message

Decode = Callable[[RingFile], list[dict[str, Any]]]
App = Callable[[Any, Any, Any], Awaitable[None]]
NEVER = 2**64 - 1


def answering(status: int = 200, chunks: tuple[bytes, ...] = (b"ok",)) -> App:
    """Return an app that reads the body and answers in chunks."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": status, "headers": []})
        for index, chunk in enumerate(chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": index < len(chunks) - 1})

    return app


@pytest.fixture
def serve(recorder: Recorder, client: type[Client]) -> Callable[..., Client]:
    """Return a function that makes a client of a recorded app."""
    return lambda app, **options: client(FlightRecorder(app, recorder), **options)


Serve = Callable[..., "Client"]


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, 0), (202, 0), (302, 0), (400, 1), (404, 1), (422, 1), (500, 2), (503, 2)]
)
def test_the_outcome_follows_the_status(
    serve: Serve, ring: RingFile, decode: Decode, status: int, outcome: int
) -> None:
    """2xx and 3xx are ok, 4xx refused, 5xx errors."""
    serve(answering(status)).run()
    row = decode(ring)[0]

    assert (status, outcome, "POST", "(unmatched)") == (row["http_status"], row["outcome"], row["method"], row["route"])


def test_the_app_s_own_word_on_the_outcome_wins(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """A degraded answer is a 200 as well."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        record = current()
        assert record is not None
        record.degraded("queue_full")
        await answering()(scope, receive, send)

    serve(app).run()
    assert (3, "queue_full", 200) == tuple(decode(ring)[0][name] for name in ("outcome", "reason", "http_status"))


def test_bodies_are_measured_in_both_directions_and_not_kept(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """Chunks of any number pass through one by one; their bytes and the time they took are in the row."""
    incoming = [{"type": "http.request", "body": b"x" * 1000, "more_body": index < 9} for index in range(10)]
    client = serve(answering(200, (b"a" * 10, b"b" * 20, b"")), incoming=incoming, pauses_s=0.001)
    client.run()
    row = decode(ring)[0]

    assert [b"a" * 10, b"b" * 20, b""] == [message["body"] for message in client.sent[1:]]
    assert (10_000, 30) == (row["network.receive/bytes"], row["network.send/bytes"])
    assert row["network.receive/duration_ns"] >= 10 * 1_000_000
    assert row["network.send/duration_ns"] >= 4 * 1_000_000
    assert row["network.receive/start_ns"] < row["network.send/start_ns"] < row["duration_ns"]


def test_what_an_app_does_after_its_answer_is_not_the_request_s_duration(
    serve: Serve, ring: RingFile, decode: Decode
) -> None:
    """Background tasks run after the last byte: nobody waits for them."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await answering()(scope, receive, send)
        await asyncio.sleep(0.2)
        with stage("background"):
            pass

    serve(app).run()
    row = decode(ring)[0]

    assert row["duration_ns"] < 150_000_000 < row["background/start_ns"]


def test_an_app_that_never_reads_the_body_has_no_receive_stage(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """What did not run is absent, not 0."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    serve(app).run()
    row = decode(ring)[0]

    assert (NEVER, -(2**63), 0) == (
        row["network.receive/start_ns"],
        row["network.receive/bytes"],
        row["network.send/bytes"],
    )


@pytest.mark.parametrize("error", [RuntimeError("secret text"), KeyError("x"), asyncio.CancelledError(), MemoryError()])
def test_an_error_of_the_app_is_recorded_by_its_class_and_raised(
    serve: Serve, ring: RingFile, decode: Decode, error: BaseException
) -> None:
    """500 if nothing was sent; never the error's text, which may quote the user."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        serve(app).run()
    row = decode(ring)[0]

    assert (500, 2, type(error).__name__) == (row["http_status"], row["outcome"], row["error_type"])
    assert "secret text" not in ring.strings()


def test_an_error_after_the_answer_began_keeps_its_status(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """The client saw 200; the outcome is an error all the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        serve(app).run()
    assert (200, 2) == (decode(ring)[0]["http_status"], decode(ring)[0]["outcome"])


@pytest.mark.parametrize(("status", "outcome"), [(200, 0), (404, 1)])
def test_an_error_after_the_whole_answer_leaves_the_outcome_alone(
    serve: Serve, ring: RingFile, decode: Decode, status: int, outcome: int
) -> None:
    """A background task that fails is told by its class; the client had its answer, which is what the outcome is of."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await answering(status)(scope, receive, send)
        raise RuntimeError("in the background")

    with pytest.raises(RuntimeError):
        serve(app).run()
    row = decode(ring)[0]

    assert (status, outcome, "RuntimeError") == (row["http_status"], row["outcome"], row["error_type"])


def test_a_ring_that_is_closed_meanwhile_does_not_replace_the_app_s_error(serve: Serve, recorder: Recorder) -> None:
    """The server must see what the app raised, whatever becomes of the row."""
    intake = recorder.start()

    class NeverSeenError(Exception):
        pass

    async def app(scope: Any, receive: Any, send: Any) -> None:
        intake.ring.close()
        raise NeverSeenError

    with pytest.raises(NeverSeenError):
        serve(app).run()
    assert 1 == recorder.status()["probe_failures"]["error_type"]


def test_a_client_that_leaves_early_is_disconnected(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """Even if the app then raises, or answers into the void."""

    class ClientDisconnect(Exception):  # noqa: N818  Starlette's name for it
        pass

    async def raising(scope: Any, receive: Any, send: Any) -> None:
        if (await receive())["type"] == "http.disconnect":
            raise ClientDisconnect

    async def sending(scope: Any, receive: Any, send: Any) -> None:
        raise ClientDisconnect

    with pytest.raises(ClientDisconnect):
        serve(raising, incoming=[]).run()
    with pytest.raises(ClientDisconnect):
        serve(sending).run()
    serve(answering(), incoming=[]).run()
    rows = decode(ring)

    assert [4, 4, 4] == [row["outcome"] for row in rows]
    assert ["", "", ""] == [row["error_type"] for row in rows]


def test_a_client_that_leaves_after_the_answer_was_served(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """Frameworks wait for the disconnect after the last byte: that is no abort, and no time of receiving."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await answering()(scope, receive, send)
        assert (await receive())["type"] == "http.disconnect"

    serve(app).run()
    assert decode(ring)[0]["outcome"] == 0


def test_a_disconnect_while_the_answer_streams_is_one(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """The answer was begun but not complete."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await receive()

    serve(app).run()
    assert (200, 4) == (decode(ring)[0]["http_status"], decode(ring)[0]["outcome"])


def test_trace_and_session_come_in_by_their_headers(
    serve: Serve, ring: RingFile, ring_dir: Path, decode: Decode
) -> None:
    """W3C context and session are in the row; the hash finds it."""
    session = b"session_0123456789-AB"
    headers = [
        (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        (b"x-session-id", session),
        (b"x-session-id", b"another_0123456789"),
        (b"x-client-release", b"7.1.0"),
        (b"x-device-type", b"mobile"),
        (b"user-agent", b"okhttp/4.9"),
    ]
    serve(answering()).run(headers)
    row = decode(ring)[0]

    assert (0x0AF7651916CD43DD, 0x8448EB211C80319C, 0xB7AD6B7169203331) == (
        row["trace_hi"],
        row["trace_lo"],
        row["parent_span_id"],
    )
    assert (session, 2, "7.1.0", "mobile", "okhttp") == tuple(
        row[name] for name in ("session", "flags", "client_release", "device_type", "agent_family")
    )
    assert 1 == len(ring.find_hash(session_hash(read_key(ring_dir), session)))


@pytest.mark.parametrize("raw", [b"short", b"x" * 100_000, b"\x00\xff' OR 1=1 --", "会话".encode() * 8, b""])
def test_a_foreign_session_id_gets_a_generated_one_and_stays_findable(
    serve: Serve, ring: RingFile, ring_dir: Path, decode: Decode, raw: bytes
) -> None:
    """The keyed hash of what came is in the row, what came is not."""
    serve(answering()).run([(b"x-session-id", raw)])
    row = decode(ring)[0]

    assert 1 == row["flags"] & 1
    assert 32 == len(row["session"])
    assert 1 == len(ring.find_hash(session_hash(read_key(ring_dir), raw)))


def test_without_a_session_each_request_has_its_own(
    serve: Serve, ring: RingFile, ring_dir: Path, decode: Decode
) -> None:
    """It is the trace id, marked as generated, and findable like one that came; trace and span ids are new too."""
    for _ in range(3):
        serve(answering()).run()
    rows = decode(ring)

    assert [1, 1, 1] == [row["flags"] for row in rows]
    assert 3 == len({row["session"] for row in rows}) == len({row["trace_lo"] for row in rows})
    for row in rows:
        assert row["parent_span_id"] == 0
        assert row["session"] == b"%016x%016x" % (row["trace_hi"], row["trace_lo"])
        assert 1 == len(ring.find_hash(*session_hashes(read_key(ring_dir), row["session"])))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"traceparent", b"\xff" * 100_000)],
        [(b"x-device-type", b"toaster"), (b"x-client-release", b"<script>"), (b"user-agent", b"\xff" * 9000)],
        [(b"a", b"b")] * 10_000,
        iter([(b"x-session-id", b"session_0123456789")]),
    ],
)
def test_absurd_headers_leave_a_safe_row(serve: Serve, ring: RingFile, decode: Decode, headers: Any) -> None:
    """The request is answered and recorded; nothing of the junk is stored."""
    client = serve(answering())
    client.run(headers)
    row = decode(ring)[0]

    assert 200 == client.sent[0]["status"]
    assert ("", "") == (row["device_type"], row["client_release"])


@pytest.mark.parametrize("scope", [{"headers": None}, {"headers": [(b"one",)]}, {"headers": [1, 2]}])
def test_a_scope_that_is_none_is_served_unrecorded_and_counted(
    serve: Serve, recorder: Recorder, scope: dict[str, Any]
) -> None:
    """Telemetry never takes a request down."""
    client = serve(answering())
    client.run(**scope)

    assert 200 == client.sent[0]["status"]
    assert {"begin": 1} == recorder.status()["loss"]


def test_a_ring_that_breaks_under_a_request_is_counted(serve: Serve, recorder: Recorder) -> None:
    """Even a closed mapping only costs the row."""
    intake = recorder.start()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        intake.ring.close()
        await answering()(scope, receive, send)

    client = serve(app)
    client.run()

    assert 200 == client.sent[0]["status"]
    assert {"commit": 1} == recorder.status()["loss"]


def test_after_the_request_there_is_no_current_record(serve: Serve) -> None:
    """Servers that call the app in a task of theirs must not inherit it."""
    client = serve(answering())

    async def main() -> None:
        await client.call()
        assert current() is None

    asyncio.run(main())


def test_websockets_pass_through(serve: Serve, ring: RingFile) -> None:
    """HTTP only."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["type"], current(), receive, send))

    client = serve(app)
    client.run(type="websocket")

    assert [("websocket", None, client.receive, client.send)] == seen
    assert 0 == ring.head()


def test_methods_are_a_closed_list(serve: Serve, ring: RingFile, decode: Decode) -> None:
    """A client cannot make labels by inventing methods."""
    for method in ("GET", "BREW", "x" * 1000):
        serve(answering()).run(method=method)

    assert ["GET", "(other)", "(other)"] == [row["method"] for row in decode(ring)]


def test_start_up_opens_the_ring_and_shutdown_closes_it(
    ring_dir: Path, client: type[Client], small: RecorderSettings
) -> None:
    """The file is there before the first request, its lock is gone after the last."""
    recorder = Recorder(ring_dir, "test", settings=small)
    seen: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            seen.append(recorder.path is not None)
            await send({"type": "lifespan.startup.complete"})
            seen.append(recorder.status()["ready"])

    messages: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    before = recorder.path
    client(FlightRecorder(app, recorder), incoming=messages).run(type="lifespan")
    [path] = list(ring_dir.glob("*.ring"))
    with RingFile(path) as ring:
        status = ring.status()

    assert (None, [True, True], False) == (before, seen, ring.owner_alive())
    assert status is not None
    assert ("stopped", False) == (status["phase"], status["ready"])


def test_an_app_without_lifespan_is_recorded_from_its_first_request(
    ring_dir: Path, client: type[Client], small: RecorderSettings
) -> None:
    """What such an app raises goes to the server, which expects it."""
    recorder = Recorder(ring_dir, "test", settings=small)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await answering()(scope, receive, send)

    with pytest.raises(AssertionError):
        client(FlightRecorder(app, recorder)).run(type="lifespan")
    client(FlightRecorder(app, recorder)).run()

    assert recorder.path is not None
    assert 1 == recorder.status()["rows"]
    recorder.close()


def test_an_open_slot_tells_whether_a_request_is_received_or_answered(recorder: Recorder, client: type[Client]) -> None:
    """What hangs in receive() or between head and body of its answer is told from what hangs in the app."""
    assert recorder.path is not None
    stages = []

    def reached() -> str:
        assert recorder.path is not None
        with RingFile(recorder.path) as ring:
            [slot] = ring.open_slots()
            return str(ring.header.stage_names[slot["stage"]])

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        stages.append(reached())
        await receive()
        stages.append(reached())
        with stage("model.forward"):
            stages.append(reached())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        stages.append(reached())
        await receive()  # listens whether the client leaves
        stages.append(reached())
        await send({"type": "http.response.body", "body": b""})

    client(FlightRecorder(app, recorder)).run()

    assert ["", "network.receive", "model.forward", "network.send", "network.send"] == stages
