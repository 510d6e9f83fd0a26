from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from probes import Recorder, batch_stage, bind, current, define_stage, stage
from probes.plan import StageSpec
from probes.reader import RingFile
from probes.record import Record

Decode = Callable[[RingFile], list[dict[str, Any]]]
SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "headers": []}


@pytest.fixture
def request_in(recorder: Recorder) -> Callable[[Callable[[Record], None]], None]:
    """Return a function that runs something inside a recorded request."""

    def run(work: Callable[[Record], None]) -> None:
        begun = recorder.begin(SCOPE)
        assert begun is not None
        with bind(begun[1]):
            work(begun[1])
        recorder.finish(begun, SCOPE, 200, False)

    return run


Run = Callable[[Callable[[Record], None]], None]


def test_a_stage_measures_itself_and_keeps_its_attributes(request_in: Run, ring: RingFile, decode: Decode) -> None:
    """Start is an offset from the request's, duration is what passed between enter and exit."""

    def work(_: Record) -> None:
        with stage("tokenizer", tokens=12, lang="zh", cached=False) as running:
            running.set(padding_ratio=0.25, tokens=13)

    request_in(work)
    row = decode(ring)[0]

    assert (13, "zh", 0, 0.25) == tuple(
        row[f"tokenizer/{name}"] for name in ("tokens", "lang", "cached", "padding_ratio")
    )
    assert 0 < row["tokenizer/start_ns"] < row["duration_ns"]
    assert 0 < row["tokenizer/duration_ns"] <= row["duration_ns"] - row["tokenizer/start_ns"]


def test_a_stage_that_runs_twice_adds_its_durations_up(request_in: Run, ring: RingFile, decode: Decode) -> None:
    """The start is the first one's."""
    seen: list[int] = []

    def work(record: Record) -> None:
        slot = record.writer.plan.stage("retry", {})
        assert slot is not None
        for _ in range(3):
            with stage("retry"):
                pass
            seen.extend((record.row[slot.start], record.row[slot.duration]))

    request_in(work)
    row = decode(ring)[0]

    assert seen[0] == seen[2] == seen[4] == row["retry/start_ns"]
    assert seen[1] < seen[3] < seen[5] == row["retry/duration_ns"]


def test_a_stage_that_raises_is_measured_and_lets_the_error_through(
    request_in: Run, ring: RingFile, decode: Decode
) -> None:
    """Telemetry does not swallow."""

    def work(_: Record) -> None:
        with pytest.raises(RuntimeError, match="boom"), stage("model"):
            raise RuntimeError("boom")

    request_in(work)
    assert decode(ring)[0]["model/duration_ns"] > 0


def test_outside_of_a_request_a_stage_does_nothing() -> None:
    """Code with stages runs in scripts and tests as well."""
    with stage("tokenizer", tokens=1) as running:
        running.set(tokens=2)

    assert current() is None


def test_what_the_app_says_about_the_request_is_in_its_row(request_in: Run, ring: RingFile, decode: Decode) -> None:
    """Fixed columns by name, others under request/."""

    def work(record: Record) -> None:
        assert current() is record
        record.set(input_length=8, tokens=3, confidence=0.93, label="positive", model_version="v2", vip=True, shard="a")
        record.low_quality()
        record.degraded("deadline")

    request_in(work)
    row = decode(ring)[0]

    assert (8, 3, 0.93, "positive", "v2") == tuple(
        row[name] for name in ("input_length", "tokens", "confidence", "label", "model_version")
    )
    assert (1, "a", 4 | 1, 3, "deadline") == (
        row["request/vip"],
        row["request/shard"],
        row["flags"],
        row["outcome"],
        row["reason"],
    )


