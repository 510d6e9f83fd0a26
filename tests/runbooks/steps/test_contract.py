"""Requests that break the contract are told by client and field, and apart from scanners and typing errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Window
from runbooks.sources import Sources
from runbooks.steps import contract


def refusing(
    share: float,
    *,
    release: str = "",
    reason: str = "schema",
    field: str = "product_id",
    everywhere: float = 0.0,
) -> Callable[[dict[str, Any], random.Random], None]:
    """Return a client release whose requests are refused, and a few refusals of everybody."""

    def change(one: dict[str, Any], rng: random.Random) -> None:
        hit = rng.random() < share and (release in ("", one["release"]))
        if hit or rng.random() < everywhere:
            one |= {"outcome": "refused", "reason": reason, "field": field}

    return change


def new_release(one: dict[str, Any], rng: random.Random) -> None:
    """One request in eight is of a release that was never there before."""
    if rng.random() < 0.125:
        one |= {"release": "9.0", "outcome": "refused", "reason": "schema", "field": "product_id"}


BAD: dict[str, tuple[Any, dict[str, Any]]] = {
    "a new release, all of it": (new_release, {}),
    "an old release, half of it": (refusing(0.5, release="4.2.0"), {}),
    "all releases alike": (refusing(0.3), {}),
    "everything is refused": (refusing(1.0), {}),
    "texts with forbidden characters": (refusing(0.4, release="4.1.0", reason="illegal_characters", field="text"), {}),
    "no JSON at all": (refusing(0.4, release="4.1.0", field=""), {}),
    "little traffic": (refusing(0.6, release="4.2.0"), {"rate": 3.0}),
}
HEALTHY: dict[str, Any] = {
    "nothing": None,
    "a typing error now and then": refusing(0.005),
    "a scanner's paths": refusing(0.4, reason="not_found", field=""),
    "a scanner's methods": refusing(0.4, reason="method", field=""),
}


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Any:
        """Return them."""
        del since, until
        return self.rows


def ask(rows: Any) -> dict[str, Any]:
    """Triage rows alone at the end of the incident."""
    return triage(Sources(None, FakeRows(rows)), at=1_780_000_060.0, clock=lambda: 1_780_000_061.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", BAD)
def test_a_broken_contract_is_named_from_rows_alone(requests: Callable[..., Any], case: str, seed: int) -> None:
    """Whatever the rule, the share and the client: the verdict is the same, and it knows since when."""
    change, options = BAD[case]

    found = ask(requests(change, seed=seed, **options))

    assert "contract_violations" == found["verdict"]["slug"], found["candidates"]
    assert found["window"]["onset"] is not None


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", HEALTHY)
def test_what_looks_alike_is_not_named(requests: Callable[..., Any], case: str, seed: int) -> None:
    """Wrong paths are anybody's, and a few refusals are the day's."""
    found = ask(requests(HEALTHY[case], seed=seed))

    assert found["verdict"]["slug"] is None, found["candidates"]


def test_what_was_always_refused_is_no_incident(
    requests: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """A share that is as high before is the service's own usual one: the rise says so."""
    rows = requests(refusing(0.2), before=0.0, during=60.0)
    shifted = Evidence(Window(rows.start_s[0], rows.start_s[-1], rows.start_s[0] + 30.0), None, rows)

    assert float(contract.refused_share(shifted).value or 0) > 0.1
    assert float(contract.refused_rise(shifted).value or 0) < 2.0
    assert contract.refused_rise(evidence(requests(refusing(0.2), before=0.5))).value is None


def test_release_and_field_are_named(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """The client's owner is told which release and which field; values are not there to be told."""
    known = evidence(requests(new_release))

    assert contract.one_client(known).value == pytest.approx(1.0)
    assert "client_release = 9.0" in contract.one_client(known).detail
    assert 0.0 == contract.others_refused(known).value
    assert "schema of product_id" == contract.field(known).value


def test_all_clients_alike_point_at_no_client(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """When everybody is refused the same, concentration is near 0 and the others are refused too."""
    known = evidence(requests(refusing(0.3)))

    assert float(contract.one_client(known).value or 0) < 0.2
    assert float(contract.others_refused(known).value or 0) > 0.2


def test_prometheus_alone_tells_the_share_without_wrong_paths(
    evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """Three of 23 that the contract judged, whatever a scanner asks for beside them."""
    series = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 20.0), growing({"outcome": "refused"}, 0.0, 13.0)),
        signals.REFUSED: (growing({"reason": "schema"}, 0.0, 3.0), growing({"reason": "not_found"}, 0.0, 10.0)),
    }
    known = evidence(None, series)

    assert contract.refused_share(known).value == pytest.approx(3 / 23, rel=0.01)
    assert float(contract.refused_rise(known).value or 0) > 3
    assert "prometheus" == contract.refused_share(known).source


@pytest.mark.parametrize("name", contract.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(contract, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"contract.{name}" == found.step
