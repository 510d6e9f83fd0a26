"""`inferdeck bench stream`: messages a second and per core, beside the same work without an engine and Quix Streams.

Every variant reads the same messages, each in a process of its own, in turn. Per core: messages over the CPU time of
the whole process, RocksDB's and librdkafka's threads included. A broker's own work is not in any figure.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.bench.machine import describe, versions
from inferdeck.errors import CannotRun
from inferdeck.version import ROOT

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["GATE_PER_CORE", "draw_stream", "make_messages", "run_stream"]

GATE_PER_CORE: Final = 5000.0
"""Messages a second that one core must do: issue 8."""
_TOPIC: Final = "bench"
_CHILD_SECONDS: Final = 300.0
_QUESTIONS: Final = (
    "这个手机质量很好，物流也快，下次还会再来买，请问什么时候有货？",
    "How long does the delivery take, and can I return it within a week?",
    "屏幕有划痕，客服态度差，我的电话是13812345678，请尽快联系我。",
    "尺码偏大吗？平时穿M码。",
    "Does the battery last a whole day, or do I have to charge it at noon?",
)


def make_messages(count: int, begin_s: float, seed: int = 1) -> list[bytes]:
    """Return messages of the contract over ten minutes, no two of them alike.

    Args:
        count: How many.
        begin_s: Time of the first, seconds since 1970.
        seed: Draws texts and devices.
    """
    draw = random.Random(seed)
    made = []
    for number in range(count):
        query = {
            "session_id": f"session-{number % 5000:012d}",
            "utterance": f"{draw.choice(_QUESTIONS)} {number}",
            "timestamp": datetime.fromtimestamp(begin_s + 600.0 * number / count, UTC).isoformat(),
            "device_type": draw.choice(("mobile", "web", "app")),
        }
        made.append(json.dumps(query, ensure_ascii=False).encode())
    return made


def run_stream(
    count: int, rounds: int, progress: Callable[[str, float], None], *, kafka: bool = True
) -> dict[str, Any]:
    """Measure all variants that can be had here.

    Args:
        count: Messages of a round.
        rounds: Each measures every variant once; medians count.
        progress: Told what is done and the share.
        kafka: Whether a broker is wanted; it is left out, and that said, where there is none.

    Raises:
        CannotRun: If a variant counted another number of messages than there are: it would be no figure of this work.
    """
    messages = make_messages(count, time.time() - 900.0)
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="inferdeck-bench-")))
        (folder / "in").mkdir()
        (folder / "in" / "messages.jsonl").write_bytes(b"\n".join(messages) + b"\n")
        brokers, left_out = "", {}
        if kafka:
            progress("starting Kafka", 0.0)
            brokers, why = undo.enter_context(_broker(folder / "kafka", messages))
            left_out = {"kafka": why, "quix": why} if why else {}
        if not importlib.util.find_spec("quixstreams"):
            left_out["quix"] = "quixstreams is not installed; pip install 'inferdeck[bench]'"
        names = ["bare", "files", *(name for name in ("kafka", "quix") if brokers and name not in left_out)]
        found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for number in range(rounds):
            for place, name in enumerate(names):
                progress(f"{name}, round {number + 1} of {rounds}", (number + place / len(names)) / rounds)
                found[name].append(_measured(name, folder / f"{name}-{number}", folder / "in", brokers, count))
    per_core = {name: [count / one["cpu_s"] for one in all_] for name, all_ in found.items()}
    medians = {name: statistics.median(values) for name, values in per_core.items()}
    return {
        "messages": count,
        "rounds": rounds,
        "per_core": {name: round(value) for name, value in medians.items()},
        "per_core_spread": {name: [round(min(values)), round(max(values))] for name, values in per_core.items()},
        "per_second": {
            name: round(count / statistics.median(one["seconds"] for one in all_)) for name, all_ in found.items()
        },
        "of_bare": {name: round(value / medians["bare"], 3) for name, value in medians.items()},
        "left_out": left_out,
        "gate": {"per_core": GATE_PER_CORE, "passed": all(medians[name] >= GATE_PER_CORE for name in names[1:3])},
        "machine": describe(),
        "versions": versions() | _stream_versions(),
    }


def _stream_versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("confluent-kafka", "rocksdict", "quixstreams"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def _broker(folder: Path, messages: list[bytes]) -> Iterator[tuple[str, str]]:
    """Yield the address of a broker that has the messages, or "" and why there is none."""
    from inferdeck.stack.kafka import Broker, KafkaMissing, ensure_kafka

    try:
        broker = Broker(ensure_kafka(), folder)
        broker.start()
    except KafkaMissing as error:
        yield "", str(error)
        return
    try:
        broker.make_topic(_TOPIC)
        _produce(broker.address, messages)
        yield broker.address, ""
    finally:
        broker.kill()


def _produce(address: str, messages: list[bytes]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 20})
    for message in messages:
        # one key: Quix Streams keeps windows by key, and these are of all sessions together
        producer.produce(_TOPIC, message, key=b"all")
        producer.poll(0)
    if producer.flush(60):
        raise CannotRun("the broker did not take the messages", "try again on a quieter machine")


def _measured(name: str, work: Path, source: Path, brokers: str, count: int) -> dict[str, float]:
    settings: dict[str, Any] = {"state_dir": str(work), "ring_dir": str(work / "rows")}
    if name == "kafka":
        settings |= {"brokers": brokers, "topic": _TOPIC, "group": work.name, "windows_topic": "", "letters_topic": ""}
    else:
        settings |= {"folder": str(source)}
    asked = {
        "variant": name,
        "count": count,
        "file": str(source / "messages.jsonl"),
        "settings": settings,
        "brokers": brokers,
        "topic": _TOPIC,
        "folder": str(work),
    }
    argv = [sys.executable, "-P", "-m", "inferdeck.bench.stream_child"]
    done = subprocess.run(
        argv, input=json.dumps(asked), capture_output=True, text=True, timeout=_CHILD_SECONDS, check=False, cwd=ROOT
    )
    try:
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CannotRun(f"{name} did not run: {last[:200]}", "pip install 'inferdeck[stream]'") from None
    if result["messages"] != count:
        raise CannotRun(f"{name} counted {result['messages']:.0f} of {count} messages", "try again")
    return result


def draw_stream(result: dict[str, Any], console: Console) -> None:
    """Print one line for each variant."""
    from rich.table import Table

    words = {
        "bare": "the same work without an engine",
        "files": "stream from files, state in RocksDB, rows",
        "kafka": "stream from Kafka, state in RocksDB, rows",
        "quix": "Quix Streams, duplicates and two sums in its state",
    }
    table = Table("", "messages/s per core", "of bare", "messages/s", box=None)
    for name, value in result["per_core"].items():
        table.add_row(words[name], f"{value:,}", f"{result['of_bare'][name]:.0%}", f"{result['per_second'][name]:,}")
    console.print(table)
    for name, why in result["left_out"].items():
        console.print(f"left out: {name}: {why}")
    gate = result["gate"]
    console.print(f"{'passed' if gate['passed'] else 'missed'}: {gate['per_core']:,.0f} messages/s per core")
