"""Evidence from Prometheus: read-only range queries with time and size limits; what fails is said, never guessed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np

from runbooks.evidence import Series
from runbooks.source_missing import SourceMissingError

__all__ = ["PrometheusSource", "SourceMissingError"]

# One answer of the embedded stack is under 100 kB; a foreign Prometheus with many instances may not fill our memory.
MOST_BYTES = 16 * 2**20
MOST_SERIES = 2000
# Prometheus itself refuses more than 11,000 points a series; 400 is plenty for a change point.
MOST_POINTS = 400
LEAST_STEP_SECONDS = 5.0


class PrometheusSource:
    """Prometheus' HTTP API, as far as triage needs it.

    Args:
        url: Base address, e.g. "http://127.0.0.1:19090".
        timeout_seconds: Limit of one query.
        transport: Another transport, for tests.
    """

    name = "prometheus"

    def __init__(self, url: str, timeout_seconds: float = 3.0, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout_seconds
        self._transport = transport

    def range(self, query: str, since: float, until: float, client: httpx.Client | None = None) -> tuple[Series, ...]:
        """Return the series of a query between two times.

        Args:
            query: PromQL.
            since: Unix seconds.
            until: Unix seconds.
            client: A client to use; one is made when absent.

        Raises:
            SourceMissingError: If Prometheus cannot be reached, is too slow, refuses, or answers something else.
        """
        step = max(LEAST_STEP_SECONDS, (until - since) / MOST_POINTS)
        params = {"query": query, "start": f"{since:.3f}", "end": f"{until:.3f}", "step": f"{step:.3f}"}
        params["timeout"] = f"{self._timeout:g}s"
        own = client or self._client()
        try:
            payload = self._fetch(own, params)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceMissingError(
                f"Prometheus at {self.url} does not answer ({type(error).__name__}); is it running?"
            ) from error
        finally:
            if client is None:
                own.close()
        return _series(payload, self.url)

    def collect(self, queries: Iterable[str], since: float, until: float) -> Mapping[str, tuple[Series, ...]]:
        """Return all queries' series, asked side by side.

        Raises:
            SourceMissingError: If any query failed: half an answer would read as "nothing there".
        """
        wanted = list(queries)
        with self._client() as client, ThreadPoolExecutor(max_workers=4) as pool:
            found = list(pool.map(lambda query: self.range(query, since, until, client), wanted))
        return dict(zip(wanted, found, strict=True))

    def alert_span(self, alert: str, since: float, until: float) -> tuple[float, float] | None:
        """Return first and last time (unix seconds) of an alert's last firing; None when it never fired."""
        name = json.dumps(alert)  # PromQL strings are quoted and escaped as JSON strings are
        firing = self.range(f'ALERTS{{alertname={name},alertstate="firing"}}', since, until)
        if not firing:
            return None
        times = np.unique(np.concatenate([one.times for one in firing]))
        # A gap of a minute and more is another incident; the last one is meant.
        breaks = np.nonzero(np.diff(times) > 60.0)[0]
        return float(times[breaks[-1] + 1] if len(breaks) else times[0]), float(times[-1])

    def _client(self) -> httpx.Client:
        # trust_env is off: a proxy from the environment must not see queries to a loopback address.
        return httpx.Client(timeout=self._timeout, transport=self._transport, trust_env=False)

    def _fetch(self, client: httpx.Client, params: Mapping[str, str]) -> Any:
        with client.stream("POST", f"{self.url}/api/v1/query_range", data=dict(params)) as answer:
            body = bytearray()
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise SourceMissingError(f"Prometheus at {self.url} answers more than {MOST_BYTES} bytes")
        try:
            payload = json.loads(bytes(body))
        except ValueError as error:
            raise SourceMissingError(
                f"{self.url} is no Prometheus: status {answer.status_code}, no JSON; check the address"
            ) from error
        if not isinstance(payload, dict) or payload.get("status") != "success":
            reason = str(payload.get("error", "no reason given"))[:200] if isinstance(payload, dict) else "no object"
            raise SourceMissingError(f"Prometheus at {self.url} refused a query: {reason}")
        return payload


def _series(payload: Any, url: str) -> tuple[Series, ...]:
    try:
        result = payload["data"]["result"]
        if len(result) > MOST_SERIES:
            raise SourceMissingError(f"Prometheus at {url} answers {len(result)} series, over {MOST_SERIES}")
        found = []
        for one in result:
            points = np.array([(float(time), float(value)) for time, value in one["values"]], dtype=float)
            points = points.reshape(-1, 2)
            points = points[~np.isnan(points[:, 1])]
            labels = {str(k): str(v) for k, v in one["metric"].items() if k != "__name__"}
            found.append(Series(labels, points[:, 0], points[:, 1]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceMissingError(f"{url} is no Prometheus: its answer has another shape; check the address") from error
    return tuple(one for one in found if len(one.times))
