"""What Grafana would refuse, or silently read otherwise, cannot be written down in the first place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.grafana.convert import expanded
from alerts.grafana.model import ContactPoint, FormatError, MuteTiming, Query, Receiver, Route, Rule, variables

ASK = Query("query", "prom", {"expr": "up"}, seconds=600)


def rule(**changes: Any) -> Rule:
    """Return a rule that is well but for the changes."""
    known: dict[str, Any] = {
        "uid": "a-rule",
        "title": "A",
        "condition": "query",
        "data": [ASK],
        "for_": "15s",
        "no_data": "OK",
        "on_error": "KeepLast",
        "labels": {"slug": "a"},
        "annotations": {"summary": "a"},
    }
    return Rule(**known | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uid": "x" * 41}, "no uid"),
        ({"uid": "a.b"}, "no uid"),
        ({"title": " "}, "no title"),
        ({"condition": "fires"}, "no step 'fires'"),
        ({"for_": "quick"}, "no duration"),
        ({"keep_firing_for": "1 m"}, "no duration"),
        ({"dashboard_uid": "inferdeck-overview"}, "half a link"),
        ({"labels": {"x": "{{ $labels.y }}"}}, "holds a template"),
        ({"labels": {"x": "5 $ each"}}, "a lone $"),
        ({"annotations": {"x": "${HOME}"}}, "some versions expand it"),
    ],
)
def test_a_rule_that_would_stop_grafana_is_refused(changes: dict[str, Any], said: str) -> None:
    """Each is refused with a sentence that says what is wrong."""
    with pytest.raises(FormatError, match=re.escape(said)):
        rule(**changes)


def test_a_question_must_look_back() -> None:
    """Grafana refuses a data source's question over 0 s; an expression has no range."""
    with pytest.raises(FormatError, match="looks back 0 s"):
        Query("query", "prom", {})

    assert {"from": 0, "to": 0} == Query("fires", "__expr__", {}).document()["relativeTimeRange"]


def test_a_rule_is_written_with_grafanas_keys() -> None:
    """Names, nesting and the two annotations by which an alert knows its panel."""
    document = rule(dashboard_uid="inferdeck-overview", panel_id=3, keep_firing_for="1m").document()

    assert ("inferdeck-overview", 3, "1m", 1) == (
        document["dashboardUid"],
        document["panelId"],
        document["keepFiringFor"],
        document["missing_series_evals_to_resolve"],
    )
    assert {"summary": "a", "__dashboardUid__": "inferdeck-overview", "__panelId__": "3"} == document["annotations"]
    assert {"type": "prometheus", "uid": "prom"} == document["data"][0]["model"]["datasource"]


def test_contact_points_need_an_address() -> None:
    """Without it, or without any way out, Grafana ends at its start."""
    with pytest.raises(FormatError, match="has no url"):
        Receiver("x", "slack", {"text": "hello"})
    with pytest.raises(FormatError, match="leads nowhere"):
        ContactPoint("x", [])

    assert {"disableResolveMessage": False, "settings": {"addresses": "a@b"}, "type": "email", "uid": "x"} == (
        Receiver("x", "email", {"addresses": "a@b"}).document()
    )


def test_routes_and_mute_timings_are_written_as_alertmanager_would() -> None:
    """Matchers are triples, times are start_time and end_time, and a root has neither matchers nor mute timings."""
    below = Route("b", ("alertname",), "1s", "2s", "3s", (("slug", "=", "x"),), ("nights",), go_on=True)
    tree = Route("a", ("alertname",), "1s", "2s", "3s", routes=[below]).document()

    assert {"receiver", "group_by", "group_wait", "group_interval", "repeat_interval", "routes"} == set(tree)
    assert ([["slug", "=", "x"]], True, ["nights"]) == (
        tree["routes"][0]["object_matchers"],
        tree["routes"][0]["continue"],
        tree["routes"][0]["mute_time_intervals"],
    )
    assert [{"weekdays": ["sunday"], "times": [{"start_time": "00:00", "end_time": "07:00"}], "location": "UTC"}] == (
        MuteTiming("nights", ["sunday"], [("00:00", "07:00")]).document()["time_intervals"]
    )


def test_variables_are_found_in_both_spellings_and_a_lone_dollar_is_refused() -> None:
    """`$$` is a dollar; anything else would be taken away by Grafana."""
    assert ["A", "B_2"] == variables("x${A}/$B_2 costs $$5")
    for text in ("{{ $labels.x }}", "5$", "${a}", "$ A"):
        with pytest.raises(FormatError):
            variables(text)


@given(st.text(alphabet="ab/:{}. \n"), st.dictionaries(st.sampled_from(["A", "BC"]), st.text(alphabet="xy$")))
def test_expansion_replaces_variables_and_nothing_else(text: str, environ: dict[str, str]) -> None:
    """As Grafana does it: once, unset is empty, other text stays."""
    assert f"{text}{environ.get('A', '')}{text}{environ.get('BC', '')}$" == (
        expanded(f"{text}${{A}}{text}${{BC}}$$", environ)
    )
    assert {"k": [1, True, text]} == expanded({"k": [1, True, text]}, environ)
