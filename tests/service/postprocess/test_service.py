from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from probes.reader import RingFile, list_rings

pytestmark = pytest.mark.anyio


async def test_service_asks_the_socket_and_its_rows_say_where(
    serve: Any, good: dict[str, str], real: subprocess.Popen[bytes], socket_path: Path, tmp_path: Path
) -> None:
    """The answer is the same from the socket and, once its app is dead, from here; the rows tell the two apart."""
    told = {"postprocess_socket": socket_path, "postprocess_timeout_seconds": 20}
    async with serve(**told) as (client, _app):
        first = (await client.post("/v1/sentiment", json=good)).json()
        real.kill()
        real.wait(30)
        second = (await client.post("/v1/sentiment", json=good)).json()
    ring = RingFile(list_rings(tmp_path / "rings")[0])
    strings = ring.strings()
    where = [strings[number] for number in ring.read(0, 10).rows["postprocess.confidence/where"]]

    assert ["socket", "fallback"] == where
    assert first["confidence"] == second["confidence"] == pytest.approx(0.843795, abs=1e-6)
    assert first["sentiment"] == second["sentiment"]
