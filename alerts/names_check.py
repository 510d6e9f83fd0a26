"""Whether an expression speaks only about metrics, labels and values that exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from alerts.model import Alert, fill
from alerts.prometheus_config import JOBS
from alerts.promql import Matcher, Selector, grouping_labels, selectors
from exporters.names import KUBERNETES, LABELS, METRICS, NOTIFYING, TRITON_SERVER, Metric

__all__ = ["unknown_in_query", "unknown_names"]

# What Prometheus itself writes about each scrape, and about each alert.
_OF_PROMETHEUS = frozenset({"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS", "ALERTS_FOR_STATE"})
# On every series: from Prometheus, and from the scrape configuration.
_EVERYWHERE = frozenset({"job", "instance", "service"})
# Labels by which an expression may group.
_GROUPS = frozenset({*_EVERYWHERE, *LABELS, "le", *(label for one in KUBERNETES.values() for label in one.labels)})


def unknown_names(alert: Alert, metrics: Mapping[str, Metric] = METRICS, recorded: Collection[str] = ()) -> list[str]:
    """Return what an alert's expression or test series name that does not exist, one sentence each.

    A misspelt metric never fires, and in a test it is silent like a healthy one: both are looked at.

    Args:
        alert: The alert.
        metrics: Our metrics by full name; those of Kubernetes, Prometheus, Triton and triage are known beside them.
        recorded: Full names of the recorded series.
    """
    expr = fill(alert.expr, alert.thresholds)
    found = [f"expr: {what}" for what in unknown_in_query(expr, metrics, recorded, by_job=True)]
    for case in alert.tests:
        for series in case.input:
            found += [
                f"test {case.name!r}: {what}"
                for what in unknown_in_query(series.series, metrics, recorded, by_job=True)
            ]
    return found


def unknown_in_query(
    expr: str,
    metrics: Mapping[str, Metric] = METRICS,
    recorded: Collection[str] = (),
    *,
    by_job: bool = False,
) -> list[str]:
    """Return what a query names that does not exist, one sentence each: a misspelt name has no data and no error.

    Args:
        expr: PromQL without placeholders.
        metrics: Our metrics by full name; those of Kubernetes, Prometheus, Triton and triage are known beside them.
        recorded: Full names of the recorded series.
        by_job: Whether `up` must name a job: a rule about any target at all is about none in particular.
    """
    metrics = {**KUBERNETES, **NOTIFYING, **TRITON_SERVER, **metrics}
    try:
        found = [
            what
            for selector in selectors(expr)
            if selector.metric not in recorded
            for what in _wrong(selector, metrics, by_job=by_job)
        ]
        found += [f"{one} is no label of exporters/names.py" for one in grouping_labels(expr) if one not in _GROUPS]
    except ValueError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


def _wrong(selector: Selector, metrics: Mapping[str, Metric], *, by_job: bool) -> Iterator[str]:
    if selector.metric in _OF_PROMETHEUS:
        if by_job and not any(_is_of_jobs(matcher) for matcher in selector.matchers):
            yield f"{selector.metric} without a job of {', '.join(JOBS)} is about no target in particular"
        return
    base, suffix = _split(selector.metric, metrics)
    metric = metrics.get(base)
    if metric is None:
        yield f"{selector.metric or 'a selector without a name'} is no metric of exporters/names.py"
        return
    if metric.kind == "histogram" and not suffix:
        yield f"{selector.metric} is a histogram: name its _bucket, _sum or _count"
    for matcher in selector.matchers:
        if matcher.label in _EVERYWHERE:
            continue
        if matcher.label == "le" and suffix == "_bucket":
            if matcher.value not in {*map(str, metric.buckets), "+Inf"}:
                yield f"{selector.metric} has no bound {matcher.value}"
        elif matcher.label not in metric.labels:
            yield f"{selector.metric} has no label {matcher.label}"
        elif _is_never(metric, matcher):
            yield f"{selector.metric}: {matcher.label} is never {matcher.value!r}"


def _is_of_jobs(matcher: Matcher) -> bool:
    named = matcher.value.split("|") if matcher.operator == "=~" else [matcher.value]
    return matcher.label == "job" and matcher.operator in {"=", "=~"} and set(named) <= set(JOBS)


def _split(name: str, metrics: Mapping[str, Metric]) -> tuple[str, str]:
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and base in metrics and metrics[base].kind == "histogram":
            return base, suffix
    return name, ""


def _is_never(metric: Metric, matcher: Matcher) -> bool:
    allowed = metric.labels[matcher.label]
    return (
        matcher.operator == "="
        and bool(allowed)
        and matcher.label not in metric.limits
        and matcher.value not in allowed
    )
