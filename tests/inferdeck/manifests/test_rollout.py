"""A rollout that would cut requests off is told before it is applied; right settings are told nothing about."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.manifests.rollout import Measured, pre_stop_seconds, rollout_findings, tells
from inferdeck.manifests.workload import workload_of

MEASURED = Measured(20.0, 2.0, "rows")


def bad(deployment: Any, measured: Measured = MEASURED) -> list[tuple[str, str]]:
    """Return state and detail of all that is not well."""
    found = rollout_findings(workload_of(deployment), measured)
    return [(one.state, one.detail) for one in found if one.state in {"fail", "warn"}]


def test_right_settings_name_nothing(deployment: Any) -> None:
    """The twin."""
    assert [] == bad(deployment)


def test_a_readiness_delay_under_the_measured_warm_up_is_named(deployment: Any, service: Any) -> None:
    """With the article's kind of probe, which knows only that something listens; over it, it is fine."""
    del service["startupProbe"]
    service["livenessProbe"] = {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 90}
    service["readinessProbe"] = {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 10}

    ((state, detail),) = bad(deployment)
    assert state == "fail"
    assert detail.startswith("readiness delay of 10 s under the measured warm-up of 20.0 s (rows)")

    service["readinessProbe"]["initialDelaySeconds"] = 60
    assert [] == bad(deployment)


def test_a_delay_without_a_measured_warm_up_cannot_be_judged(deployment: Any, service: Any) -> None:
    """It says so, and how to measure it, and does not guess."""
    del service["startupProbe"]
    del service["livenessProbe"]
    service["readinessProbe"] = {"httpGet": {"path": "/healthz/live", "port": 8081}, "initialDelaySeconds": 60}

    ((state, detail),) = bad(deployment, Measured())

    assert (state, detail) == ("warn", "readiness cannot tell warm from running; its delay is 60 s")


def test_no_readiness_probe_is_named(deployment: Any, service: Any) -> None:
    """A pod is then ready at once."""
    del service["readinessProbe"]

    assert [
        ("fail", "no readiness probe: a pod gets requests as soon as its process runs, and old pods go then")
    ] == bad(deployment)


@pytest.mark.parametrize(
    ("replicas", "strategy", "state"),
    [
        (1, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, "fail"),
        (2, {"type": "Recreate"}, "fail"),
        (4, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}}, "fail"),
        (1, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}}, "fail"),
        (1, {}, "warn"),
        (2, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, None),
        (2, {}, None),
    ],
)
def test_a_rollout_that_leaves_no_pod_is_an_outage(
    deployment: Any, replicas: int, strategy: dict[str, Any], state: str | None
) -> None:
    """With percentages rounded as the controller does, which moves one pod when nothing may move; defaults are 25%."""
    deployment["spec"] |= {"replicas": replicas, "strategy": strategy}

    assert ([state] if state else []) == [found for found, _ in bad(deployment)]
    assert ("fail" == state) == any("outage of at least 20 s" in detail for _, detail in bad(deployment))


@pytest.mark.parametrize(("threshold", "state"), [(9, "fail"), (15, "warn"), (20, None)])
def test_a_start_that_is_killed_before_it_is_over_is_named(
    deployment: Any, service: Any, threshold: int, state: str | None
) -> None:
    """Probes of 2 s: 18 s are too few, 30 s leave little room, 40 s are twice the warm-up."""
    service["startupProbe"]["failureThreshold"] = threshold

    assert ([state] if state else []) == [found for found, _ in bad(deployment)]


def test_liveness_alone_kills_a_slow_start(deployment: Any, service: Any) -> None:
    """Its defaults give up after 30 s, and a warm-up of 40 s never ends."""
    del service["startupProbe"]

    ((state, detail),) = bad(deployment, Measured(40.0, None, "rows"))

    assert (state, detail.partition(",")[0]) == ("fail", "livenessProbe kills a start after 30 s")


def test_a_pod_that_is_killed_before_its_requests_end_is_named(deployment: Any, pod: Any) -> None:
    """5 s of preStop and 10 s of shutdown need more than 15."""
    pod["terminationGracePeriodSeconds"] = 15

    assert [("fail", "a pod is killed after 15 s, and preStop with shutdown takes 15 s")] == bad(deployment)


def test_requests_longer_than_the_shutdown_are_named(deployment: Any) -> None:
    """As measured."""
    assert [("fail", "requests take up to 12.0 s (rows) and are cut off 10 s after the stop")] == bad(
        deployment, Measured(20.0, 12.0, "rows")
    )


def test_no_pause_before_the_stop_is_warned_of(deployment: Any, service: Any) -> None:
    """Endpoints and the stop race."""
    del service["lifecycle"]

    assert ["warn"] == [state for state, _ in bad(deployment)]


@pytest.mark.parametrize(
    ("hook", "seconds"),
    [
        ({"sleep": {"seconds": 7}}, 7.0),
        ({"exec": {"command": ["sh", "-c", "sleep 4; kill -TERM 1"]}}, 4.0),
        ({"httpGet": {"path": "/drain", "port": 1}}, 3.0),
        ({}, None),
    ],
)
def test_a_pause_is_read_from_any_hook(hook: dict[str, Any], seconds: float | None) -> None:
    """Sleep, a shell's sleep; what else there is holds a pod for a while."""
    assert seconds == pre_stop_seconds({"lifecycle": {"preStop": hook}})


@pytest.mark.parametrize(
    ("probe", "told"),
    [
        ({"httpGet": {"path": "/healthz/ready"}}, True),
        ({"httpGet": {"path": "/v2/health/ready"}}, True),
        ({"exec": {"command": ["check"]}}, True),
        ({"httpGet": {"path": "/healthz/live"}}, False),
        ({"httpGet": {"path": "/health"}}, False),
        ({"httpGet": {"path": "/"}}, False),
        ({"tcpSocket": {"port": 1}}, False),
        ({}, False),
    ],
)
def test_only_some_probes_can_know_that_the_model_is_warm(probe: dict[str, Any], told: bool) -> None:
    """An open port and a page that says the process runs cannot."""
    assert told == tells(probe)
