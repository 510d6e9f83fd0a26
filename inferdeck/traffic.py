"""Open-loop traffic of real reviews: requests leave when they are due, whether or not earlier ones have been answered.

A closed loop would send less while the service is slow and so hide what users feel. Runs as a process of its own
(`python -m inferdeck.traffic`), so that it neither disturbs nor is disturbed by what is measured. Bounds: rate, time,
requests in flight, sessions and bodies are all fixed at the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

__all__ = ["Generator", "Session", "Tally", "TrafficPlan", "main", "make_sessions", "read_plan"]

# a browser family, a mobile app and a server-side client: what the agent-family attribute tells apart; some phones are
# old, as everywhere, and their agents are of another form than today's
DEVICES = (
    ("web", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
    (
        "mobile",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Version/17.5 Safari/604.1",
    ),
    ("app", "ReviewApp/4.2 (Android 14)"),
    (
        "mobile",
        "Mozilla/5.0 (iPhone; U; CPU iPhone OS 4_3_3 like Mac OS X; en-us) AppleWebKit/533.17.9 Version/5.0.2 Safari",
    ),
)
# of 24 visitors each; exact, so that no seed leaves a kind out
WEIGHTS = (8, 7, 8, 1)
RELEASES = ("4.1.0", "4.2.0", "4.2.1")
# more than this many unanswered requests would measure our own sockets; the rest is counted as not sent
MAX_IN_FLIGHT = 512
MAX_RATE = 2000.0
MAX_SECONDS = 4 * 3600.0
ANSWER_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True)
class Session:
    """One visitor: what stays the same over its requests."""

    session_id: str
    device_type: str
    user_agent: str
    client_release: str


@dataclass(frozen=True)
class TrafficPlan:
    """What to send.

    Attributes:
        url: Base URL of the service.
        rate: Requests a second on average; gaps are exponential, as of many independent visitors.
        seconds: End by itself after this time.
        sessions: Size of the pool of visitors.
        bodies: How many different reviews are used.
        seed: Draws sessions, gaps and the order of the reviews.
    """

    url: str
    rate: float = 20.0
    seconds: float = 600.0
    sessions: int = 120
    bodies: int = 600
    seed: int = 1


@dataclass
class Tally:
    """What came of it: counts by status, and by reason where there was no status.

    `sent` are requests that left; each is in `by_status` once it has an end.
    """

    sent: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    degraded: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the tally as plain JSON values."""
        return {"sent": self.sent, "by_status": dict(sorted(self.by_status.items())), "degraded": self.degraded}


def read_plan(raw: dict[str, object]) -> TrafficPlan:
    """Check a plan that came as JSON.

    Raises:
        ValueError: If a value is out of its bounds.
        TypeError: If a field is unknown.
    """
    plan = TrafficPlan(**raw)  # type: ignore[arg-type]  # values are checked just below
    if not (
        0 < plan.rate <= MAX_RATE
        and 0 < plan.seconds <= MAX_SECONDS
        and 0 < plan.sessions <= 10_000
        and 0 < plan.bodies <= 20_000
    ):
        raise ValueError(f"traffic plan out of bounds: {plan}")
    return plan


def make_sessions(count: int, seed: int) -> list[Session]:
    """Return a pool of visitors.

    Args:
        count: How many.
        seed: The same seed gives the same devices and releases; ids are fresh in each run, as personal data should be.
    """
    rng = random.Random(seed)
    pool: list[Session] = []
    kinds = [device for device, weight in zip(DEVICES, WEIGHTS, strict=True) for _ in range(weight)]
    for number in range(count):
        if number % len(kinds) == 0:
            rng.shuffle(kinds)
        device, agent = kinds[number % len(kinds)]
        # 16 bytes as URL-safe base64 are 22 characters of [A-Za-z0-9_-]: row B3's pattern
        pool.append(Session(secrets.token_urlsafe(16), device, agent, rng.choice(RELEASES)))
    return pool


def encode_request(host: str, body: bytes, session: Session) -> bytes:
    """Return the bytes of one POST /v1/sentiment."""
    head = (
        f"POST /v1/sentiment HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"X-Session-Id: {session.session_id}\r\nX-Device-Type: {session.device_type}\r\n"
        f"X-Client-Release: {session.client_release}\r\nUser-Agent: {session.user_agent}\r\n\r\n"
    )
    return head.encode("ascii") + body


