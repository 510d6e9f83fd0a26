"""A topic of Kafka as the source, and topics for dead letters and windows; by librdkafka (confluent-kafka).

Partitions are assigned, not balanced: what a partition adds up to lies in this process's state, and a partition that
moved to another process would be counted in both. Where one process is not enough, each gets its own partitions.
Offsets come from the state; they are also committed to the group, for tools that show its lag, and nothing reads them.

Bounded   librdkafka holds 16 MiB of fetched messages at most, or one message that is larger.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from service.stream.letters import FolderSink, SinkFailed, document_of
from service.stream.message import Message
from service.stream.process import Letter
from service.stream.source import Backlog, SourceFailed
from service.stream.windows import Window

__all__ = ["KafkaSink", "KafkaSource"]

_log = logging.getLogger("service.stream")

_QUEUED_KIB: Final = 16 * 1024
_START_SECONDS: Final = 10.0
_CHECK_SECONDS: Final = 2.0
_FLUSH_SECONDS: Final = 30.0
# librdkafka's TIMESTAMP_NOT_AVAILABLE
_NO_STAMP: Final = 0


class KafkaSource:
    """Reads partitions of one topic.

    Args:
        brokers: `host:port`, with commas between them.
        topic: The topic.
        group: Name under which offsets are committed for others to see.
        partitions: Numbers; None for all that the topic has at the start.
    """

    def __init__(self, brokers: str, topic: str, group: str, partitions: Sequence[int] | None = None) -> None:
        self._topic, self._wanted = topic, partitions
        self._up = False
        self._checked = 0.0
        self._next: dict[int, int] = {}
        self._ended: set[int] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                # an offset that the topic no longer has: what is left is read
                "auto.offset.reset": "earliest",
                "queued.max.messages.kbytes": _QUEUED_KIB,
                "fetch.wait.max.ms": 100,
                "error_cb": self._failed,
                "logger": _log,
                "log_level": 3,
            }
        )

    def start(self, positions: Mapping[str, int], back_to_ns: int) -> None:
        """Assign the partitions.

        Raises:
            SourceFailed: If no broker answers, or there is no such topic.
        """
        try:
            known = self._consumer.list_topics(self._topic, timeout=_START_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise SourceFailed(f"no broker answers ({error.args[0].str()})") from error
        if known.error is not None or not known.partitions:
            raise SourceFailed(f"there is no topic {self._topic}; make it, or name another")
        wanted = sorted(known.partitions) if self._wanted is None else list(self._wanted)
        if missing := [number for number in wanted if number not in known.partitions]:
            raise SourceFailed(f"the topic {self._topic} has no partition {missing[0]}")
        self._next = {number: positions[str(number)] for number in wanted if str(number) in positions}
        fresh = [TopicPartition(self._topic, number, back_to_ns // 1_000_000) for number in wanted]
        fresh = [one for one in fresh if one.partition not in self._next]
        assigned = [TopicPartition(self._topic, number, offset) for number, offset in self._next.items()]
        if fresh:
            found = self._consumer.offsets_for_times(fresh, timeout=_START_SECONDS)
            # of a partition without a message as young the answer is its end
            assigned += [TopicPartition(self._topic, one.partition, max(one.offset, OFFSET_BEGINNING)) for one in found]
        self._consumer.assign(assigned)
        self._up = True

    def poll(self, most: int, wait_seconds: float) -> list[Message]:
        """Return the next messages."""
        self._look_after_down()
        found = []
        for one in self._consumer.consume(most, wait_seconds):
            error = one.error()
            if error is None:
                found.append(self._message(one))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._up = True
                self._ended.add(one.partition())
        return found

    def gone(self) -> Sequence[str]:
        """Partitions of a topic are never taken away."""
        return ()

    def backlog(self) -> Backlog:
        """Return what waits, as the brokers told with the latest messages."""
        waiting = 0
        behind = set()
        for one in self._consumer.assignment():
            if one.partition in self._ended:
                continue
            behind.add(str(one.partition))
            low, high = self._consumer.get_watermark_offsets(one, cached=True)
            # negative while no broker has told
            waiting += max(0, high - self._next.get(one.partition, max(0, low)))
        return Backlog(self._up, float(waiting), frozenset(behind) if self._up else None)

    def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Commit offsets for who looks at the group; whether that arrives matters to nobody here."""
        offsets = [TopicPartition(self._topic, int(name), position) for name, position in positions.items()]
        if offsets and self._up:
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _message(self, one: Any) -> Message:
        self._up = True
        partition, offset = one.partition(), one.offset()
        self._next[partition] = offset + 1
        self._ended.discard(partition)
        value = one.value()
        kind, stamp_ms = one.timestamp()
        stamp = None if kind == _NO_STAMP else stamp_ms * 1_000_000
        return Message(str(partition), offset + 1, value, len(value or b""), one.headers() or (), stamp)

    def _failed(self, error: KafkaError) -> None:
        """Hear of errors of the client as a whole; called from within `consume`."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            if self._up:
                _log.warning("no broker answers; it is asked again until one does")
            self._up = False
            self._checked = time.monotonic()

    def _look_after_down(self) -> None:
        """Ask whether a broker is back: a topic without news says nothing by itself."""
        if self._up or time.monotonic() < self._checked + _CHECK_SECONDS:
            return
        self._checked = time.monotonic()
        try:
            self._consumer.list_topics(self._topic, timeout=1.0)
        except KafkaException:
            return
        _log.warning("a broker answers again")
        self._up = True


class KafkaSink:
    """Sends letters and windows to topics, and writes letters to the folder as well.

    Args:
        brokers: `host:port`, with commas between them.
        letters_topic: Topic of dead letters; "" for none.
        windows_topic: Topic of complete windows, keyed by their minute and *name*: the latest of a key counts, so that
            the topic can be compacted, and one that is sent again changes nothing. "" for none.
        name: Who sums up; beside other processes with other partitions.
        folder: Where letters are kept as well.
    """

    def __init__(self, brokers: str, letters_topic: str, windows_topic: str, name: str, folder: FolderSink) -> None:
        self._letters, self._windows, self._name, self._folder = letters_topic, windows_topic, name, folder
        self._refused: Any = None
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(_FLUSH_SECONDS * 1000),
                "logger": _log,
                "log_level": 3,
            }
        )

    def deliver(self, letters: Sequence[Letter], windows: Sequence[Window]) -> None:
        """Send them and wait until the brokers have them.

        Raises:
            SinkFailed: If one was not taken in time.
        """
        self._folder.deliver(letters, ())
        self._refused = None
        try:
            for letter in letters if self._letters else ():
                self._send(self._letters, letter.id, document_of(letter))
            for window in windows if self._windows else ():
                key = f"{window.minute * 60}/{self._name}"
                self._send(self._windows, key, window.to_json() | {"by": self._name})
        except BufferError as error:
            raise SinkFailed("the producer's queue is full") from error
        left = self._producer.flush(_FLUSH_SECONDS) if letters or windows else 0
        if left or self._refused is not None:
            told = f"{left} wait" if self._refused is None else self._refused.str()
            raise SinkFailed(f"dead letters or windows were not taken ({told})")

    def _send(self, topic: str, key: str, document: Mapping[str, Any]) -> None:
        body = json.dumps(document, separators=(",", ":")).encode()
        self._producer.produce(topic, body, key=key.encode(), on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._refused = error

    def close(self) -> None:
        """Let go of the producer and the folder."""
        self._producer.flush(1.0)
        self._folder.close()
