"""What `grafana push` sends and `grafana check` reads back; every refusal is one line and leaves the rest alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alerts.grafana.reading import read_provisioned
from inferdeck.errors import CannotRun
from inferdeck.grafana.compare import compare
from inferdeck.grafana.connection import connect, refusals_as_one_line, seconds_of, variables_of
from inferdeck.grafana.loading import push
from inferdeck.grafana.shapes import dashboards, rule_groups
from inferdeck.schema import validate
from runbooks.notify.grafana_api import GrafanaSession
from tests.inferdeck.grafana.conftest import FakeGrafana

pytest.importorskip("grafana_client", reason="grafana-client is missing: pip install 'inferdeck[grafana]'")

ROOT = Path(__file__).resolve().parents[3]
PROMETHEUS = "http://prometheus:9090"


def session(fake: FakeGrafana, seconds: float = 5.0) -> GrafanaSession:
    """Return a session with the fake."""
    return GrafanaSession(fake.url, fake.token, seconds)


def loaded(fake: FakeGrafana) -> GrafanaSession:
    """Return a session with a fake that holds everything of ours."""
    known = session(fake)
    push(known, ROOT, variables_of({}), prometheus_url=PROMETHEUS, replace_policies=True)
    return known


def states(fake: FakeGrafana) -> dict[str, str]:
    """Return what `check` says, by part."""
    return {one.name.removeprefix("grafana: "): one.state for one in compare(session(fake), ROOT, variables_of({}))}


def test_what_was_pushed_is_read_back_the_same(fake: FakeGrafana) -> None:
    """Everything of ours is there, a second push changes nothing, and nothing is locked for people."""
    loaded(fake)
    first = [*fake.rules], [*fake.boards], {path: [*entries] for path, entries in fake.kept.items()}

    assert {"ok"} == set(states(fake).values())
    files = read_provisioned(ROOT)
    assert {rule["uid"] for rule in files.rules()} == set(fake.rules)
    assert set(dashboards(ROOT)) == set(fake.boards)
    loaded(fake)
    assert first == ([*fake.rules], [*fake.boards], {path: [*entries] for path, entries in fake.kept.items()})
    written = [headers for method, path, headers, _ in fake.asked if method != "GET" and "/provisioning/" in path]
    assert {"true"} == {headers.get("X-Disable-Provenance") for headers in written}


def test_rules_bear_the_names_of_the_http_interface(fake: FakeGrafana) -> None:
    """Which are not those of the files: folderUID, ruleGroup, missingSeriesEvalsToResolve, an interval in seconds."""
    loaded(fake)
    groups = {group["title"]: group for group in rule_groups(read_provisioned(ROOT), variables_of({}))}
    rule = groups["event_loop_blocked"]["rules"][0]

    assert (10, "inferdeck-alerts") == (groups["event_loop_blocked"]["interval"], groups["service_down"]["folderUid"])
    assert ("inferdeck-alerts", "event_loop_blocked", 1, 1) == (
        rule["folderUID"],
        rule["ruleGroup"],
        rule["orgID"],
        rule["missingSeriesEvalsToResolve"],
    )
    assert "sentiment" == rule["labels"]["service"]
    assert not {"dashboardUid", "panelId", "keepFiringFor"} & rule.keys()


def test_somebodys_policy_tree_stays_unless_told(fake: FakeGrafana) -> None:
    """Grafana has one tree, and it may be somebody's."""
    done = push(session(fake), ROOT, variables_of({}), prometheus_url=PROMETHEUS)

    assert {"receiver": "theirs"} == fake.tree
    assert ["warn"] == [one.state for one in done if one.name == "grafana: policies"]
    assert "fail" == states(fake)["policies"]


