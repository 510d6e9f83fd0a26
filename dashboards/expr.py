"""PromQL as the boards write it: selectors that follow the board's variables, and the few shapes that repeat."""

from __future__ import annotations

from exporters.names import METRICS

__all__ = ["is_", "like", "mean", "per_minute", "pick", "quantile", "rate", "share", "total"]

# With "All" the choice is `.*`, which series without the label match as well: one service needs no label.
_SERVICE = 'service=~"$service"'


def is_(label: str, value: str) -> str:
    """Return the condition that *label* has *value*."""
    return f'{label}="{value}"'


def like(label: str, pattern: str) -> str:
    """Return the condition that *label* matches *pattern*, whole."""
    return f'{label}=~"{pattern}"'


def pick(metric: str, *conditions: str) -> str:
    """Return a selector of *metric* that follows the board's choice of service.

    Args:
        metric: Name of a metric, with its suffix.
        conditions: Further conditions, such as `outcome="ok"`.
    """
    return f"{metric}{{{', '.join((*conditions, _SERVICE))}}}"


def rate(metric: str, *conditions: str) -> str:
    """Return the rate of a counter per second."""
    return f"rate({pick(metric, *conditions)}[$__rate_interval])"


def total(metric: str, *conditions: str, by: str = "") -> str:
    """Return the summed rate of a counter per second, by labels.

    Args:
        metric: The counter.
        conditions: Of the selector.
        by: Labels to keep, with commas.
    """
    grouping = f"by ({by}) " if by else ""
    return f"sum {grouping}({rate(metric, *conditions)})"


def per_minute(metric: str, *conditions: str, by: str = "") -> str:
    """Return how much a counter grows in a minute, by labels."""
    return f"60 * {total(metric, *conditions, by=by)}"


def share(part: str, whole: str) -> str:
    """Return one expression over another; nothing where the other is 0."""
    return f"{part} / ({whole} > 0)"


def quantile(q: float, metric: str, *conditions: str, by: str = "") -> str:
    """Return a quantile of a histogram.

    Args:
        q: From 0 to 1.
        metric: The histogram, without `_bucket`.
        conditions: Of the selector.
        by: Labels to keep besides `le`, with commas.

    Raises:
        KeyError: If there is no such metric.
    """
    if METRICS[metric].kind != "histogram":
        raise KeyError(metric)
    buckets = total(f"{metric}_bucket", *conditions, by=f"{by}, le" if by else "le")
    return f"histogram_quantile({q:g}, {buckets})"


def mean(metric: str, *conditions: str, by: str = "") -> str:
    """Return the mean of what a histogram observed, by labels."""
    return share(total(f"{metric}_sum", *conditions, by=by), total(f"{metric}_count", *conditions, by=by))
