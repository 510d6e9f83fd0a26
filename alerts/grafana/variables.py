"""The environment variables of Grafana's alerting files, each with a default: an unset one is an empty value there.

Grafana ends at start when a contact point has no address, so that none of these may be missing; `grafana.env` holds the
defaults for the container, and what a user sets wins over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["DEFAULTS", "UNSET_URL", "environment_file"]

# A name that never resolves (RFC 2606): a contact point that is not set up says so in Grafana's log, and tells nobody.
UNSET_URL: Final = "http://unset.invalid/"

# Name -> default and what it is for.
DEFAULTS: Final[Mapping[str, tuple[str, str]]] = {
    "INFERDECK_SERVICE": ("sentiment", "name of the watched service, a label of every alert"),
    "INFERDECK_TRIAGE_URL": ("http://triage:9465", "where triage listens, as seen from Grafana"),
    "INFERDECK_TRIAGE_TOKEN": ("", "bearer token of triage; empty for none"),
    "INFERDECK_RUNBOOK_URL": ("http://127.0.0.1:9465/", "what stands before runbooks/<AlertName>.md in a message"),
    "INFERDECK_JAEGER_URL": ("http://127.0.0.1:16686", "Jaeger, as seen from a reader's browser"),
    "INFERDECK_NOTIFY_PAGE": ("triage", "contact point of pages: triage, email, slack, dingtalk, feishu"),
    "INFERDECK_NOTIFY_TICKET": ("triage", "contact point of tickets"),
    "INFERDECK_NOTIFY_DATA_QUALITY": ("triage", "contact point of data quality, which never pages"),
    "INFERDECK_NOTIFY_DEAD_MAN_URL": ("http://triage:9465/webhook", "hears each minute that alerting works"),
    "INFERDECK_NOTIFY_EMAIL_TO": ("nobody@unset.invalid", "addresses, separated by ; (needs GF_SMTP_*)"),
    "INFERDECK_NOTIFY_SLACK_URL": (UNSET_URL, "incoming webhook of Slack"),
    "INFERDECK_NOTIFY_DINGTALK_URL": (UNSET_URL, "webhook of a DingTalk robot (security setting: keyword inferdeck)"),
    "INFERDECK_NOTIFY_FEISHU_URL": (UNSET_URL, "webhook of a Feishu or Lark bot (security setting: keyword inferdeck)"),
}
# May be empty: no header is sent then.
MAY_BE_EMPTY: Final = frozenset({"INFERDECK_TRIAGE_TOKEN"})


def environment_file(head: str) -> str:
    """Return the text of `grafana.env`.

    Args:
        head: Its first line, without the comment sign.
    """
    lines = [f"# {head}", "# Grafana does not start when one of these is missing; set your own in .env, which wins."]
    for name, (default, what) in DEFAULTS.items():
        lines += [f"# {what}", f"{name}={default}"]
    return "\n".join(lines) + "\n"