@pytest.mark.parametrize(
    "value", [None, [1], {"a": 1}, object(), b"bytes", 1j, "x" * 100_000, 10**400, np.array([1, 2])]
)
def test_no_value_of_an_attribute_raises_or_loses_the_row(
    request_in: Run, ring: RingFile, decode: Decode, value: object
) -> None:
    """First as a new attribute, then in columns of every kind."""

    def work(record: Record) -> None:
        record.set(fresh=value, label=value, tokens=value, confidence=value, outcome=value, input_length=5)
        with stage("s", i=1, f=0.5, b=True, t="x") as running:
            running.set(i=value, f=value, b=value, t=value)

    request_in(work)
    row = decode(ring)[0]

    assert (5, 0) == (row["input_length"], row["outcome"])


def test_numpy_scalars_are_numbers(request_in: Run, ring: RingFile, decode: Decode) -> None:
    """Model code has them everywhere."""
    request_in(lambda record: record.set(tokens=np.int64(7), confidence=np.float32(0.5), big=np.uint8(3)))
    row = decode(ring)[0]

    assert (7, 0.5, 3) == (row["tokens"], row["confidence"], row["request/big"])


@pytest.mark.parametrize("name", ["", "with space", "a/b", "x" * 65, "\n", "ünder"])
def test_a_stage_whose_name_is_none_is_refused_in_the_request_and_said_at_its_definition(
    request_in: Run, recorder: Recorder, name: str
) -> None:
    """In a request it is counted; at start-up it is an error."""

    def work(_: Record) -> None:
        with stage(name, a=1) as running:
            running.set(a=2)

    request_in(work)

    assert recorder.status()["probe_failures"]["stage_refused"] == 1
    with pytest.raises(ValueError, match="letters, digits"):
        define_stage(name)


def test_a_stage_cannot_be_defined_in_two_ways() -> None:
    """The same definition twice is one; another one is an error."""
    define_stage("test.defined.once", parent="p", n=int)
    define_stage("test.defined.once", parent="p", n=int)

    with pytest.raises(ValueError, match="declared before"):
        define_stage("test.defined.once", parent="q", n=int)
    with pytest.raises(ValueError, match="int, float, bool or str"):
        define_stage("test.defined.badly", n=list)


def test_defined_stages_have_their_parent_and_cpu_time(
    recorder: Recorder, request_in: Run, ring: RingFile, decode: Decode
) -> None:
    """cpu=True measures the thread's CPU time: work counts, sleep does not."""
    define_stage("test.cpu", parent="scheduler.dispatch", cpu=True)

    def work(_: Record) -> None:
        with stage("test.cpu"):
            threading.Event().wait(0.05)
            sum(range(10_000))

    request_in(work)
    row = decode(ring)[0]

    assert ring.header.stages["test.cpu"] == "scheduler.dispatch"
    assert 0 < row["test.cpu/cpu_ns"] < row["test.cpu/duration_ns"]
    assert row["test.cpu/duration_ns"] - row["test.cpu/cpu_ns"] > 40_000_000


def test_a_record_works_from_another_thread_and_bind_makes_it_current(
    request_in: Run, ring: RingFile, decode: Decode
) -> None:
    """Context variables do not follow into executors."""
    found: list[Record | None] = []

    def work(record: Record) -> None:
        def elsewhere() -> None:
            found.append(current())
            with record.stage("by.handle", n=1):
                pass
            with bind(record), stage("by.binding", n=2):
                found.append(current())
            found.append(current())

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    request_in(work)
    row = decode(ring)[0]

    assert (1, 2) == (row["by.handle/n"], row["by.binding/n"])
    assert (None, True, None) == (found[0], found[1] is not None, found[2])


def test_a_batch_stage_marks_every_record_with_one_batch(recorder: Recorder, ring: RingFile, decode: Decode) -> None:
    """Batch mates share the number; the next batch has another one; what is no request is left out."""
    begun = [recorder.begin(SCOPE) for _ in range(3)]
    records = [pair[1] for pair in begun if pair]
    with batch_stage([records[0], None, records[1]], "model.forward", batch_size=2) as running:
        running.set(device_type="cpu")
    with batch_stage([records[2]], "model.forward", batch_size=1):
        pass
    for pair in begun:
        assert pair is not None
        recorder.finish(pair, SCOPE, 200, False)
    rows = decode(ring)

    assert [2, 2, 1] == [row["model.forward/batch_size"] for row in rows]
    assert ["cpu", "cpu", ""] == [row["model.forward/device_type"] for row in rows]
    assert rows[0]["batch_id"] == rows[1]["batch_id"] != rows[2]["batch_id"] != 0


