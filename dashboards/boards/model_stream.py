"""The stream of user queries: what comes, how far it is behind, and what its windows say."""

from __future__ import annotations

from typing import Final

from dashboards.expr import per_minute, pick
from dashboards.spec import Panel, Query

__all__ = ["STREAM"]

_NO_STREAM = "No stream runs here; `inferdeck up --stream` or `python -m service.stream` starts one."
_NONE: Final = "no stream is part of this stack"

STREAM: Final = (
    Panel(
        key="stream-messages",
        id=40,
        title="Messages of the stream",
        kind="timeseries",
        unit="short",
        description="Messages a minute: counted in a window, duplicates of such, and dead letters.",
        no_data=_NO_STREAM,
        queries=(Query(per_minute("stream_messages_total", by="result"), "{{result}}", may_be_empty=_NONE),),
        minimum=0,
    ),
    Panel(
        key="stream-letters",
        id=41,
        title="Dead letters of the stream",
        kind="timeseries",
        unit="short",
        description="Messages a minute that are counted nowhere, by why: too large, no JSON, not the schema, late by "
        "an hour, from the future.",
        no_data=_NO_STREAM,
        queries=(Query(per_minute("stream_dead_letters_total", by="reason"), "{{reason}}", may_be_empty=_NONE),),
        minimum=0,
    ),
    Panel(
        key="stream-lag",
        id=42,
        title="How far the stream is behind",
        kind="timeseries",
        unit="s",
        description="Age of the latest message that was done, while others wait. It rises in a burst and falls again; "
        "over the line while what waits does not become less, the reader is too slow.",
        no_data=_NO_STREAM,
        queries=(Query(f"max({pick('stream_lag_seconds')})", "behind", may_be_empty=_NONE),),
        alerts=("stream_lag",),
        objective=(("stream_lag", "seconds"),),
        minimum=0,
    ),
    Panel(
        key="stream-waiting",
        id=43,
        title="Messages that wait",
        kind="timeseries",
        unit="short",
        description="Messages that the source has and nobody has read; of files by the mean size of a message.",
        no_data=_NO_STREAM,
        queries=(Query(f"sum({pick('stream_waiting_messages')})", "waiting", may_be_empty=_NONE),),
        minimum=0,
    ),
    Panel(
        key="stream-windows",
        id=44,
        title="Windows of the stream",
        kind="timeseries",
        unit="short",
        description="Windows that were completed in 5 minutes: in time, or late by more than a minute; and corrections "
        "by messages that came after.",
        no_data=_NO_STREAM,
        queries=(
            Query(f"sum by (result) (increase({pick('stream_windows_total')}[5m]))", "{{result}}", may_be_empty=_NONE),
        ),
        minimum=0,
    ),
    Panel(
        key="stream-length",
        id=45,
        title="Average length of the questions",
        kind="timeseries",
        unit="short",
        description="Characters, of the latest complete minute.",
        no_data=_NO_STREAM,
        queries=(Query(f"avg({pick('stream_window_length_characters')})", "characters", may_be_empty=_NONE),),
        minimum=0,
    ),
    Panel(
        key="stream-shares",
        id=46,
        title="Quality of the questions",
        kind="timeseries",
        unit="percentunit",
        description="Shares of the latest complete minute: low quality, personal data that was masked, full-width "
        "letters.",
        no_data=_NO_STREAM,
        queries=tuple(
            Query(f"avg({pick(f'stream_window_{name}_ratio')})", word, may_be_empty=_NONE)
            for name, word in (("low_quality", "low quality"), ("personal", "personal data"), ("wide", "full-width"))
        ),
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="stream-shift",
        id=47,
        title="Shift against the hour before",
        kind="timeseries",
        unit="percentunit",
        description="How far the latest complete minute is from the hour before it, by feature: 0 alike, 1 nothing in "
        "common. A step is a new client or another kind of question.",
        no_data="No stream runs here, or its windows hold under 200 messages.",
        queries=(Query(f"max by (feature) ({pick('stream_window_shift_ratio')})", "{{feature}}", may_be_empty=_NONE),),
        minimum=0,
        maximum=1,
    ),
)
