"""What a seed draws: the same in both processes, within what the program says, and another thing for another seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inferdeck.drill import wrapping
from inferdeck.drill.command import DrillRequest, order
from inferdeck.drill.drawing import BASELINE_SHARES, RATE_SHARES, draw, drawn_plan
from inferdeck.drill.program import Program, failures_folder, known_programs, load_module, read_program
from inferdeck.drill.run import RunPlan
from inferdeck.errors import CannotRun

# Written for twenty requests a second; with fewer of them it takes a larger share.
STRONGER = {"thread_pool_exhausted"}
TEXT = '''"""A pause."""
SLUG = "event_loop_blocked"
SECONDS = 0.2
TIMES = 3
DRAWN = {"SECONDS": (0.1, 0.4), "TIMES": (2, 5)}
ALL = SECONDS * TIMES
def wrap(app, armed, seconds=SECONDS):
    return seconds, TIMES, ALL
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a program that lets two numbers vary."""
    path = tmp_path / "paused.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_without_a_seed_numbers_are_as_written(file: Path) -> None:
    """What tests of programs load is what stands there."""
    module: Any = load_module(file)
    assert (0.2, 3, pytest.approx(0.6)) == module.wrap(None, None)


def test_a_seed_draws_within_the_range_and_what_follows_from_it(file: Path) -> None:
    """Defaults and computed numbers too; whole ones stay whole."""
    seen = set()
    for seed in range(20):
        module: Any = load_module(file, seed=seed)
        seconds, times, both = module.wrap(None, None)
        assert 0.1 <= seconds <= 0.4
        assert times in {2, 3, 4, 5}
        assert isinstance(times, int)
        assert both == pytest.approx(seconds * times)
        assert {"SECONDS": seconds, "TIMES": times} == draw(read_program(file).ranges, seed, "paused")
        seen.add((seconds, times))
    assert len(seen) > 15


def test_the_services_process_draws_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the seed by its environment, beside the program."""
    for name, value in (
        (wrapping.PROGRAM_VARIABLE, str(file)),
        (wrapping.HOOK_VARIABLE, "wrap"),
        (wrapping.FLAG_VARIABLE, str(file.with_name("flag"))),
        (wrapping.SEED_VARIABLE, "7"),
    ):
        monkeypatch.setenv(name, value)
    drawn: Any = load_module(file, seed=7)
    assert drawn.wrap(None, None) == wrapping.wrap(None)

    monkeypatch.setenv(wrapping.SEED_VARIABLE, "")
    assert wrapping.wrap(None)[0] == 0.2


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('{"SECONDS": 0.1}', "no least and most"),
        ('{"SECONDS": (0.4, 0.1)}', "no least and most"),
        ('{"SECONDS": ("a", "b")}', "no least and most"),
        ('{"PAUSE": (0.1, 0.4)}', "names no number at its top: PAUSE"),
        ('{"SLUG": (0.1, 0.4)}', "names no number at its top: SLUG"),
        ("dict(SECONDS=(0.1, 0.4))", "is no constant"),
    ],
)
def test_a_range_that_is_none_is_refused_before_anything_starts(file: Path, told: str, said: str) -> None:
    """By one line that says how to write it."""
    file.write_text(
        TEXT.replace('{"SECONDS": (0.1, 0.4), "TIMES": (2, 5)}', told),
        encoding="utf-8",
    )
    with pytest.raises(CannotRun, match=said):
        read_program(file)


@pytest.mark.parametrize("slug", known_programs(failures_folder()))
def test_what_shipped_programs_let_vary_is_around_what_they_say(slug: str) -> None:
    """The numbers as written are the ones that were tried most."""
    program = read_program(failures_folder() / f"{slug}.py")
    module: Any = load_module(program.path)
    for name, (least, most) in program.ranges.items():
        assert least <= getattr(module, name) <= most or slug in STRONGER


def test_rate_and_onset_are_drawn_around_the_plan() -> None:
    """Never less healthy time than the rules look back."""
    plan, path = RunPlan(), Path("event_loop_blocked.py")
    found = [drawn_plan(plan, seed, path) for seed in range(50)]

    assert all(RATE_SHARES[0] * plan.rate <= one.rate <= RATE_SHARES[1] * plan.rate for one in found)
    assert all(
        plan.baseline_seconds <= one.baseline_seconds <= BASELINE_SHARES[1] * plan.baseline_seconds for one in found
    )
    assert len({(one.rate, one.baseline_seconds) for one in found}) > 40
    assert drawn_plan(plan, 3, path) == found[3]
    assert drawn_plan(plan, 3, path) != drawn_plan(plan, 3, Path("service_down.py"))


def test_all_failures_come_in_an_order_of_the_seed_with_their_twins() -> None:
    """Chosen ones in the order that was given; a program without a twin has none."""
    programs = [Program(Path(f"{name}.py"), name, "", frozenset({"cause", "twin_cause"})) for name in "abcdefgh"]
    programs.append(Program(Path("i.py"), "i", "", frozenset({"cause"})))

    def slugs(**asked: Any) -> str:
        return "".join(
            one.slug.upper() if twin else one.slug for one, twin in order(programs, DrillRequest(**asked), 1)
        )

    assert "abcdefghi" == slugs()
    assert "ABCDEFGHI" == slugs(twin=True)
    assert sorted("abcdefghi") == sorted(slugs(every=True))
    assert "abcdefghi" != slugs(every=True)
    assert slugs(every=True) == slugs(every=True)
    assert slugs(every=True) != slugs(every=True, seed=2)
    assert sorted("abcdefghiABCDEFGH") == sorted(slugs(every=True, mixed=True))
