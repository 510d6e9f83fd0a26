"""Shapes and gates of `bench start` and `bench serve`; one real run of each."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inferdeck.bench.bodies import write_bodies
from inferdeck.bench.load import Load
from inferdeck.bench.queues import QueueFigures
from inferdeck.bench.real_service import model_or_raise
from inferdeck.bench.serve import ROUND, ROUND_WORK, run_serve
from inferdeck.bench.serve_result import Served, shape_serve
from inferdeck.bench.start import run_start, shape_start
from inferdeck.bench.triton_bare import Bare, measure_bare_ratio
from inferdeck.bench.triton_batches import gain_of, measure_batching_gain, running_triton
from inferdeck.bench.windows import Window
from inferdeck.bench.work import BYTES_VARIABLE, add_work, bytes_for
from inferdeck.bench.wrk_install import ensure_wrk
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from inferdeck.stack.triton import triton_folder
from service.triton.home import InstallError, install

SCHEMAS = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas"


def validate(name: str, payload: dict[str, Any]) -> None:
    """Hold a result against its schema, as the console prints it."""
    schema = json.loads((SCHEMAS / f"bench_{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(Stopwatch().stamp(payload), schema)


def load(rps: float, refused: int = 0) -> Load:
    """Return a window of one second at this rate."""
    return Load(int(rps), int(rps) + 16, 1.0, refused, 0, 0.001, 0.002, 0.003)


def served(on: float, not_ok: int = 0, many_not_ok: int = 0, work_on: float = 990.0) -> Served:
    """Return three rounds: the services without instruments answer 1,000 requests a second."""
    rates = {"on": on, "work_on": work_on}
    windows = []
    for name in (*ROUND, *ROUND_WORK):
        rps, instrumented = rates.get(name, 1000.0), name in rates
        window = Window(
            name, int(rps), rps, 400.0 if instrumented else 350.0, exporter_us=4.0 if instrumented else None
        )
        windows.append((window, load(rps)))
    return Served([windows] * 3, not_ok, load(900.0), many_not_ok, 16)


def test_a_start_is_the_median_of_its_runs() -> None:
    """Median and quartiles of the runs, and the gate at two seconds."""
    result = shape_start([1.0, 3.0, 1.5], [0.5, 0.4, 0.6])

    validate("start", result)
    assert (1.5, 0.5, 3, True) == (result["ready_s"], result["import_s"], result["runs"], result["gate"]["passed"])
    assert not shape_start([2.0], [0.1])["gate"]["passed"]


def test_instruments_are_compared_with_the_windows_beside_them() -> None:
    """The ratio is that of neighbouring windows; 0.90 is enough, less is a miss."""
    good, bad = shape_serve(served(900.0)), shape_serve(served(899.0))

    validate("serve", good)
    onnx = good["backends"]["onnx"]
    assert (900.0, 0.9, 0) == (onnx["rps"], onnx["uninstrumented_ratio"], onnx["errors"])
    assert (0.99, 1.0) == (onnx["uninstrumented_ratio_1ms"], onnx["aa_ratio"])
    assert (400.0, 50.0, 0.0, 4.0) == (onnx["cpu_us"], onnx["added_us"], onnx["aa_us"], onnx["exporter_us"])
    assert (True, False) == (good["gate"]["passed"], bad["gate"]["passed"])


def test_with_a_millisecond_of_work_less_than_two_hundredths_may_be_lost() -> None:
    """A gate of its own, beside that of the bare service."""
    assert shape_serve(served(1000.0, work_on=980.0))["gate"]["passed"]
    assert not shape_serve(served(1000.0, work_on=979.0))["gate"]["passed"]


def test_the_work_is_so_many_bytes_hashed_before_the_app_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the seconds ask for by the quickest of seven tries; lifespan messages go through at once."""
    ticks = iter([0.0, 0.2, *[value for at in range(6) for value in (at, at + 0.1)]])
    monkeypatch.setenv(BYTES_VARIABLE, "1000")
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    working = add_work(app)
    for kind in ("lifespan", "http"):
        asyncio.run(working({"type": kind}, None, None))  # type: ignore[arg-type]

    assert round((1 << 20) / 100) == bytes_for(0.001, lambda: next(ticks))
    assert ["lifespan", "http"] == seen


def test_degraded_answers_are_errors_beyond_what_was_cut_off() -> None:
    """Requests that the load generator cuts off at a window's end are no failures; one more is."""
    in_flight = 3 * 16
    cut, more = shape_serve(served(1000.0, not_ok=in_flight)), shape_serve(served(1000.0, not_ok=in_flight + 1))
    many = shape_serve(served(1000.0, many_not_ok=20))

    assert (0, True) == (cut["backends"]["onnx"]["errors"], cut["gate"]["passed"])
    assert (1, False) == (more["backends"]["onnx"]["errors"], more["gate"]["passed"])
    assert (4, False) == (many["clients_100_failures"], many["gate"]["passed"])


