"""Somebody else's metrics as triage asks for ours: PromQL from a mapping, and series back under our names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import httpx
import numpy as np

from exporters.labels import INPUT_BUCKETS
from exporters.names import METRICS
from runbooks import signals
from runbooks.evidence import Series
from runbooks.mapping.model import LabelRule, MetricMapping, Replacement, translate
from runbooks.prometheus_source import PrometheusSource, SourceMissingError

__all__ = ["Asked", "MappedSource", "asked_for"]

# The part of the ways our names are read that says nothing of the length of an input: no service but ours tells it.
UNKNOWN_LENGTH: Final = INPUT_BUCKETS[-1]
_PER_TARGET: Final = ("job", "instance")


@dataclass(frozen=True)
class Asked:
    """One query of theirs behind one of ours.

    Attributes:
        query: Name of ours, as triage asks: with `_bucket`, `_sum` or `_count` for a histogram.
        metric: Their metric.
        replacement: The rule that it comes from.
        counts: Whether it only grows.
        scaled: Whether its values are in the rule's unit (a bucket's bound is, its count is not).
    """

    query: str
    metric: str
    replacement: Replacement
    counts: bool
    scaled: bool

    def promql(self, job: str | None) -> str:
        """Return the query: summed to what is needed on their side, since a label may have thousands of values."""
        rule = self.replacement
        labels = [one.source for one in rule.labels.values() if one.source is not None]
        by = ", ".join([*_PER_TARGET, *labels, *(["le"] if self.query.endswith("_bucket") else [])])
        text = f"sum by ({by}) ({self.metric}{_matchers(rule, job)})"
        return f"{text} / sum by ({by}) ({rule.per}{_matchers(rule, job)})" if rule.per else text


def _matchers(rule: Replacement, job: str | None) -> str:
    # PromQL strings are quoted and escaped as JSON strings are
    told = [f"job={json.dumps(job)}"] if job is not None else []
    told += [f"{name}={json.dumps(value)}" for name, value in rule.where.items()]
    told += [f"{name}!={json.dumps(value)}" for name, value in rule.unless.items()]
    return f"{{{', '.join(told)}}}" if told else ""


def asked_for(mapping: MetricMapping) -> list[Asked]:
    """Return every query that a mapping leads to."""
    found: list[Asked] = []
    for name, replacements in mapping.metrics.items():
        kind = METRICS[name].kind
        for one in replacements:
            if one.sum is not None and one.count is not None:
                found += [Asked(f"{name}_sum", one.sum, one, True, True)]
                found += [Asked(f"{name}_count", one.count, one, True, False)]
            elif kind == "histogram":
                found += [Asked(f"{name}_{tail}", f"{one.metric}_{tail}", one, True, tail == "sum") for tail in _TAILS]
            else:
                found.append(Asked(name, str(one.metric), one, kind == "counter", True))
    return found


_TAILS: Final = ("bucket", "sum", "count")


class MappedSource(PrometheusSource):
    """A Prometheus that scrapes a service which has its own names.

    Args:
        url: Base address.
        mapping: Which of its metrics stand for ours.
        job: Its scrape job; looked for when absent: the only one that has the mapped metrics.
        timeout_seconds: Limit of one query.
        transport: Another transport, for tests.
    """

    def __init__(
        self,
        url: str,
        mapping: MetricMapping,
        job: str | None = None,
        timeout_seconds: float = 3.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, timeout_seconds, transport)
        self.mapping, self.job = mapping, job

    def collect(self, queries: Iterable[str], since: float, until: float) -> Mapping[str, tuple[Series, ...]]:
        """Return query of ours -> series under our names; nothing for what is not mapped.

        Raises:
            SourceMissingError: If any query failed, or it is not clear which job is meant.
        """
        wanted = set(queries)
        asked = [one for one in asked_for(self.mapping) if one.query in wanted]
        found: dict[str, tuple[Series, ...]] = dict.fromkeys(wanted, ())
        with self._client() as client, ThreadPoolExecutor(max_workers=4) as pool:
            job = self.job or self.find_job(since, until, client)
            answers = pool.map(lambda one: self.range(one.promql(job), since, until, client), asked)
            for one, series in zip(asked, answers, strict=True):
                found[one.query] += tuple(_renamed(one, series))
            found[signals.UP] = self._up(job, since, until, client)
        return found

    def find_job(self, since: float, until: float, client: httpx.Client | None = None) -> str:
        """Return the only job that has the mapped metrics.

        Raises:
            SourceMissingError: If none has, or several have.
        """
        # Those of the requests tell it; every Python process has the process' own.
        names = [name for name in self.mapping.metrics if name.startswith("model_")] or list(self.mapping.metrics)
        metrics = list(dict.fromkeys(one.metric for one in asked_for(self.mapping) if one.query.startswith(names[0])))
        text = " or ".join(f"count by (job) ({metric})" for metric in metrics)
        jobs = sorted({one.labels.get("job", "") for one in self.range(text, since, until, client)})
        if not jobs:
            raise SourceMissingError(
                f"no series of {metrics[0]} at {self.url} in this time: is {self.mapping.name} the right mapping? "
                f"`inferdeck doctor --prometheus {self.url} --mapping {self.mapping.name}` tells what is there"
            )
        if len(jobs) > 1:
            raise SourceMissingError(f"several jobs have {metrics[0]} ({', '.join(jobs[:6])}): say which by --job NAME")
        return jobs[0]

    def _up(self, job: str, since: float, until: float, client: httpx.Client) -> tuple[Series, ...]:
        mine = self.range(f"up{{job={json.dumps(job)}}}", since, until, client)
        # A Prometheus that was not scraping at all must not read as a service that is gone: one series tells of all.
        beat = self.range("count(up)", since, until, client)
        ours = [Series({**one.labels, "job": signals.SERVICE_JOB}, one.times, one.values) for one in mine]
        return (*ours, *(Series({}, one.times, np.ones(len(one.times))) for one in beat))


def _renamed(asked: Asked, series: Iterable[Series]) -> Iterator[Series]:
    """Yield the series under our labels, one for each set of them, in our unit.

    A counter's child that is not there while others of its process are has counted nothing yet: it is 0, and its first
    sample is growth. (Prometheus itself cannot know that, and leaves the first sample out.)
    """
    groups: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    whole: dict[str, set[float]] = {}
    for one in series:
        labels = _labels(asked, one.labels)
        groups.setdefault(tuple(sorted(labels.items())), []).append(one)
        whole.setdefault(one.labels.get("instance", ""), set()).update(one.times.tolist())
    for key, members in groups.items():
        labels = dict(key)
        own = sorted({at for one in members for at in one.times.tolist()})
        grid = np.array(sorted(whole[labels.get("instance", "")]) if asked.counts else own)
        values = np.zeros(len(grid))
        for one in members:
            values[np.searchsorted(grid, one.times)] += one.values
        yield Series(labels, grid, values * (asked.replacement.factor if asked.scaled else 1.0))


def _labels(asked: Asked, theirs: Mapping[str, str]) -> dict[str, str]:
    rules: Mapping[str, LabelRule] = asked.replacement.labels
    found = {name: translate(rule, theirs.get(rule.source or "", "")) for name, rule in rules.items()}
    found |= {"job": signals.SERVICE_JOB, "instance": theirs.get("instance", "")}
    if asked.query.endswith("_bucket"):
        bound = float(theirs.get("le", "inf")) * asked.replacement.factor
        found["le"] = "+Inf" if np.isinf(bound) else f"{bound:.12g}"
    if asked.query.startswith("model_latency_seconds"):
        found["input_bucket"] = UNKNOWN_LENGTH
    return found
