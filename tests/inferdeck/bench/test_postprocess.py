"""The bench of postprocessing: a real run, its shape, and a place that lies about itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inferdeck.bench.postprocess import _verdict_us, run_postprocess
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from service.postprocess.confidence import InProcess

SCHEMA = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas" / "bench_postprocess.schema.json"


def test_real_run_has_its_shape() -> None:
    """Both places are asked, and the socket is the dearer one on any machine."""
    seen: list[float] = []
    result: dict[str, Any] = run_postprocess(2, lambda _word, share: seen.append(share))

    jsonschema.validate(Stopwatch().stamp(result), json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert 0 < result["process_us"] < result["socket_us"]
    assert sorted(seen) == seen
    assert seen[0] == 0.0


def test_verdict_from_elsewhere_is_no_figure() -> None:
    """A fallback would be measured as the socket."""
    with pytest.raises(CannotRun, match="came from process"):
        asyncio.run(_verdict_us(InProcess(), "socket"))
