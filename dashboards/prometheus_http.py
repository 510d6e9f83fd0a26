"""The four questions that dashboards ask Prometheus, over its HTTP interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

__all__ = ["Prometheus", "QueryError", "Series"]

# Labels of a series, and its samples as (seconds since 1970, value).
Series = tuple[Mapping[str, str], list[tuple[float, float]]]
_TIMEOUT_SECONDS = 30.0


class QueryError(ValueError):
    """Prometheus refuses a query, or does not answer; the message says which and why."""


class Prometheus:
    """A Prometheus server."""

    def __init__(self, url: str) -> None:
        """Take the address; nothing is asked yet.

        Args:
            url: Base address, such as http://127.0.0.1:9090.
        """
        self._url = url.rstrip("/")

    def now(self, expr: str, at: float) -> list[Series]:
        """Return what an expression is at a time, one sample a series.

        Args:
            expr: PromQL.
            at: Seconds since 1970.

        Raises:
            QueryError: When it cannot be had.
        """
        data = self._ask("query", {"query": expr, "time": at})
        if data["resultType"] == "scalar":
            return [({}, [_sample(data["result"])])]
        return [(item["metric"], [_sample(item["value"])]) for item in data["result"]]

    def over(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """Return what an expression was over a time.

        Args:
            expr: PromQL.
            start: Seconds since 1970.
            end: Seconds since 1970.
            step: Seconds between two samples.

        Raises:
            QueryError: When it cannot be had.
        """
        data = self._ask("query_range", {"query": expr, "start": start, "end": end, "step": step})
        return [(item["metric"], [_sample(pair) for pair in item["values"]]) for item in data["result"]]

    def label_values(self, label: str, match: str, start: float, end: float) -> list[str]:
        """Return the values of a label over the series that *match* selects.

        Raises:
            QueryError: When they cannot be had.
        """
        found = self._ask(f"label/{label}/values", {"match[]": match, "start": start, "end": end})
        return [str(value) for value in found]

    def exemplars(self, expr: str, start: float, end: float) -> list[dict[str, Any]]:
        """Return the exemplars of the series in an expression: labels, value and timestamp of each.

        Raises:
            QueryError: When they cannot be had.
        """
        found = self._ask("query_exemplars", {"query": expr, "start": start, "end": end})
        return [exemplar for item in found for exemplar in item["exemplars"]]

    def _ask(self, path: str, parameters: Mapping[str, str | float]) -> Any:
        try:
            answer = httpx.get(f"{self._url}/api/v1/{path}", params=dict(parameters), timeout=_TIMEOUT_SECONDS)
            document = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise QueryError(f"{self._url} does not answer: {error}") from error
        if not isinstance(document, dict) or document.get("status") != "success":
            why = document.get("error", answer.status_code) if isinstance(document, dict) else answer.status_code
            raise QueryError(f"{self._url} refuses {parameters.get('query', path)}: {why}")
        return document["data"]


def _sample(pair: list[Any]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
