"""The loop carries each batch through: what fails is tried again, what is damaged begun anew, nothing counts twice."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from exporters.answer import STREAM_ROWS, Question, answer
from probes import Recorder, RecorderSettings
from probes.reader import RingFile
from service.deadletters.letters import read_letters
from service.stream.consumer import Consumer
from service.stream.letters import SinkFailed
from service.stream.process import Letter
from service.stream.records import FOLDER, Records
from service.stream.state import StateFailed
from service.stream.windows import Window
from tests.failures import disk_full as disk
from tests.service.stream._queries import (
    NOON_S,
    SESSION,
    Clock,
    drain,
    file_consumer,
    message,
    query,
    raw,
    write_lines,
)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def running(consumer: Consumer) -> Iterator[None]:
    """Run the consumer in a thread."""
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        yield
    finally:
        consumer.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_a_folder_becomes_windows_and_letters(tmp_path: Path) -> None:
    """What fits is counted; the rest is a letter without its text, found where the service's are."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(1), b"not json 13812345678", raw(2, device_type="tv"), raw(3)])
    clock = Clock()
    consumer = file_consumer(tmp_path, clock)
    assert 4 == drain(consumer)
    clock.at_s += 120
    consumer.step(0.0)
    (window,) = consumer.view.windows
    kept = read_letters(tmp_path / "service" / "deadletters")
    consumer.close()

    assert (2, 1, 22.0) == (window.messages, window.revision, window.mean_length)
    assert [("not_json", None), ("schema", "device_type")] == [(one["reason"], one["field"]) for one in kept.letters]
    assert "aaa aaaa aa aaaaaaaa 0" == kept.letters[1]["text"]
    assert SESSION not in json.dumps(kept.letters)


def test_a_restart_goes_on_behind_the_last_batch(tmp_path: Path) -> None:
    """With the sums of before."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(number) for number in range(10)])
    first = file_consumer(tmp_path, Clock(), batch_messages=4)
    first.step(0.0)
    first.close()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(number) for number in range(10, 15)])
    second = file_consumer(tmp_path, Clock())

    assert 11 == drain(second)
    assert 15 == second.view.totals.counts["messages:ok"] == second.view.windows[0].messages
    second.close()


class Stubborn:
    """A sink that refuses some times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.ids: list[str] = []

    def deliver(self, letters: Sequence[Letter], windows: Sequence[Window]) -> None:
        """Note the letters, and refuse behind that, as a broker that dies before it answers."""
        del windows
        self.ids += [letter.id for letter in letters]
        if self.times:
            self.times -= 1
            raise SinkFailed("no")

    def close(self) -> None:
        """Nothing is held."""


def test_a_sink_that_fails_is_tried_again_before_anything_counts(tmp_path: Path) -> None:
    """The same letter, with the same id; the messages count once."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(1), b"no"])
    consumer = file_consumer(tmp_path, Clock())
    consumer._sink = sink = Stubborn(3)
    drain(consumer)

    assert (4, 1) == (len(sink.ids), len(set(sink.ids)))
    assert ({"sink": 3}, 1) == (consumer.errors, consumer.view.totals.counts["messages:dead_letter"])
    consumer.close()


def test_what_cannot_be_delivered_is_read_again_after_a_stop(tmp_path: Path) -> None:
    """A stop does not wait for a broker that never comes."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(1), b"no"])
    consumer = file_consumer(tmp_path, Clock())
    consumer._sink = Stubborn(10**9)
    with running(consumer):
        until(lambda: consumer.errors.get("sink", 0) > 1)
        assert "no" == consumer.view.problem
    again = file_consumer(tmp_path, Clock())

    assert 2 == drain(again)
    again.close()


def test_a_state_that_is_damaged_while_it_runs_is_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All that the source still has is counted again, and the log says what was lost."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(number) for number in range(10)])
    consumer = file_consumer(tmp_path, Clock())
    drain(consumer)
    write_lines(tmp_path / "in" / "a.jsonl", [raw(10)])
    real = consumer.state.known

    def damaged(keys: Sequence[bytes]) -> list[bool]:
        raise StateFailed("damaged", "block checksum mismatch")

    consumer.state.known = damaged  # type: ignore[method-assign]
    drain(consumer)
    counts = consumer.view.totals
    consumer.close()

    assert real is not damaged
    assert (11, 1, {"state:damaged": 2}) == (counts.counts["messages:ok"], counts.rebuilds, consumer.errors)
    assert "begun anew" in caplog.text


