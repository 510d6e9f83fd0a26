"""The chain in the running app: what the model reads, what is answered, what is kept, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from service.deadletters.letters import FOLDER, read_letters

pytestmark = pytest.mark.anyio
URL = "/v1/sentiment"


def asked(text: str) -> dict[str, str]:
    """Return a request with this text."""
    return {"text": text, "product_id": "AB12345678"}


async def test_the_model_never_reads_a_telephone_number(serve: Any, fake_backend: Any) -> None:
    """Masked behind the contract and in front of the model."""
    async with serve(fake_backend) as (client, _app):
        response = await client.post(URL, json=asked("电话１３８１２３４５６７８，谢谢"))
    assert 200 == response.status_code
    assert "电话###########，谢谢" == fake_backend.texts[-1]


async def test_what_fails_is_answered_and_kept_by_reason(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In service/deadletters below the state folder; good requests are not there, nor any text."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    image = "iVBORw0KGgo" + "AAAANSUhEUg" * 8
    async with serve() as (client, _app):
        statuses = [
            (await client.post(URL, json=asked(text))).status_code
            for text in ("very good", "it's bad", "a" * 2000, image)
        ]
        statuses.append(
            (await client.post(URL, content=b"{", headers={"content-type": "application/json"})).status_code
        )
        statuses.append((await client.post(URL, content=b"x", headers={"content-type": "text/plain"})).status_code)

    assert [200, 422, 422, 422, 400, 415] == statuses
    letters = read_letters(tmp_path / "service" / FOLDER).letters
    assert [
        ("illegal_characters", "text"),
        ("too_long", "text"),
        ("illegal_characters", "text"),
        ("schema", None),
    ] == [(one["reason"], one["field"]) for one in letters[:4]]
    assert ["schema"] * 4 + ["protocol"] == [one["link"] for one in letters]
    assert "bad" not in "".join(str(one["text"]) for one in letters)


WRITER = """
import sys
import time
from pathlib import Path
from service.deadletters.journal import Journal
journal = Journal(Path(sys.argv[1]), "letters")
number = 0
while True:
    if journal.put(lambda number=number: {"format": 1, "id": f"{number:016x}", "fill": "x" * 900}):
        number += 1
    else:
        time.sleep(0.001)
"""


def test_a_kill_in_the_middle_loses_no_written_letter(tmp_path: Path) -> None:
    """All lines but the last one are whole, in order and without a gap."""
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, env=env) as writer:
        deadline = time.monotonic() + 60
        while sum(path.stat().st_size for path in tmp_path.iterdir()) < 50_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)

    kept = read_letters(tmp_path)
    assert kept.letters
    first = int(kept.letters[0]["id"], 16)
    assert list(range(first, first + len(kept.letters))) == [int(one["id"], 16) for one in kept.letters]
    assert kept.unreadable <= 1
