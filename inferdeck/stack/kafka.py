"""A Kafka broker on this machine, for tests and for `inferdeck bench stream`: fetched by Maven, run by Java.

KRaft mode, one process that is broker and controller, on loopback, 256 MiB of heap. Jars come from Maven's registry as
`tests/containers/kafka/pom.xml` names them, each held to its SHA-256 in `jars.sha256` beside it, into `.tools/kafka`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from alerts.promtool import tools_dir
from inferdeck.stack.ports import free_ports
from inferdeck.version import ROOT

__all__ = ["Broker", "KafkaMissing", "ensure_kafka", "main"]

PROJECT: Final = ROOT / "tests" / "containers" / "kafka"
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_SECONDS: Final = 600.0
_HEAP: Final = "256m"
# Any sixteen bytes in base64: one broker is no cluster that could be mistaken for another.
_CLUSTER: Final = "aW5mZXJkZWNrLXRlc3RzMQ"


class KafkaMissing(Exception):  # noqa: N818 - says what is wrong
    """There is no Kafka here; the text says why."""


def ensure_kafka(tools: Path | None = None, project: Path = PROJECT) -> Path:
    """Return the folder of Kafka's jars, fetching them when they are not there.

    Args:
        tools: The tools folder; by default where the stack looks.
        project: Folder of pom.xml and jars.sha256.

    Raises:
        KafkaMissing: If there is no Java, no Maven, no checkout, or what came is not what was expected.
    """
    if shutil.which("java") is None:
        raise KafkaMissing("no Java here to run Kafka with; install a Java runtime, 17 or newer")
    if not (project / "pom.xml").is_file():
        raise KafkaMissing(f"no {project}: Kafka is fetched from a checkout")
    wanted = _digests(project / "jars.sha256")
    digest = hashlib.sha256((project / "jars.sha256").read_bytes()).hexdigest()[:16]
    root = (tools or tools_dir()).absolute() / "kafka"
    target = root / digest
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        # several test runs may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=root, prefix="fetch-") as scratch:
                jars = Path(scratch) / "libs"
                _fetch(project, jars)
                _check(jars, wanted)
                jars.rename(target)
    return target


def _digests(path: Path) -> dict[str, str]:
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {name: digest for digest, name in lines}


def _fetch(project: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaMissing("no Maven here to fetch Kafka with; install Maven 3.8 or newer")
    # -C: a file that is not what its checksum in the registry says is refused
    argv = [maven, "--batch-mode", "--no-transfer-progress", "-C", "-f", str(project / "pom.xml"), _PLUGIN]
    argv += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise KafkaMissing(f"Kafka was not fetched within {_FETCH_SECONDS:.0f} s; try again") from error
    if done.returncode != 0:
        told = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no reason given"]
        raise KafkaMissing(f"Kafka cannot be fetched: {told[0][:300]}")


def _check(jars: Path, wanted: dict[str, str]) -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in jars.glob("*.jar")}
    wrong = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    if wrong:
        raise KafkaMissing(f"what was fetched is not what was expected: {', '.join(wrong[:3])}")


class Broker:
    """One broker; may be stopped, killed and started again on the same port with the same data.

    Args:
        jars: As `ensure_kafka` returns it.
        folder: Its data, configuration and log.
        message_bytes: Largest message that it takes.
    """

    def __init__(self, jars: Path, folder: Path, *, message_bytes: int = 12 << 20) -> None:
        self._jars, self._folder = jars, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, controller = free_ports(2, "127.0.0.1")
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._properties.write_text(_properties(folder, self.port, controller, message_bytes), encoding="utf-8")
        self._run_tool("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties))

    def start(self, wait_seconds: float = 90.0) -> None:
        """Start it and wait until it answers.

        Raises:
            KafkaMissing: If it does not.
        """
        with (self._folder / "log").open("ab") as log:
            # no shell, no daemon: whoever started it stops it
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties)), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        until = time.monotonic() + wait_seconds
        while time.monotonic() < until and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.2)
        told = (self._folder / "log").read_text(encoding="utf-8", errors="replace")[-500:]
        self.kill()
        raise KafkaMissing(f"Kafka did not start: {told}")

    def kill(self) -> None:
        """SIGKILL it, and wait for its end; nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    @contextlib.contextmanager
    def running(self) -> Iterator[Broker]:
        """Start it, and end it at the end."""
        self.start()
        try:
            yield self
        finally:
            self.kill()

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            return bool(admin.list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Make a topic and wait until it is there.

        Args:
            name: Its name.
            partitions: How many.
            **config: The topic's own settings, with _ for each dot.
        """
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.address})
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        for future in admin.create_topics([topic]).values():
            future.result(60)

    def _java(self, *arguments: str) -> list[str]:
        java = shutil.which("java") or "java"
        # the console's colours and the JVM's start are all that these save; without them 4 s instead of 2
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{_HEAP}"]
        return [java, *quick, "-cp", f"{self._jars}{os.sep}*", *arguments]

    def _run_tool(self, *arguments: str) -> None:
        done = subprocess.run(self._java(*arguments), capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise KafkaMissing(f"Kafka's storage cannot be made: {(done.stderr or done.stdout)[-300:]}")


def _properties(folder: Path, port: int, controller: int, message_bytes: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # one that was killed may start again after this, and not after 9 s
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "500",
        "message.max.bytes": str(message_bytes),
        "auto.create.topics.enable": "true",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def main(arguments: list[str]) -> int:
    """Fetch Kafka into the tools folder unless it is there, and say where it is.

    Args:
        arguments: The tools folder; by default where the stack looks.
    """
    try:
        found = ensure_kafka(Path(arguments[0]) if arguments else None)
    except KafkaMissing as error:
        sys.stderr.write(f"kafka: {error}\n")
        return 2
    sys.stdout.write(f"kafka: {found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
