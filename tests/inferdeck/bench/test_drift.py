"""The shape and gate of `bench drift`, and that it times what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from inferdeck.bench.drift import GATES, Measured, measure_window, run_drift, samples, shape_drift
from inferdeck.bench.drift_child import PEERS as MEASURED_PEERS
from inferdeck.bench.drift_peers import PEERS, measure_peer
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch

SCHEMA = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas" / "bench_drift.schema.json"
FAST = {1_000: Measured(1e-5, 1e-5, 1e-3, 0.1, 0.1, 5000), 10_000: Measured(1e-4, 1e-5, 1e-2, 0.1, 0.1, 7000)}


def test_ours_is_measured_beside_scipy_and_has_its_statistic() -> None:
    """On the samples of the bench themselves."""
    reference, windows = samples()
    for size in GATES:
        one = measure_window(reference, windows[size], 3)
        assert one.scipy_statistic == one.statistic > 0
        assert min(one.ours_s, one.batch_s, one.scipy_s) > 0
        assert one.nbytes < 1_000_000


def test_the_result_has_the_schemas_shape_and_says_why_a_peer_is_missing(tmp_path: Path) -> None:
    """None is installed here, so that all are null with the mend."""
    result = run_drift(tmp_path, 3, tuple(PEERS), install=False, progress=lambda _what, _share: None)
    jsonschema.validate(Stopwatch().stamp(result), json.loads(SCHEMA.read_text(encoding="utf-8")))
    told = result["windows"]["1000"]["peers"]
    assert set(PEERS) == set(told)
    assert {None} == {one["s"] for one in told.values()}
    assert "--install-peers" in told["frouros"]["reason"]


def test_the_gate_asks_for_speed_at_both_windows_and_for_scipys_statistic() -> None:
    """One bit off is not equal."""
    assert shape_drift(FAST, {})["gate"]["passed"]
    assert not shape_drift({**FAST, 1_000: replace(FAST[1_000], ours_s=7e-5)}, {})["gate"]["passed"]
    assert not shape_drift({**FAST, 10_000: replace(FAST[10_000], ours_s=2.1e-4)}, {})["gate"]["passed"]
    off = replace(FAST[1_000], statistic=float(np.nextafter(0.1, 1)))
    assert not shape_drift({**FAST, 1_000: off}, {})["gate"]["passed"]


def test_a_peers_ratio_goes_by_the_scipy_of_its_own_process() -> None:
    """It was half of scipy there, we a hundredth of it here: fifty times."""
    peer = {"version": "1", "windows": {"1000": {"s": 1.0, "scipy_s": 2.0, "statistic": None}}}
    assert 50.0 == shape_drift(FAST, {"peer": peer})["windows"]["1000"]["peers"]["peer"]["speedup"]
    assert shape_drift(FAST, {"peer": peer})["windows"]["10000"]["peers"]["peer"]["s"] is None


def test_each_peer_that_can_be_installed_can_be_measured() -> None:
    """Two files, one list."""
    assert set(PEERS) == set(MEASURED_PEERS)


def test_a_peer_that_fails_costs_its_own_line(tmp_path: Path) -> None:
    """This very interpreter has no frouros; what it says last is the reason."""
    python = tmp_path / "frouros" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no module named frouros >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o700)
    found = measure_peer(tmp_path, "frouros", tmp_path / "samples.npz", 3)
    assert {"windows": {}, "reason": "failed: no module named frouros"} == found


def test_an_unknown_peer_is_refused(tmp_path: Path) -> None:
    """With those that there are."""
    with pytest.raises(CannotRun, match="unknown peers: frourus"):
        run_drift(tmp_path, 3, ("frourus",), install=False, progress=lambda _what, _share: None)