class Generator:
    """Sends a plan's requests over a pool of kept-alive connections."""

    def __init__(self, plan: TrafficPlan, bodies: Sequence[bytes]) -> None:
        """Take the plan and the bodies; nothing is sent yet.

        Args:
            plan: What to send.
            bodies: JSON bodies, used in a drawn order.
        """
        parts = urlsplit(plan.url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self.plan = plan
        self.rate = plan.rate
        self.tally = Tally()
        self._rng = random.Random(plan.seed)
        self._sessions = make_sessions(plan.sessions, plan.seed)
        self._bodies = bodies
        # bounded by MAX_IN_FLIGHT: a connection is either here or used by a request in flight
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._flying: set[asyncio.Task[None]] = set()
        self.going = asyncio.Event()
        self._stopped = False
        self._woken = asyncio.Event()

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True
        self._woken.set()

    def set_rate(self, rate: float) -> None:
        """Change the rate at once, in requests a second; 0 sends nothing until the next change."""
        self.rate = min(max(rate, 0.0), MAX_RATE)
        self._woken.set()

    async def run(self) -> None:
        """Wait for `going`, send until the time is over or `stop` is called, then wait for what is in flight."""
        await self.going.wait()
        begin = due = time.monotonic()
        end = begin + self.plan.seconds
        while not self._stopped and due < end:
            due += self._rng.expovariate(self.rate) if self.rate else self.plan.seconds
            if await self._woken_before(min(due, end)):
                # gaps have no memory: one from now at the new rate is as good as the one that was broken off
                due = time.monotonic()
                continue
            if due >= end:
                break
            if len(self._flying) >= MAX_IN_FLIGHT:
                self.tally.by_status["not_sent"] += 1
                continue
            task = asyncio.create_task(self._one())
            self._flying.add(task)
            task.add_done_callback(self._flying.discard)
        if self._flying:
            await asyncio.wait(self._flying, timeout=ANSWER_TIMEOUT_SECONDS + 1)
        for _, writer in self._idle:
            writer.close()

    async def _woken_before(self, due: float) -> bool:
        """Wait until a time, in monotonic seconds; return True early when there is something new to obey."""
        left = due - time.monotonic()
        if left > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), left)
        woken = self._woken.is_set()
        self._woken.clear()
        return woken

    async def _one(self) -> None:
        session, body = self._rng.choice(self._sessions), self._rng.choice(self._bodies)
        self.tally.sent += 1
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                status, answer = await self._exchange(encode_request(f"{self._host}:{self._port}", body, session))
        except TimeoutError:
            self.tally.by_status["timeout"] += 1
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            self.tally.by_status["refused" if isinstance(error, ConnectionRefusedError) else "broken"] += 1
        else:
            self.tally.by_status[str(status)] += 1
            self.tally.degraded += b'"degraded":true' in answer.replace(b" ", b"")

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not (writer.is_closing() or reader.at_eof()):
                break
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        keep = False
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            status = int(head.split(b" ", 2)[1])
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            answer = await reader.readexactly(length)
            keep = b"connection: close" not in head
        finally:
            if keep:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return status, answer


async def _obey(generator: Generator) -> None:
    """Read commands from stdin: `go`, `rate N`, `stop`; its end stops too, so traffic never outlives its starter."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().split():
        if line[0] == "rate":
            generator.set_rate(float(line[1]))
        elif line[0] == "go":
            generator.going.set()
        elif line[0] == "stop":
            break
    generator.stop()
    generator.going.set()


async def _report(generator: Generator) -> None:
    """Print the tally once a second, one JSON object a line."""
    while True:
        await asyncio.sleep(1.0)
        print(json.dumps(generator.tally.to_json()), flush=True)  # noqa: T201  # stdout is the channel to the starter


async def _main(plan: TrafficPlan, bodies: Sequence[bytes]) -> None:
    generator = Generator(plan, bodies)
    helpers = [asyncio.create_task(_obey(generator)), asyncio.create_task(_report(generator))]
    await generator.run()
    for helper in helpers:
        helper.cancel()
    print(json.dumps(generator.tally.to_json() | {"ended": True}), flush=True)  # noqa: T201  # as above


def main(argv: list[str]) -> int:
    """Send the traffic of a plan.

    Args:
        argv: One JSON object with the fields of `TrafficPlan`.

    Returns:
        0 when the plan was carried out, 2 when it is wrong.
    """
    try:
        plan = read_plan(json.loads(argv[0]))
    except (ValueError, TypeError, IndexError) as error:
        sys.stderr.write(f"traffic: {error}\n")
        return 2
    from service.reviews import review_requests
    from service.training.corpus import CorpusMissing

    try:
        requests = review_requests(plan.bodies, plan.seed)
    except CorpusMissing as error:
        sys.stderr.write(f"traffic: {error}\n")
        return 2
    print(json.dumps({"ready": True, "reviews": asdict(requests.share)}), flush=True)  # noqa: T201  # as above
    asyncio.run(_main(plan, requests.bodies))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
