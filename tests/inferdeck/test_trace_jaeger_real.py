"""A real Jaeger beside the real stack: spans arrive, sessions are found, records promoted, and its death is said."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inferdeck.http_get import post_json
from inferdeck.jaeger_api import JaegerApi
from inferdeck.stack.commands import prepare_model
from tests.containers.images import jaeger_binary
from tests.inferdeck.stack.test_up_down import MODEL, Console

# A fresh machine compiles Jaeger first, once for all tests.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1900)]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Yield a console whose PATH has Jaeger."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "jaeger").symlink_to(jaeger_binary())
    prepare_model(MODEL, lambda _what, _share: None)
    console = Console(tmp_path)
    console.variables["PATH"] = f"{tmp_path / 'bin'}:{console.variables['PATH']}"
    # none by chance: what was kept is known
    console.variables["INFERDECK_EXPORTER_KEEP_SHARE"] = "0"
    yield console
    console.run("down")


def ask(console: Console, session: str) -> None:
    """Send one review of a session."""
    body = {"text": "great book", "product_id": "AB12345678"}
    status, _ = post_json(f"http://127.0.0.1:{console.service_port}/v1/sentiment", body, 10, {"X-Session-Id": session})
    assert 200 == status


def held(jaeger: str, session: str) -> list[dict[str, Any]]:
    """Return a session's traces in Jaeger."""
    return JaegerApi(jaeger, deadline_seconds=10).session(session, time.time() - 600, time.time() + 60)


def becomes(true: Callable[[], object], seconds: float = 30.0) -> bool:
    """Return whether it becomes true in time."""
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.3)
    return bool(found)


def test_from_the_request_to_jaeger_and_back(console: Console, tmp_path: Path) -> None:
    """Kept spans arrive by themselves, others by hand; without the rows Jaeger answers, without Jaeger the rows do."""
    up = console.result("up")
    jaeger = up["urls"]["jaeger"]
    kept, other = "kept-session-00001", "other-session-0001"
    # the first ten of a worker are kept, whatever they are
    for _ in range(10):
        ask(console, kept)
    ask(console, other)
    assert becomes(lambda: len(held(jaeger, kept)) == 10)
    tags = [{tag["key"]: tag["value"] for tag in span["tags"]} for one in held(jaeger, kept) for span in one["spans"]]
    assert {kept} == {tag["session.id"] for tag in tags}
    assert 10 == sum(tag.get("session_id") == kept for tag in tags)
    assert [] == held(jaeger, other)

    both = console.result("trace", kept)
    assert {"ring", "jaeger"} <= set(both["sources"])
    assert (10, 10, "") == (len(both["traces"]), both["jaeger"]["found"], both["jaeger"]["error"])

    page = tmp_path / "page.html"
    sent = console.result("trace", other, "--promote", "--html", str(page))
    assert (1, 0) == (sent["promoted"]["traces"], sent["promoted"]["rejected"])
    assert other in page.read_text()
    assert becomes(lambda: held(jaeger, other))
    # sent again it is still one, and reads as the row does
    console.result("trace", other, "--promote")
    [mine] = sent["traces"]
    assert becomes(lambda: len(held(jaeger, other)) == 1)

    console.variables["INFERDECK_RING_DIR"] = str(tmp_path / "nothing")
    [theirs] = console.result("trace", "--trace", mine["trace_id"])["traces"]
    assert [(span["name"], span["parent"], span["span_id"]) for span in mine["spans"]] == [
        (span["name"], span["parent"], span["span_id"]) for span in theirs["spans"]
    ]
    assert (mine["status"], mine["session_id"]) == (theirs["status"], theirs["session_id"])
    console.variables["INFERDECK_RING_DIR"] = str(tmp_path / "rows")

    status = {part["name"]: part for part in console.result("status")["parts"]}
    os.kill(status["jaeger"]["pid"], signal.SIGKILL)
    code, out, _ = console.run("trace", other, "--jaeger", jaeger, "--json")
    alone = json.loads(out)
    assert (0, 1, ["ring"]) == (code, len(alone["traces"]), [one for one in alone["sources"] if one != "archive"])
    assert "cannot be asked" in alone["jaeger"]["error"]
    assert 200 == console.ask()