def test_a_full_disk_under_the_state_is_waited_for(tmp_path: Path) -> None:
    """Nothing is read meanwhile, nothing is lost, nothing counts twice; it goes on once there is room."""
    if (why := disk.cannot_cause()) is not None:
        pytest.skip(why)
    (tmp_path / "in").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    disk.mount("-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(work))
    try:
        (work / "in").symlink_to(tmp_path / "in")
        lines = [raw(number) for number in range(30_000)]
        write_lines(tmp_path / "in" / "a.jsonl", lines[:1000])
        consumer = file_consumer(work, Clock())
        with running(consumer):
            until(lambda: consumer.view.totals.counts.get("messages:ok") == 1000)
            disk.fill(work / "core.dump", None)
            write_lines(tmp_path / "in" / "a.jsonl", lines[1000:])
            until(lambda: consumer.errors.get("state:full", 0) >= 2)
            assert "full" in consumer.view.problem
            (work / "core.dump").unlink()
            until(lambda: consumer.view.totals.counts.get("messages:ok") == 30_000)
            assert (30_000, "") == (consumer.view.windows[0].messages, consumer.view.problem)
    finally:
        disk.unmount(work)


def test_messages_are_found_beside_the_request_that_sent_them(tmp_path: Path) -> None:
    """By the session and the trace of their headers, under the span that sent them; and refused ones too."""
    trace, span = "1f" * 16, "2e" * 8
    headers = {"traceparent": f"00-{trace}-{span}-01", "session_id": "from-the-headers-01"}
    (tmp_path / "in").mkdir()
    lines = [
        json.dumps({"headers": headers, "value": query(1)}).encode(),
        json.dumps({"headers": headers, "value": query(2, device_type="tv")}).encode(),
        raw(3),
    ]
    write_lines(tmp_path / "in" / "a.jsonl", lines)
    request = {"type": "http", "method": "POST", "headers": ((b"traceparent", headers["traceparent"].encode()),)}
    recorder = Recorder.open(tmp_path / "rows", "test", settings=RecorderSettings(sensors=False))
    begun = recorder.begin(request)
    assert begun is not None
    recorder.finish(begun, request, 200, False)
    recorder.close()
    consumer = file_consumer(tmp_path, Clock(), records=Records(tmp_path / "rows"))
    drain(consumer)
    consumer.close()
    rows = tmp_path / "rows" / FOLDER
    found = [one.to_dict() for one in answer(Question(trace_id=trace), tmp_path / "rows").traces]

    assert [("test", "ok"), ("stream", "ok"), ("stream", "refused")] == [
        (one["service"], one["outcome"]) for one in found
    ]
    assert {"from-the-headers-01"} == {one["session_id"] for one in found[1:]}
    with RingFile(next(rows.glob("*.ring"))) as ring:
        parents = ring.read(0, 10).rows["parent_span_id"].tolist()
    assert [int(span, 16), int(span, 16), 0] == parents
    assert 1 == len(answer(Question(session_id=SESSION), tmp_path / "rows").traces)
    assert FOLDER == STREAM_ROWS


def test_lag_is_told_while_messages_wait_and_not_when_all_is_read(tmp_path: Path) -> None:
    """By the messages' own time, where the source has none."""
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(number) for number in range(100, 110)])
    clock = Clock(NOON_S + 50)
    consumer = file_consumer(tmp_path, clock, batch_messages=5)
    consumer.step(0.0)
    half = consumer.view
    drain(consumer)

    assert (50.0, True) == (half.lag_seconds, 0 < half.waiting < 9)
    assert (0.0, 0.0) == (consumer.view.lag_seconds, consumer.view.waiting)
    consumer.close()


def test_a_message_without_bytes_is_a_letter(tmp_path: Path) -> None:
    """A tombstone of Kafka's."""
    consumer = file_consumer(tmp_path, Clock())
    consumer.step(0.0)
    consumer._finish([message(None)])

    assert {"messages:dead_letter": 1, "letters:not_json": 1} == consumer.view.totals.counts
    consumer.close()
