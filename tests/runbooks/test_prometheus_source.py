"""Prometheus' HTTP API, answered by a small server and by what is no Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest

from runbooks.prometheus_source import MOST_BYTES, PrometheusSource, SourceMissingError

Answer = Callable[[dict[str, str]], tuple[int, bytes]]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Return a starter of servers that answer query_range by a function of its parameters."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                asked = {key: value[0] for key, value in parse_qs(self.rfile.read(length).decode()).items()}
                status, body = answer(asked)
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    return  # the client has had enough

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    """Return a successful answer with these series."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def test_series_come_as_arrays_without_their_name_and_without_nan(serve: Callable[[Answer], str]) -> None:
    """Labels, times and values are given; NaN is absence; a series of NaN alone is none."""
    body = matrix(
        ({"__name__": "up", "job": "service"}, [(1.0, "1"), (2.0, "NaN"), (3.0, "0")]),
        ({"__name__": "up", "job": "nothing"}, [(1.0, "NaN")]),
    )

    found = PrometheusSource(serve(lambda _: (200, body))).range("up", 0.0, 60.0)

    assert [{"job": "service"}] == [one.labels for one in found]
    np.testing.assert_array_equal([1.0, 3.0], found[0].times)
    np.testing.assert_array_equal([1.0, 0.0], found[0].values)


def test_the_time_asked_for_is_sent_with_a_bounded_number_of_points(serve: Callable[[Answer], str]) -> None:
    """A day is asked for in at most 400 steps, a quarter of an hour every five seconds."""
    asked: list[dict[str, str]] = []

    def answer(parameters: dict[str, str]) -> tuple[int, bytes]:
        asked.append(parameters)
        return 200, matrix()

    source = PrometheusSource(serve(answer))
    source.range("up", 1000.0, 1900.0)
    source.range("up", 0.0, 86400.0)

    assert ("1000.000", "1900.000", "5.000") == (asked[0]["start"], asked[0]["end"], asked[0]["step"])
    assert 216.0 == float(asked[1]["step"])


def test_all_queries_are_collected(serve: Callable[[Answer], str]) -> None:
    """Each query has its own answer."""
    url = serve(lambda asked: (200, matrix(({"q": asked["query"]}, [(1.0, "1")]))))

    found = PrometheusSource(url).collect(["a", "b"], 0.0, 60.0)

    assert {"a": "a", "b": "b"} == {query: series[0].labels["q"] for query, series in found.items()}


@pytest.mark.parametrize(
    ("status", "body", "complaint"),
    [
        (200, b"<html>hello</html>", "is no Prometheus: status 200"),
        (503, b"", "status 503"),
        (200, b"[]", "no object"),
        (400, b'{"status": "error", "error": "parse error"}', "refused a query: parse error"),
        (200, b'{"status": "success"}', "another shape"),
        (200, b'{"status": "success", "data": {"result": [{"metric": {}, "values": [["x", "y"]]}]}}', "another shape"),
        (200, b'{"status": "success", "data": {"result": [7]}}', "another shape"),
        (200, b" " * (MOST_BYTES + 1), "more than"),
    ],
)
def test_what_is_no_prometheus_is_missing_with_a_reason(
    serve: Callable[[Answer], str], status: int, body: bytes, complaint: str
) -> None:
    """A wrong address, an error, another shape, too much: one line that says so."""
    with pytest.raises(SourceMissingError, match=complaint):
        PrometheusSource(serve(lambda _: (status, body))).collect(["up"], 0.0, 60.0)


def test_nobody_there_and_nobody_in_time_are_missing(serve: Callable[[Answer], str]) -> None:
    """A closed port and a server that thinks for too long."""

    def slow(_: dict[str, str]) -> tuple[int, bytes]:
        time.sleep(0.5)
        return 200, matrix()

    for url in ("http://127.0.0.1:9", serve(slow)):
        with pytest.raises(SourceMissingError, match="does not answer"):
            PrometheusSource(url, timeout_seconds=0.1).range("up", 0.0, 60.0)


def test_an_alerts_last_firing_is_told(serve: Callable[[Answer], str]) -> None:
    """Of two firings the last one; names with quotes are escaped; none is None."""
    asked: list[str] = []

    def answer(parameters: dict[str, str]) -> tuple[int, bytes]:
        asked.append(parameters["query"])
        times = [10.0, 15.0, 500.0, 505.0, 510.0] if "Fired" in parameters["query"] else []
        return 200, matrix(*([({"alertname": "x"}, [(time, "1") for time in times])] if times else []))

    source = PrometheusSource(serve(answer))

    assert (500.0, 510.0) == source.alert_span("Fired", 0.0, 600.0)
    assert source.alert_span('No"ne', 0.0, 600.0) is None
    assert 'ALERTS{alertname="No\\"ne",alertstate="firing"}' == asked[1]
