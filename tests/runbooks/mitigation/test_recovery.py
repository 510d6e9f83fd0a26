"""The alert's expression comes from the rules that Prometheus has loaded, and is asked again there."""

from __future__ import annotations

import httpx
import pytest

from runbooks.mitigation.recovery import AlertExpression

RULES = {"data": {"groups": [{"rules": [{"name": "Other", "query": "1"}, {"name": "Broken", "query": "up == 0"}]}]}}


def expression(result: object, status: int = 200) -> AlertExpression:
    """Return the expressions of a Prometheus that is played."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v1/rules":
            return httpx.Response(status, json=RULES)
        assert "up == 0" == request.url.params["query"]
        return httpx.Response(200, json={"data": {"result": result}})

    return AlertExpression("http://prometheus", transport=httpx.MockTransport(handle))


@pytest.mark.parametrize(
    ("found", "alert", "expected"),
    [
        (expression([{"metric": {}, "value": [0, "0"]}]), "Broken", True),
        (expression([]), "Broken", False),
        (expression([]), "Unknown", None),
        (expression([], status=503), "Broken", None),
        (AlertExpression("http://127.0.0.1:9"), "Broken", None),
    ],
)
def test_an_expression_holds_when_it_has_a_result(found: AlertExpression, alert: str, expected: bool | None) -> None:
    """No rule and no Prometheus are neither yes nor no."""
    assert expected is found.holds(alert)