def test_vips_and_batches_are_told_beside() -> None:
    """The P99 of VIPs stands where the contract has it; a gain is over its neighbours' mean, the median of rounds."""
    rounds = [(100.0, 90.0, 80.0), (100.0, 50.0, 100.0), (100.0, 120.0, 100.0)]
    waits = {"vip": (0.002, 0.005), "normal": (0.4, 0.5)}
    result = shape_serve(served(1000.0), QueueFigures(load(50.0), load(900.0, refused=7), 61.54, waits, rounds))

    validate("serve", result)
    queues = result["queues"]
    assert (0.003, 1.0) == (result["vip_p99_s"], queues["batching_in_process_gain"])
    assert (7, 61.5) == (queues["normal_refused"], queues["normal_depth"])
    assert (0.002, 0.005, 0.4) == tuple(queues[f"{key}_p99_s"] for key in ("vip_wait", "vip_inside", "normal_wait"))
    assert result["batching_gain"] is None


def test_gain_of_batches_is_the_median_of_rounds() -> None:
    """Of texts a second in calls of eight over those in single calls beside."""
    result = shape_serve(served(1000.0), batching_gain=gain_of([(100.0, 900.0), (100.0, 400.0), (50.0, 250.0)]))

    validate("serve", result)
    assert result["batching_gain"] == 5.0


@pytest.mark.real
def test_batches_gain_with_a_real_triton(model: Path, tmp_path: Path) -> None:
    """It is started, asked, and ended. Says nothing about speed."""
    try:
        install(triton_folder())
    except InstallError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))

    wrk, bodies = ensure_wrk(), write_bodies(tmp_path / "bodies.jsonl")
    with running_triton(model, tmp_path) as port:
        assert port is not None
        gain = measure_batching_gain(port, 1, 0.3)
        bare = measure_bare_ratio(wrk, tmp_path, model, bodies, port, rounds=1, seconds=1.0)
    result = shape_serve(served(1000.0), batching_gain=gain, bare=bare)

    validate("serve", result)
    assert gain > 0
    triton = result["backends"]["triton"]
    assert triton["bare_ratio"] > 0
    assert (triton["errors"], triton["clients_100_failures"]) == (0, 0)


def test_slower_than_the_bare_app_is_a_miss() -> None:
    """Its share is the median of the rounds, and below 0.85 the gate is missed."""
    quick, slow = (load(rps) for rps in (1000.0, 500.0))

    met = shape_serve(served(1000.0), bare=Bare([(quick, quick), (slow, quick), (quick, quick)], quick))
    missed = shape_serve(served(1000.0), bare=Bare([(slow, quick)], quick))

    validate("serve", met)
    assert (met["backends"]["triton"]["bare_ratio"], met["gate"]["passed"]) == (1.0, True)
    assert (missed["backends"]["triton"]["bare_ratio"], missed["gate"]["passed"]) == (0.5, False)


def test_what_was_not_measured_is_null() -> None:
    """Nothing is made up where Triton's environment is missing."""
    result = shape_serve(served(1000.0))

    assert [None] * 4 == [
        result["backends"]["triton"]["bare_ratio"],
        *(result[key] for key in ("vip_p99_s", "batching_gain", "knee_rps")),
    ]


def test_a_missing_model_is_one_clear_line(tmp_path: Path) -> None:
    """Without a model nothing is started, and the mend is named."""
    with pytest.raises(CannotRun, match="inferdeck train"):
        model_or_raise(tmp_path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's model, trained first when there is none."""
    from service.training.ensure import ensure_model

    folder = Path(__file__).resolve().parents[3] / "build" / "model"
    ensure_model(folder, lambda _what, _share: None)
    return folder


@pytest.mark.real
def test_a_real_start_is_measured(model: Path) -> None:
    """The real service gets ready, and its imports are a part of that. Says nothing about speed."""
    result = run_start(model, 1, lambda _what, _share: None)

    validate("start", result)
    assert 0 < result["import_s"] < 60
    assert 0 < result["ready_s"] < 60


@pytest.mark.real
def test_the_real_service_answers_every_real_review(model: Path) -> None:
    """Real reviews under load, 100 clients included: no error, no failure. Says nothing about speed."""
    try:
        ensure_wrk()
    except CannotRun as error:
        pytest.skip(str(error))

    result = run_serve(model, 1, 1.0, lambda _what, _share: None)

    validate("serve", result)
    assert (0, 0) == (result["backends"]["onnx"]["errors"], result["clients_100_failures"])
    assert result["backends"]["onnx"]["rps"] > 0
    assert result["backends"]["onnx"]["exporter_us"] > 0
    assert (result["vip_p99_s"] > 0, result["queues"]["vip_refused"]) == (True, 0)
    assert result["queues"]["normal_depth"] > 0
