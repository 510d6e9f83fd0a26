"""What `doctor --mapping` looks at: which of a foreign service's metrics a Prometheus has."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from inferdeck.checks import Check
from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.triage_command import open_sources

if TYPE_CHECKING:
    from runbooks.mapping.source import MappedSource

__all__ = ["examine_mapping"]

# Two scrapes of a slow Prometheus (one a minute) and some.
BACK_SECONDS = 180.0


def examine_mapping(
    settings: StackSettings, name: str, url: str | None, job: str | None, clock: Callable[[], float] = time.time
) -> list[Check]:
    """Ask a Prometheus for every series of a mapping.

    Args:
        settings: Where the stack's Prometheus is, for want of another.
        name: Name or file of the mapping.
        url: Prometheus.
        job: The service's scrape job; looked for when absent.
        clock: Wall clock, unix seconds.

    Raises:
        CannotRun: If the mapping cannot be used.
    """
    from runbooks.mapping.source import MappedSource
    from runbooks.prometheus_source import SourceMissingError

    source = open_sources(settings, name, url, job).prometheus
    if not isinstance(source, MappedSource):
        raise CannotRun("no mapping to look at", "add --mapping NAME")
    until = clock()
    try:
        return list(_look(source, until - BACK_SECONDS, until))
    except SourceMissingError as error:
        return [Check("prometheus", "fail", str(error), "see docs/attach.md, A service without our rows")]


def _look(source: MappedSource, since: float, until: float) -> Iterator[Check]:
    from runbooks import signals
    from runbooks.mapping.model import TARGETS
    from runbooks.mapping.source import asked_for

    job = source.job or source.find_job(since, until)
    yield Check("job", "ok", f"{job} at {source.url}")
    up = source.range(f"up{{job={json.dumps(job)}}}", since, until)
    answers = [one.labels.get("instance", "?") for one in up if one.values[-1] > 0]
    yield Check("up", "ok" if answers else "fail", f"{len(answers)} of {len(up)} targets answer", "start the service")
    asked = asked_for(source.mapping)
    for name in TARGETS:
        mine = [one for one in asked if one.query.startswith(name) and one.query in signals.QUERIES]
        if not mine:
            yield Check(name, "absent", "the mapping names nothing for it", "triage says what that costs")
            continue
        counts = {one.metric: len(source.range(one.promql(job), since, until)) for one in mine}
        told = ", ".join(f"{metric}: {count} series" for metric, count in counts.items())
        mend = "" if any(counts.values()) else "switch the metric on in the service, or mend the mapping"
        yield Check(name, "ok" if any(counts.values()) else "absent", told, mend)
