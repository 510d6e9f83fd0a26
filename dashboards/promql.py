"""What can be said against a query without asking anybody: syntax, names, counters without a rate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import promql_parser as parser

from exporters.names import FOREIGN, LABELS, METRICS, NOTIFYING, ForeignMetric, Metric

__all__ = ["problems"]

# Functions that make a rate, or something like it, of a counter.
_RATES = frozenset({"rate", "irate", "increase", "changes", "resets"})
# Ours, and those of Prometheus and triage about whether anybody hears of an alert.
_KNOWN = {**NOTIFYING, **METRICS}
# On every series: from Prometheus, and from the scrape configuration.
_EVERYWHERE = frozenset({"job", "instance", "service"})
_HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


def problems(
    expr: str,
    recorded: Collection[str] = (),
    metrics: Mapping[str, Metric] = _KNOWN,
    foreign: Mapping[str, ForeignMetric] = FOREIGN,
) -> list[str]:
    """Return what is wrong with a query, one sentence each.

    Args:
        expr: PromQL, macros and variables filled in.
        recorded: Names of recorded series.
        metrics: Our own metrics by full name.
        foreign: Metrics of other programs by full name.
    """
    try:
        tree = parser.parse(expr)
    except ValueError as error:
        return [f"is no PromQL: {error}"]
    return list(dict.fromkeys(_Judge(recorded, metrics, foreign).walk(tree, within=())))


class _Judge:
    """One query, from its root to its selectors; `within` names the functions around a place."""

    def __init__(
        self, recorded: Collection[str], metrics: Mapping[str, Metric], foreign: Mapping[str, ForeignMetric]
    ) -> None:
        self._recorded, self._metrics, self._foreign = recorded, metrics, foreign

    def walk(self, node: parser.Expr, within: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, parser.Call):
            name = node.func.name
            if name == "histogram_quantile":
                yield from self._quantile(node)
            for argument in node.args:
                yield from self.walk(argument, (*within, name))
        elif isinstance(node, parser.AggregateExpr):
            yield from self._grouping(node)
            yield from self.walk(node.expr, within)
        elif isinstance(node, parser.BinaryExpr):
            yield from self.walk(node.lhs, within)
            yield from self.walk(node.rhs, within)
        elif isinstance(node, parser.ParenExpr | parser.UnaryExpr | parser.SubqueryExpr):
            yield from self.walk(node.expr, within)
        elif isinstance(node, parser.MatrixSelector):
            yield from self._selector(node.vector_selector, within)
        elif isinstance(node, parser.VectorSelector):
            yield from self._selector(node, within)

    def _quantile(self, call: parser.Call) -> Iterator[str]:
        inner = call.args[1]
        modifier = inner.modifier if isinstance(inner, parser.AggregateExpr) else None
        if modifier is not None and "le" not in modifier.labels:
            yield "histogram_quantile without le among the labels that are kept has no answer"

    def _grouping(self, node: parser.AggregateExpr) -> Iterator[str]:
        ours = {label for item in self._metrics.values() for label in item.labels}
        theirs = {label for item in self._foreign.values() for label in item.labels}
        known = _EVERYWHERE | LABELS.keys() | {"le"} | ours | theirs
        for label in node.modifier.labels if node.modifier else ():
            if label not in known:
                yield f"groups by {label}, which is no label"

    def _selector(self, node: parser.VectorSelector, within: tuple[str, ...]) -> Iterator[str]:
        name = node.name or ""
        if name in self._recorded:
            return
        labels = {matcher.name: matcher.value for matcher in node.matchers.matchers}
        if name in self._foreign:
            allowed = _EVERYWHERE | set(self._foreign[name].labels)
            yield from (f"{name} has no label {label}" for label in labels.keys() - allowed)
            counter = self._foreign[name].kind == "counter"
        else:
            base = next((name.removesuffix(end) for end in _HISTOGRAM_SUFFIXES if self._is_histogram(name, end)), name)
            metric = self._metrics.get(base)
            if metric is None:
                yield f"{name or 'a selector without a name'} is no metric of exporters/names.py"
                return
            if metric.kind == "histogram" and base == name:
                yield f"{name} is a histogram: name its _bucket, _sum or _count"
            yield from self._labels(metric, name, node)
            counter = metric.kind == "counter" or base != name
        if counter and not _RATES & set(within):
            yield f"{name} only grows: it says something inside rate() or increase()"

    def _is_histogram(self, name: str, suffix: str) -> bool:
        base = name.removesuffix(suffix)
        return base != name and base in self._metrics and self._metrics[base].kind == "histogram"

    def _labels(self, metric: Metric, name: str, node: parser.VectorSelector) -> Iterator[str]:
        for matcher in node.matchers.matchers:
            if matcher.name in _EVERYWHERE:
                continue
            if matcher.name == "le" and name.endswith("_bucket"):
                if matcher.value not in {*map(str, metric.buckets), "+Inf"}:
                    yield f"{name} has no bound {matcher.value}"
            elif matcher.name not in metric.labels:
                yield f"{name} has no label {matcher.name}"
            elif (
                matcher.op == parser.MatchOp.Equal
                and metric.labels[matcher.name]
                and matcher.name not in metric.limits
                and matcher.value not in metric.labels[matcher.name]
            ):
                yield f"{name}: {matcher.name} is never {matcher.value!r}"
