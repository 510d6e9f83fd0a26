"""Behind `inferdeck stream windows`: what a running stream has summed up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get_json
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_windows"]


def show_windows(settings: StackSettings, last: int, url: str | None = None) -> Outcome:
    """Return the newest windows; exit 1 while the stream does not go on.

    Args:
        settings: Where the stack's stream listens.
        last: So many of the newest.
        url: Base URL of another stream.

    Raises:
        CannotRun: If no stream answers there.
    """
    base = (url or f"http://{settings.host}:{settings.stream_port}").rstrip("/")
    try:
        told: Any = get_json(f"{base}/api/windows")
        windows = told["windows"][-last:]
        payload = {
            "url": base,
            "windows": windows,
            "counts": told["counts"],
            "waiting_messages": told["waiting_messages"],
            "lag_seconds": told["lag_seconds"],
            "problem": told["problem"],
        }
    except Unreachable as error:
        raise CannotRun(
            f"no stream answers at {base}: {error}", "start one with `inferdeck stream run`, or give --url"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise CannotRun(f"what answers at {base} is no stream", "give --url") from error
    return Outcome(payload, 1 if payload["problem"] else 0, lambda console: _draw(payload, console))


def _draw(payload: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    if payload["problem"]:
        console.print(f"the stream does not go on: {payload['problem']}")
    table = Table(
        "minute (UTC)", "messages", "mean length", "low quality", "personal", "full-width", "revision", box=None
    )
    for one in payload["windows"]:
        mean = one["mean_length_characters"]
        table.add_row(
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(one["start_unix_s"])),
            str(one["messages"]),
            "" if mean is None else f"{mean:.1f}",
            str(sum(one["low_quality"].values())),
            str(one["personal"]),
            str(one["wide"]),
            str(one["revision"] or "open"),
        )
    console.print(table)
    waiting, lag = payload["waiting_messages"], payload["lag_seconds"]
    console.print(f"{waiting:.0f} messages wait, the latest done is {lag:.0f} s old" if waiting else "all is read")
