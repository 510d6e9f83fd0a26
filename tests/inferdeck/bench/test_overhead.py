"""The plan of windows, the shape of the result, and one real run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.bench.load import Load
from inferdeck.bench.machine import versions
from inferdeck.bench.overhead import Settings, plan, run_overhead
from inferdeck.bench.overhead_result import PEER_RATIO_MAX, Run, exit_code, shape
from inferdeck.bench.proofs import Evidence, Proof
from inferdeck.bench.report import lines_below
from inferdeck.bench.rig import Measured
from inferdeck.bench.variants import VARIANTS
from inferdeck.bench.windows import Window
from inferdeck.bench.wrk_install import ensure_wrk
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from probes.core import CORE_NAME

SCHEMA = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas" / "bench_overhead.schema.json"
COSTS = {"bare": 100.0, "bare_aa": 101.0, "inferdeck_1pct": 115.0, "strongest": 310.0, "parity": 850.0}


def validate(payload: dict[str, Any]) -> None:
    """Hold a result against its schema, as the console prints it."""
    stamped = Stopwatch().stamp({**payload, "seconds": 1.0, "machine": {}, "versions": {}, **payload})
    jsonschema.validate(stamped, json.loads(SCHEMA.read_text(encoding="utf-8")))


def measured(name: str, cpu_us: float) -> Measured:
    """Return a window with this cost in which all was recorded."""
    load = Load(1000, 1016, 1.0, 0, 0, 0.001, 0.002, 0.003)
    window = Window(name, 1000, 1e6 / cpu_us, cpu_us, 0.0, 0.003, 6.0 if VARIANTS[name].ours else None)
    evidence = Evidence(1000, 0, 1000, 8, 33, inputs=True, spans=90, roots=10, samples={"http_requests_total": 1000.0})
    return Measured(window, load, evidence)


def run_of(costs: dict[str, float], proofs: tuple[Proof, ...] = (Proof("bare", "x", "y", holds=True),)) -> Run:
    """Return a run of five rounds with these costs in every window."""
    rounds = [[measured(name, costs[name]) for name in plan(list(costs), number, 1)] for number in range(5)]
    return Run(list(costs), rounds, proofs, dict.fromkeys(costs, 1 << 26))


@given(st.permutations([name for name in VARIANTS if name != "bare"]), st.integers(0, 100), st.integers())
def test_every_variant_has_bare_windows_on_both_sides(others: list[str], number: int, seed: int) -> None:
    """A round measures each variant once, with a bare window before and after each."""
    order = plan(["bare", *others], number, seed)

    assert ["bare"] * (len(others) + 1) == order[::2]
    assert sorted(others) == sorted(order[1::2])


def test_rounds_differ_and_repeat() -> None:
    """Orders change from round to round, and the same seed gives the same ones."""
    names = list(VARIANTS)

    assert len({tuple(plan(names, number, 1)) for number in range(10)}) > 1
    assert plan(names, 3, 1) == plan(names, 3, 1)


@pytest.mark.parametrize(("variants", "message"), [(("nope",), "unknown variant"), (("bare",), "nothing to compare")])
def test_a_wrong_choice_is_one_clear_line(variants: tuple[str, ...], message: str) -> None:
    """A variant that does not exist, or nothing beside bare, is refused before anything starts."""
    with pytest.raises(CannotRun, match=message):
        Settings(variants=variants).names()


def test_the_headline_compares_ours_with_the_peers() -> None:
    """Ours at 1% over the strongest peer and over parity, with the exporter and the noise beside it."""
    result = shape(run_of(COSTS))

    validate(result)
    assert (15.0, 1.0, 6.0) == (result["added_us"], result["aa_us"], result["exporter_us"])
    assert (round(15 / 210, 4), round(15 / 750, 4)) == (result["peer_ratio"], result["parity_ratio"])
    assert round(100 / 115, 4) == result["rps_ratio"]
    assert (True, 0) == (result["gate"]["passed"], exit_code(result))
    figures = result["variants"]["inferdeck_1pct"]
    assert (5000, 0, 8, 33) == tuple(
        figures[key] for key in ("rows_read", "rows_lost", "stages_per_row", "attributes_per_row")
    )
    assert (0.01, 9.0) == (figures["spans_received_share"], figures["spans_per_trace"])


def test_the_gate_is_a_sixth_of_the_strongest_peer() -> None:
    """Costing more than a sixth is a miss and exits 1; exactly a sixth is met."""
    most = 210 * PEER_RATIO_MAX
    met = shape(run_of({**COSTS, "inferdeck_1pct": 100 + most}))
    missed = shape(run_of({**COSTS, "inferdeck_1pct": 101 + most}))

    assert (True, 0) == (met["gate"]["passed"], exit_code(met))
    assert (False, 1) == (missed["gate"]["passed"], exit_code(missed))
    assert any("gate MISSED" in line for line in lines_below(missed))


def test_a_failed_proof_fails_the_run_and_is_named() -> None:
    """However fast, a run in which something was not done exits 1 and says which."""
    result = shape(run_of(COSTS, (Proof("inferdeck_1pct", "no row is lost", "3 lost", holds=False),)))

    validate(result)
    assert 1 == exit_code(result)
    assert "  inferdeck_1pct: no row is lost: 3 lost" in lines_below(result)


def test_a_kept_result_is_drawn_again_and_says_which_core_recorded() -> None:
    """`make bench` keeps the JSON and shows the table that it makes."""
    result = {**shape(run_of(COSTS)), "versions": versions()}
    drawn = subprocess.run(
        [sys.executable, "-m", "inferdeck.bench.report"],
        input=json.dumps(result),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout

    assert f"recorder: {CORE_NAME} core." in drawn
    assert "gate met" in drawn


def test_what_was_not_measured_is_null() -> None:
    """Without a peer there is no ratio, no gate and no failure."""
    result = shape(run_of({"bare": 100.0, "instrumentator": 144.0}))

    validate(result)
    assert [None] * 5 == [result[key] for key in ("added_us", "peer_ratio", "parity_ratio", "exporter_us", "aa_us")]
    assert (None, 0) == (result["gate"]["passed"], exit_code(result))


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_the_plot_is_a_picture_of_all_variants(tmp_path: Path, ending: str) -> None:
    """The file is written in the format that its name says, and the same result gives the same bytes."""
    pytest.importorskip("matplotlib")
    from inferdeck.bench.plot import need_matplotlib, plot_overhead

    one, two = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
    need_matplotlib(one)
    for target in (one, two):
        plot_overhead(shape(run_of(COSTS)), target)

    assert one.read_bytes().startswith(b"\x89PNG" if ending == ".png" else b"<?xml")
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", ["overhead.gif", "missing/overhead.svg"])
def test_a_plot_that_cannot_be_written_is_refused_before_measuring(tmp_path: Path, name: str) -> None:
    """Minutes of measuring must not end in an error about a file name."""
    from inferdeck.bench.plot import need_matplotlib

    with pytest.raises(CannotRun):
        need_matplotlib(tmp_path / name)


def test_the_table_shows_every_variant() -> None:
    """A person reads the figures of each variant, the noise, the proofs and the gate."""
    from rich.console import Console

    from inferdeck.bench.report import draw_overhead

    console = Console(width=100, record=True, color_system=None, file=io.StringIO())
    draw_overhead(shape(run_of(COSTS)), console)
    text = console.export_text()

    assert all(VARIANTS[name].title in text for name in COSTS)
    assert "nothing was switched off: 1 proofs held." in text
    assert "gate met: ours costs 0.071 of the strongest peer (at most 0.167)." in text


@pytest.mark.real
def test_one_short_real_round_holds_every_proof() -> None:
    """All variants, one round: rows, spans and counters are what the load generator sent. Says nothing about speed."""
    try:
        ensure_wrk()
    except CannotRun as error:
        pytest.skip(str(error))

    result = run_overhead(Settings(rounds=1), lambda _what, _share: None)

    validate(result)
    assert [] == result["proofs"]["failed"]
    assert list(VARIANTS) == list(result["variants"])
    assert 1.0 == pytest.approx(result["variants"]["inferdeck_100pct"]["spans_received_share"], abs=0.02)
    assert result["variants"]["inferdeck_1pct"]["attributes_per_row"] >= 21
