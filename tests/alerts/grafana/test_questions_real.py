"""Grafana's questions, asked of the real Prometheus over HTTP as Grafana asks them, answer what its rules answer."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from alerts.grafana.reading import read_provisioned
from alerts.prometheus_config import Scrape, render_prometheus
from alerts.promtool import find_tool
from alerts.yaml_text import parse

ROOT = Path(__file__).resolve().parents[3]
RULES = sorted((ROOT / "alerts/rules").glob("*.yml"))

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("tools")]


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(address: str, path: str, **query: str) -> Any:
    """Return the data of an answer."""
    with urlopen(f"http://{address}/api/v1/{path}?{urlencode(query)}", timeout=5) as answer:
        return json.load(answer)["data"]


def wait_for(seconds: float, address: str, alert: str) -> bool:
    """Wait until an alert fires."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            states = {one["labels"]["alertname"]: one["state"] for one in ask(address, "alerts")["alerts"]}
            if states.get(alert) == "firing":
                return True
        except OSError:
            pass
        time.sleep(0.5)
    return False


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """The real Prometheus with our rules, itself as the exporter, and a service that does not answer."""
    address = f"127.0.0.1:{free_port()}"
    scrapes = [Scrape("inferdeck-exporter", address), Scrape("service", f"127.0.0.1:{free_port()}")]
    (tmp_path / "prometheus.yml").write_text(render_prometheus(scrapes, None, RULES, 1), encoding="utf-8")
    arguments = ["--config.file=prometheus.yml", f"--web.listen-address={address}", "--storage.tsdb.path=data"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([str(find_tool("prometheus")), *arguments], cwd=tmp_path, stdout=log, stderr=log)
        try:
            yield address
        finally:
            process.terminate()
            process.wait(30)


def series(answer: Any) -> set[tuple[Any, ...]]:
    """Return labels and value of each series."""
    return {(*sorted(one["metric"].items()), one["value"][1]) for one in answer["result"]}


def test_every_question_answers_what_the_rule_answers(prometheus: str) -> None:
    """At one moment, with one page firing: the same series; an inhibited alert's are the ones that Prometheus mutes."""
    assert wait_for(60, prometheus, "ServiceDown"), "the dead service was not found"
    now = f"{time.time():.3f}"
    groups = [group for path in RULES for group in parse(path.read_text(encoding="utf-8"))[0]["groups"]]
    told = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"] if "alert" in rule}
    answered = set()
    for rule in read_provisioned(ROOT).rules():
        if rule["title"] not in told:
            continue
        asked = series(ask(prometheus, "query", query=rule["data"][0]["model"]["expr"], time=now))
        if asked:
            answered.add(rule["title"])
        assert asked == series(ask(prometheus, "query", query=told[rule["title"]], time=now)), rule["title"]
    assert {"ServiceDown", "Watchdog"} <= answered
