"""The one policy tree: triage hears everything, people hear by channel, and data quality never reaches the pager."""

from __future__ import annotations

from typing import Final

from alerts.grafana.model import MuteTiming, Route

__all__ = ["AWAY", "mute_timings", "policy_tree"]

# Nobody sits there to work on a ticket. Triage is not muted: its report waits for Monday.
AWAY: Final = ("outside_working_hours_nights", "outside_working_hours_weekends")
# As Alertmanager's template groups them; Grafana wants its folder and the name among them, or groups differ by rule.
_GROUP: Final = ("grafana_folder", "alertname", "slug", "service")


def mute_timings() -> list[MuteTiming]:
    """Return the times in which tickets and data quality wait, in UTC; a page is never muted."""
    nights, weekends = AWAY
    return [
        MuteTiming(nights, ("monday:friday",), (("00:00", "07:00"), ("19:00", "24:00"))),
        MuteTiming(weekends, ("saturday", "sunday")),
    ]


def policy_tree() -> Route:
    """Return the tree; times to wait and to repeat are those of alerts/alertmanager_config.py."""
    return Route(
        # An alert that no branch knows is still heard: as a ticket, since nobody said that it may wake a person.
        receiver="${INFERDECK_NOTIFY_TICKET}",
        group_by=_GROUP,
        group_wait="5s",
        group_interval="30s",
        repeat_interval="4h",
        routes=[
            Route("dead_man", _GROUP, "1s", "30s", "1m", matchers=[("slug", "=", "watchdog")]),
            # Before the channels, and going on to them: whoever is called finds the report.
            Route("triage", _GROUP, "1s", "10s", "4h", matchers=[("slug", "!=", "")], go_on=True),
            # Before severity: data quality has a channel of its own and never reaches the pager (row A14).
            Route(
                "${INFERDECK_NOTIFY_DATA_QUALITY}",
                _GROUP,
                "10s",
                "1m",
                "12h",
                matchers=[("channel", "=", "data_quality")],
                mute_timings=AWAY,
            ),
            Route("${INFERDECK_NOTIFY_PAGE}", _GROUP, "1s", "10s", "1h", matchers=[("channel", "=", "page")]),
            Route(
                "${INFERDECK_NOTIFY_TICKET}",
                _GROUP,
                "5s",
                "30s",
                "12h",
                matchers=[("channel", "=", "ticket")],
                mute_timings=AWAY,
            ),
        ],
    )
