"""Metrics about the instruments themselves: whoever trusts the others must be able to see what they miss."""

from __future__ import annotations

from typing import Final

from exporters.labels import (
    ARCHIVE_ERRORS,
    ARCHIVE_LOST,
    CROWDED_REASONS,
    DROPPED_REASONS,
    KEPT_REASONS,
    LOST_REASONS,
    PROBE_LIMIT,
    REASON_LIMIT,
    STATE_ERRORS,
    UNRECORDED_REASONS,
)
from exporters.metric import Metric

__all__ = ["TELEMETRY"]

TELEMETRY: Final = (
    Metric(
        "telemetry_rows_read_total", "counter", "rows", "Rows that the exporter read and counted.", source="exporter"
    ),
    Metric(
        "telemetry_rows_lost_total",
        "counter",
        "rows",
        "Rows that were written and never counted, by why.",
        labels={"reason": LOST_REASONS},
        source="exporter",
    ),
    Metric(
        "telemetry_ring_unread_rows",
        "gauge",
        "rows",
        "Rows that are written and not yet read, over all ring files.",
        source="exporter",
    ),
    Metric(
        "telemetry_rings",
        "gauge",
        "rings",
        "Ring files: of live workers, kept of dead ones, and unreadable.",
        labels={"state": ("live", "last_flight", "unreadable")},
        source="exporter",
    ),
    Metric(
        "telemetry_open_slots_overflow_total",
        "counter",
        "requests",
        "Requests that found no free open slot: recorded when they end, invisible while in flight.",
        source="status page",
    ),
    Metric(
        "telemetry_requests_unrecorded_total",
        "counter",
        "requests",
        "Requests, or parts of them, that the recorder could not write, by why.",
        labels={"reason": UNRECORDED_REASONS},
        limits={"reason": REASON_LIMIT},
        source="status page",
    ),
    Metric(
        "telemetry_probe_failures_total",
        "counter",
        "failures",
        "Failures of the sensors inside the service.",
        labels={"probe": ()},
        limits={"probe": PROBE_LIMIT},
        source="status page",
    ),
    Metric(
        "telemetry_labels_refused_total",
        "counter",
        "values",
        "Values, attributes and stages that the recorder refused, so that no label grows without end, by which bound.",
        labels={"reason": CROWDED_REASONS},
        source="status page",
    ),
    Metric(
        "telemetry_traces_kept_total",
        "counter",
        "traces",
        "Requests whose spans were chosen for sending, by the first rule that chose them.",
        labels={"reason": KEPT_REASONS},
        source="exporter",
    ),
    Metric(
        "telemetry_traces_shed_total",
        "counter",
        "traces",
        "Requests whose spans were worth sending and left out for the budget, by the first rule that chose them.",
        # What a dead worker never ended is sent whatever it costs: it is bounded by the open slots.
        labels={"reason": tuple(reason for reason in KEPT_REASONS if reason != "unfinished")},
        source="exporter",
    ),
    Metric("telemetry_spans_sent_total", "counter", "spans", "Spans that the collector accepted.", source="exporter"),
    Metric(
        "telemetry_spans_dropped_total",
        "counter",
        "spans",
        "Spans that were chosen and not delivered, by why.",
        labels={"reason": DROPPED_REASONS},
        source="exporter",
    ),
    Metric("telemetry_spans_queued", "gauge", "spans", "Spans waiting to be sent.", source="exporter"),
    Metric(
        "telemetry_spans_waiting_seconds",
        "gauge",
        "seconds",
        "How long the oldest span has waited to be accepted by the collector.",
        source="exporter",
    ),
    Metric(
        "telemetry_exporter_tick_seconds",
        "gauge",
        "seconds",
        "How long the exporter's last look at all ring files took.",
        source="exporter",
    ),
    Metric(
        "telemetry_exporter_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of the exporter process itself.",
        source="exporter",
    ),
    Metric("telemetry_series", "gauge", "series", "Series in this exposition.", source="exporter"),
    Metric(
        "telemetry_state_write_errors_total",
        "counter",
        "errors",
        "Failed writes of the exporter's state file, by why; totals are then lost by a restart.",
        labels={"reason": STATE_ERRORS},
        source="exporter",
    ),
    Metric(
        "telemetry_archive_rows_total", "counter", "rows", "Rows sealed into segments of the archive.", source="archive"
    ),
    Metric(
        "telemetry_archive_rows_lost_total",
        "counter",
        "rows",
        "Rows that look-up can no longer find because they left their ring before they were archived, by why.",
        labels={"reason": ARCHIVE_LOST},
        source="archive",
    ),
    Metric(
        "telemetry_archive_errors_total",
        "counter",
        "errors",
        "Failed tries to archive, by why; damaged: segments that cannot be read.",
        labels={"reason": ARCHIVE_ERRORS},
        source="archive",
    ),
    Metric("telemetry_archive_bytes", "gauge", "bytes", "Bytes of all segments of the archive.", source="archive"),
    Metric(
        "telemetry_archive_oldest_timestamp_seconds",
        "gauge",
        "seconds",
        "When the oldest archived request started, seconds since 1970; none while nothing is archived.",
        source="archive",
    ),
)
