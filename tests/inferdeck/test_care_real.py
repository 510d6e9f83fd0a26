"""A real stack proves itself, hands an incident over, and forgets a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferdeck.stack.commands import prepare_model
from tests.inferdeck.stack.test_up_down import MODEL, SESSION, Console, need_prometheus

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Yield a console over a model, and stop whatever it started."""
    prepare_model(MODEL, lambda _what, _share: None)
    console = Console(tmp_path)
    yield console
    console.run("down")


def test_a_stack_proves_itself_hands_over_and_forgets(console: Console, tmp_path: Path) -> None:
    """Every link works; a bundle of rows and series is replayed to the same verdict; an erased session is nowhere."""
    need_prometheus()
    console.result("up")
    for _ in range(3):
        assert 200 == console.ask()

    tested = console.result("selftest")
    bundle = console.result("bundle", "--since", "60s")
    replayed = console.result("triage", "--bundle", bundle["bundle"])
    erased = console.result("erase", SESSION)
    again = console.result("erase", SESSION)

    assert ["ok"] * 8 == [check["state"] for check in tested["checks"]], json.dumps(tested["checks"], indent=1)
    assert ([], True, True) == (bundle["missing"], bundle["series"] > 50, bundle["replay"]["same"])
    # our three and the self-test's
    assert 4 == bundle["rows"]
    assert replayed["replay"]["same"]
    assert ([], {"rows", "bundle"}) == (erased["unreached"], {one["place"] for one in erased["places"]})
    assert ([], []) == (again["unreached"], again["places"])
    assert 1 == console.run("trace", SESSION)[0]
    held = [path for path in tmp_path.rglob("*") if path.is_file() and SESSION.encode() in path.read_bytes()]
    assert [] == held
