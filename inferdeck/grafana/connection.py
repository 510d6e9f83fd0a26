"""From the environment to a session with Grafana, and from any refusal to one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from alerts.grafana.check import default_environment
from inferdeck.errors import CannotRun
from inferdeck.look_up import parse_duration
from runbooks.notify.grafana_api import GrafanaRefusedError, GrafanaSession, NoClientError

__all__ = ["connect", "refusals_as_one_line", "seconds_of", "variables_of"]

_LONGEST_SECONDS = 7 * 86_400


def connect(environ: Mapping[str, str] = os.environ, seconds: float = 10.0) -> GrafanaSession:
    """Return a session with the Grafana of GRAFANA_URL and GRAFANA_TOKEN.

    The token is no option of the command: arguments are seen by everybody on the machine.

    Args:
        environ: Where the two are looked up.
        seconds: Time for one answer.

    Raises:
        CannotRun: If the address or the client is missing.
    """
    url = environ.get("GRAFANA_URL", "")
    if not url.startswith(("http://", "https://")):
        raise CannotRun("no Grafana is named", "set GRAFANA_URL, and GRAFANA_TOKEN of a service account")
    try:
        return GrafanaSession(url, environ.get("GRAFANA_TOKEN", ""), seconds)
    except NoClientError as error:
        raise CannotRun(str(error)) from error


@contextlib.contextmanager
def refusals_as_one_line() -> Iterator[None]:
    """Turn what Grafana refuses into the one line that a verb ends with."""
    try:
        yield
    except GrafanaRefusedError as error:
        raise CannotRun(str(error)) from error


def variables_of(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the values of the alerting files' variables: what is set, else their defaults.

    Args:
        environ: Where they are looked up.
    """
    return {name: environ.get(name) or default for name, default in default_environment().items()}


def seconds_of(text: str) -> float:
    """Return a length of time such as 90s, 30m, 2h or 1d in seconds.

    Args:
        text: In the grammar of the exporter's look-up page.

    Raises:
        CannotRun: If it is none, or longer than a week.
    """
    seconds = parse_duration(text)
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise CannotRun(f"{text!r} is no length of time up to a week", "write 90s, 30m, 2h or 1d")
    return seconds
