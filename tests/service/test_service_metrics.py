"""The service's own series."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from service.service_metrics import Snapshot, render


def test_values_are_escaped_and_losses_counted() -> None:
    """Odd values cannot break the exposition, and the count of reasons is bounded."""
    loss = {f"reason_{i:03d}": i for i in range(100)}
    told = Snapshot('1"0\n', "abc", "m\\odel", "cfg", "ready", loss)
    families = {family.name: family for family in text_string_to_metric_families(render(told).decode())}
    assert families["model_build_info"].samples[0].labels == {
        "version": '1"0\n',
        "commit": "abc",
        "model": "m\\odel",
        "config": "cfg",
    }
    samples = families["telemetry_requests_unrecorded"].samples
    assert {sample.labels["reason"]: sample.value for sample in samples} == {f"reason_{i:03d}": i for i in range(64)}
