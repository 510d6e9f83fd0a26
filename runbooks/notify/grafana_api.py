"""Annotations and silences in Grafana by grafana-client; every refusal becomes one clear line and nothing else.

Source    https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ and .../alerting_provisioning/
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from runbooks.notify.links import shown_url
from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome, refused, retry, sent

__all__ = ["GrafanaRefusedError", "GrafanaSession", "NoClientError", "annotate", "end_incident", "silence"]

_SECONDS: Final = 10.0
# Every annotation of ours bears it, so that a dashboard can show them all.
TAG: Final = "inferdeck"
# An alert's still open annotations are looked for among its last ones.
_LAST: Final = 20
# What a patch needs of an annotation.
_PARTS: Final = frozenset({"id", "time", "tags", "text"})

_T = TypeVar("_T")


class NoClientError(RuntimeError):
    """The package grafana-client is not installed."""


class GrafanaRefusedError(Exception):
    """Grafana did not do what was asked.

    Attributes:
        later: Whether another try may help.
        status: HTTP status; 0 for no answer.
    """

    def __init__(self, message: str, *, later: bool, status: int = 0) -> None:
        super().__init__(message)
        self.later, self.status = later, status


class GrafanaSession:
    """A connection to one Grafana.

    Args:
        url: Its address.
        token: Token of a service account; empty for none.
        seconds: Time for one answer.

    Raises:
        NoClientError: If grafana-client is not installed.
    """

    def __init__(self, url: str, token: str = "", seconds: float = _SECONDS) -> None:  # none is none
        try:
            from grafana_client.api import GrafanaApi
        except ImportError as error:
            raise NoClientError("grafana-client is missing: pip install 'inferdeck[grafana]'") from error
        self.shown = shown_url(url)
        # The client puts "api" behind the path as it stands.
        base = url if url.endswith("/") or not urlsplit(url).path else f"{url}/"
        self.api: Any = GrafanaApi.from_url(base, credential=token or None, timeout=seconds)

    def ask(self, what: Callable[[Any], _T]) -> _T:
        """Return what one request answers.

        Args:
            what: Given the client.

        Raises:
            GrafanaRefusedError: With one line, for whatever went wrong.
        """
        from grafana_client.client import GrafanaException

        try:
            return what(self.api)
        except GrafanaException as error:
            status = int(error.status_code or 0)
            said = " ".join(str(error.message).split())[:160]
            mend = {
                401: "; the token is wrong or has expired",
                403: "; the service account may not do this: give it the role Editor",
                404: "; is this address a Grafana's, and of version 10 or newer?",
                409: "; it was changed by somebody else, or is provisioned from a file",
                412: "; it was changed by somebody else",
            }.get(status, "")
            told = f"Grafana at {self.shown} said {status}: {said}" if status else f"Grafana at {self.shown}: {said}"
            # No status is no answer in time.
            raise GrafanaRefusedError(
                told + mend, later=status in (0, 408, 429) or status >= 500, status=status
            ) from error
        except (OSError, ValueError) as error:
            told = f"Grafana at {self.shown} cannot be reached ({type(error).__name__})"
            raise GrafanaRefusedError(told, later=True) from error


def annotate(session: GrafanaSession, message: Message, clock: Callable[[], float] = time.time) -> Outcome:
    """Mark an incident's begin and its verdict, or a mitigation, on every dashboard that shows our annotations.

    Args:
        session: Where.
        message: What triage found, or what was done.
        clock: Unix seconds: a mitigation is marked when it is told of.
    """
    text = f"{message.title}\n{message.text()}"
    tags = [TAG, message.event, *message.tags]
    since = message.onset_unix if message.event == "incident" else clock()
    return _outcome(lambda: mark(session, text, tags, since=since))


def mark(session: GrafanaSession, text: str, tags: Sequence[str], since: float, until: float | None = None) -> int:
    """Write one annotation and return its id.

    Args:
        session: Where.
        text: What it says.
        tags: What it is found by.
        since: Unix seconds.
        until: Unix seconds; None for a moment, or for what still goes on.

    Raises:
        GrafanaRefusedError: If it was not taken.
    """
    answer = session.ask(
        lambda api: api.annotations.add_annotation(
            time_from=round(since * 1000),
            time_to=None if until is None else round(until * 1000),
            tags=list(tags),
            text=text,
        )
    )
    return int(answer["id"]) if isinstance(answer, dict) and "id" in answer else 0


def end_incident(session: GrafanaSession, alert: str, ended_at: float) -> Outcome:
    """Give the alert's open annotations their end.

    Args:
        session: Where.
        alert: The alert's name.
        ended_at: Unix seconds.
    """
    ends = round(ended_at * 1000)

    def close() -> None:
        found = session.ask(
            lambda api: api.annotations.find_annotations(tags=[TAG, "incident", f"alert:{alert}"], limit=_LAST)
        )
        if not isinstance(found, list | None):
            raise GrafanaRefusedError(f"Grafana at {session.shown} answered no list of annotations", later=False)
        for one in filter(_is_mark, found or []):
            # One without an end has its start in both places.
            if one.get("timeEnd") in (0, None, one.get("time")) and one["time"] <= ends:
                # A patch replaces what it names, and this client names all four.
                session.ask(partial(_close, one, ends))

    return _outcome(close)


def _is_mark(one: object) -> bool:
    """Tell whether an entry of an answer is an annotation as Grafana writes them."""
    return isinstance(one, Mapping) and _PARTS <= one.keys() and isinstance(one["time"], int | float)


def _close(one: Mapping[str, Any], ends: int, api: Any) -> None:
    api.annotations.partial_update_annotation(
        one["id"], time_from=one["time"], time_to=ends, tags=one["tags"], text=one["text"]
    )


def silence(session: GrafanaSession, alert: str, *, seconds: float, author: str, comment: str, now: float) -> str:
    """Silence one alert in Grafana's own Alertmanager and return the silence's id.

    Args:
        session: Where.
        alert: The alert's name.
        seconds: For how long.
        author: Who asks.
        comment: Why.
        now: Unix seconds.

    Raises:
        GrafanaRefusedError: If it was not taken.
    """
    body = {
        "matchers": [{"name": "alertname", "value": alert, "isRegex": False, "isEqual": True}],
        "startsAt": _iso(now),
        "endsAt": _iso(now + seconds),
        "createdBy": author,
        "comment": comment,
    }
    answer = session.ask(lambda api: api.client.POST("/alertmanager/grafana/api/v2/silences", json=body))
    return str(answer.get("silenceID", "")) if isinstance(answer, dict) else ""


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _outcome(do: Callable[[], object]) -> Outcome:
    try:
        do()
    except GrafanaRefusedError as error:
        return retry(str(error)) if error.later else refused(str(error))
    return sent()