def test_a_data_source_that_is_there_is_left_alone(fake: FakeGrafana) -> None:
    """One that is missing is created when its address is given, and said otherwise."""
    fake.sources["inferdeck-prometheus"] = {"uid": "inferdeck-prometheus", "url": "theirs"}
    push(session(fake), ROOT, variables_of({}), prometheus_url=PROMETHEUS)
    assert "theirs" == fake.sources["inferdeck-prometheus"]["url"]

    fake.sources.clear()
    done = push(session(fake), ROOT, variables_of({}))
    assert ["fail"] == [one.state for one in done if one.name == "grafana: data source"]
    assert "fail" == states(fake)["data source"]


def another_question(fake: FakeGrafana) -> None:
    """Change what one rule asks."""
    rule = fake.rules["inferdeck-service_down"]
    fake.rules["inferdeck-service_down"] = json.loads(json.dumps(rule).replace("up{job=", "up{jab="))


DAMAGE: list[tuple[str, Callable[[FakeGrafana], Any], str]] = [
    ("dashboards", lambda f: f.boards.pop("inferdeck-overview"), "inferdeck-overview is missing"),
    ("dashboards", lambda f: f.boards["inferdeck-gpu"]["dashboard"]["panels"].pop(), "inferdeck-gpu has other panels"),
    ("alert rules", lambda f: f.rules.pop("inferdeck-watchdog"), "rule Watchdog is missing"),
    ("alert rules", lambda f: f.rules["inferdeck-watchdog"].update({"for": "5m"}), "rule Watchdog differs in for"),
    ("alert rules", another_question, "rule ServiceDown differs in question"),
    (
        "contact points",
        lambda f: f.kept["/api/v1/provisioning/contact-points"].pop("inferdeck-slack"),
        "contact point slack is missing",
    ),
    (
        "mute timings",
        lambda f: f.kept["/api/v1/provisioning/mute-timings"].clear(),
        "outside_working_hours_nights is missing",
    ),
    ("templates", lambda f: f.kept["/api/v1/provisioning/templates"].clear(), "inferdeck is missing or another"),
    ("policies", lambda f: f.tree.update(receiver="nobody"), "the tree sends to nobody"),
]


@pytest.mark.parametrize(("part", "damage", "said"), DAMAGE, ids=[one[2][:40] for one in DAMAGE])
def test_a_difference_is_found(fake: FakeGrafana, part: str, damage: Callable[[FakeGrafana], Any], said: str) -> None:
    """In the part that differs, and in no other."""
    known = loaded(fake)
    damage(fake)
    found = {one.name.removeprefix("grafana: "): one for one in compare(known, ROOT, variables_of({}))}

    assert [part] == [name for name, one in found.items() if one.state == "fail"]
    assert said in found[part].detail


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ((401, {"message": "Unauthorized"}), "said 401: Unauthorized; the token is wrong or has expired"),
        ((403, {"message": "Access denied"}), "said 403: Client Error 403: Access denied; the service account may not"),
        ((409, {"message": "changed"}), "said 409: Client Error 409: changed; it was changed by somebody else, or is"),
        ((500, {"message": "database is locked"}), "said 500: Server Error 500: database is locked"),
        ((502, "<html>"), "said 502"),
    ],
)
def test_a_refusal_is_one_line(fake: FakeGrafana, refusal: tuple[int, Any], said: str) -> None:
    """With what Grafana said and the mend, and without the token."""
    fake.refusal = refusal
    acts: tuple[Callable[[], object], ...] = (
        lambda: push(session(fake), ROOT, variables_of({})),
        lambda: compare(session(fake), ROOT, variables_of({})),
    )
    for act in acts:
        with pytest.raises(CannotRun) as raised, refusals_as_one_line():
            act()

        assert said in str(raised.value)
        assert "\n" not in str(raised.value)
        assert fake.token not in str(raised.value)


def test_a_grafana_that_does_not_answer_is_one_line(fake: FakeGrafana) -> None:
    """Within the time that is given to it."""
    fake.seconds = 1.0
    with pytest.raises(CannotRun, match=r"Grafana at http://127.0.0.1:\d+/\.\.\.: "), refusals_as_one_line():
        compare(session(fake, seconds=0.2), ROOT, variables_of({}))