def test_a_row_begun_under_an_older_schema_grows(recorder: Recorder, ring: RingFile, decode: Decode) -> None:
    """A request in flight takes stages that other requests brought meanwhile."""
    first, second = recorder.begin(SCOPE), recorder.begin(SCOPE)
    assert first is not None
    assert second is not None
    with second[1].stage("newer", n=1):
        pass
    recorder.finish(second, SCOPE, 200, False)
    with first[1].stage("newer", n=2):
        pass
    first[1].set(extra=3)
    recorder.finish(first, SCOPE, 200, False)
    rows = decode(ring)

    assert [(1, -(2**63)), (2, 3)] == [(row["newer/n"], row["request/extra"]) for row in rows]


def test_a_thread_that_goes_on_after_the_answer_does_no_harm(recorder: Recorder, ring: RingFile) -> None:
    """An abandoned deadline: its late stage marks neither the written row nor another request's slot."""
    late, other = recorder.begin(SCOPE), None
    assert late is not None
    recorder.finish(late, SCOPE, 200, False)
    other = recorder.begin(SCOPE)
    assert other is not None
    with late[1].stage("late.stage", n=1):
        slots = ring.open_slots()
    recorder.finish(other, SCOPE, 200, False)

    assert [0] == slots["stage"].tolist()
    assert [2**64 - 1] * 2 == ring.read().rows["late.stage/start_ns"].tolist()


def test_concurrent_tasks_have_records_of_their_own(recorder: Recorder, ring: RingFile, decode: Decode) -> None:
    """The current record follows its task."""

    async def request(number: int) -> None:
        begun = recorder.begin(SCOPE)
        assert begun is not None
        with bind(begun[1]):
            for _ in range(3):
                with stage("work"):
                    await asyncio.sleep(0)
            record = current()
            assert record is not None
            record.set(tokens=number)
        recorder.finish(begun, SCOPE, 200, False)
        assert begun[1].row[0] >= 0

    async def main() -> None:
        await asyncio.gather(*(request(number) for number in range(8)))

    asyncio.run(main())
    assert set(range(8)) == {row["tokens"] for row in decode(ring)}


def test_ids_are_told(recorder: Recorder) -> None:
    """For logs and answers: the trace id and the session id that the row has."""
    headers = [(b"x-session-id", b"session-0123456789"), (b"traceparent", b"00-%s-%s-00" % (b"a" * 32, b"b" * 16))]
    begun = recorder.begin({**SCOPE, "headers": headers})
    assert begun is not None

    assert ("a" * 32, "session-0123456789", "ok") == (begun[1].trace_id, begun[1].session, begun[1].outcome)


def test_stages_given_to_a_plan_are_there_at_once(recorder: Recorder) -> None:
    """Declared stages cost no revision when they first run."""
    begun = recorder.begin(SCOPE)
    assert begun is not None
    plan = begun[1].writer.plan
    plan._declare_all([StageSpec("one"), StageSpec("two")])
    revisions = len(plan.revisions)
    with begun[1].stage("one"), begun[1].stage("two"):
        pass

    assert revisions == len(plan.revisions)


def test_a_stage_on_a_ring_that_was_closed_is_counted_and_its_block_runs(recorder: Recorder) -> None:
    """Shutdown under a request: the work goes on without the stage."""
    begun = recorder.begin(SCOPE)
    assert begun is not None
    begun[0].ring.close()
    ran = False
    with begun[1].stage("late", n=1) as running:
        running.set(n=2)
        ran = True

    assert ran
    assert 1 == recorder.status()["probe_failures"]["stage"]