def test_the_address_may_have_a_path(fake: FakeGrafana) -> None:
    """Behind a proxy Grafana lies below one; the client would else ask for `/grafanaapi`."""
    fake.refusal = (404, {"message": "x"})
    for url in (f"{fake.url}/grafana", f"{fake.url}/grafana/"):
        with pytest.raises(CannotRun), refusals_as_one_line():
            compare(GrafanaSession(url, fake.token), ROOT, variables_of({}))

    assert ["GET /grafana/api/health"] * 2 == fake.requests()


def test_without_an_address_nothing_is_asked() -> None:
    """And the variables are named."""
    with pytest.raises(CannotRun, match="set GRAFANA_URL, and GRAFANA_TOKEN"):
        connect({})


@pytest.mark.parametrize("text", ["", "8d", "-1h", "soon"])
def test_a_length_of_time_is_a_number_with_a_unit(text: str) -> None:
    """Up to a week: a longer silence is a removed alert."""
    with pytest.raises(CannotRun):
        seconds_of(text)

    assert 1800.0 == seconds_of("30m")


def run(*arguments: str, url: str, token: str) -> subprocess.CompletedProcess[str]:
    """Run the verb as a user does."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("INFERDECK_", "GRAFANA_"))}
    environ |= {"GRAFANA_URL": url, "GRAFANA_TOKEN": token}
    command = [sys.executable, "-m", "inferdeck", "grafana", *arguments]
    return subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_verbs_tell_in_their_schemas(fake: FakeGrafana) -> None:
    """Push, check, and a refusal: exit 0 done, 1 something is missing or differs, 2 refused."""
    pushed = run("push", "--prometheus", PROMETHEUS, "--policies", "--json", url=fake.url, token=fake.token)
    checked = run("check", "--json", url=fake.url, token=fake.token)
    fake.rules.clear()
    damaged = run("check", "--json", url=fake.url, token=fake.token)
    refused = run("check", url=fake.url, token="wrong")  # noqa: S106  # made up

    assert [0, 0, 1, 2] == [one.returncode for one in (pushed, checked, damaged, refused)], pushed.stderr
    validate("grafana_push", json.loads(pushed.stdout))
    validate("grafana_check", json.loads(checked.stdout))
    assert 1 == len(refused.stderr.splitlines())
    assert "wrong or has expired" in refused.stderr


def test_marks_and_silences_tell_their_ids(fake: FakeGrafana) -> None:
    """A silence of an alert that does not exist is refused before anybody is asked."""
    fake.refusal = (200, {"id": 7, "silenceID": "s-1"})
    marked = run("annotate", "release 1.4", "--tag", "deploy", "--for", "5m", "--json", url=fake.url, token=fake.token)
    hushed = run("silence", "DiskFull", "--for", "30m", "--because", "new", "--json", url=fake.url, token=fake.token)
    misspelt = run("silence", "DiskFul", "--because", "x", url=fake.url, token=fake.token)

    assert (0, 0, 2) == (marked.returncode, hushed.returncode, misspelt.returncode), marked.stderr + hushed.stderr
    validate("grafana_annotate", json.loads(marked.stdout))
    validate("grafana_silence", json.loads(hushed.stdout))
    assert (7, "s-1") == (json.loads(marked.stdout)["id"], json.loads(hushed.stdout)["id"])
    (_, _, _, mark), (_, path, _, silence) = fake.asked
    assert (["inferdeck", "deploy"], 300_000) == (mark["tags"], mark["timeEnd"] - mark["time"])
    assert "/api/alertmanager/grafana/api/v2/silences" == path
    assert [{"name": "alertname", "value": "DiskFull", "isRegex": False, "isEqual": True}] == silence["matchers"]
