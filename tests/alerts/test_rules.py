"""The shipped rules and promtool tests, judged by the real promtool."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from alerts.load import load_catalogue
from alerts.promtool import run_tool

ALERTS = Path(__file__).resolve().parents[2] / "alerts"
SLUGS = [alert.slug for alert in load_catalogue()]

pytestmark = pytest.mark.usefixtures("tools")


def test_promtool_accepts_every_rule() -> None:
    """All rule files parse as Prometheus parses them, and those of alerts hold one rule each."""
    alerts = [ALERTS / "rules" / f"{slug}.yml" for slug in SLUGS]
    done = run_tool("promtool", ["check", "rules", *alerts])
    recorded = run_tool("promtool", ["check", "rules", *sorted(ALERTS.glob("rules/record_*.yml"))])

    assert (0, len(SLUGS)) == (done.rc, done.output.count("SUCCESS: 1 rules found")), done.output
    assert 0 == recorded.rc, recorded.output


@pytest.mark.parametrize("slug", SLUGS)
def test_rules_are_loud_and_silent_when_they_should_be(slug: str) -> None:
    """Every case of the catalogue holds in the real rule engine, annotations word for word."""
    done = run_tool("promtool", ["test", "rules", ALERTS / "tests" / f"{slug}.test.yml"])

    assert 0 == done.rc, done.output


@pytest.mark.parametrize("slug", [alert.slug for alert in load_catalogue() if alert.every is None])
def test_rules_hold_when_they_are_evaluated_every_15_seconds(tmp_path: Path, slug: str) -> None:
    """A Prometheus with the usual slower rhythm is as loud and as silent as the embedded one."""
    shutil.copytree(ALERTS / "rules", tmp_path / "rules")
    text = (ALERTS / "tests" / f"{slug}.test.yml").read_text(encoding="utf-8")
    assert "evaluation_interval: 5s" in text
    test = tmp_path / "tests" / f"{slug}.test.yml"
    test.parent.mkdir()
    test.write_text(text.replace("evaluation_interval: 5s", "evaluation_interval: 15s"), encoding="utf-8")

    done = run_tool("promtool", ["test", "rules", test])

    assert 0 == done.rc, done.output


@pytest.mark.parametrize(
    ("slug", "old", "new"),
    [
        ("upstream_timeout", "> 0.05", "> 0.03"),
        ("upstream_timeout", "> 15", "> 300"),
        ("upstream_timeout", "< 0.13", "< 1"),
        ("upstream_timeout", "for: 15s", "for: 2m"),
        ("contract_violations", "> 0.05", "> 0.03"),
        ("contract_violations", "> 0.05", "> 0.15"),
        ("contract_violations", "> 15", "> 9"),
        ("contract_violations", "> 15", "> 200"),
        ("contract_violations", '"not_found|method"', '"nothing"'),
        ("contract_violations", '"schema|too_long|illegal_characters"', '"schema|not_found|method"'),
        ("contract_violations", "for: 15s", "for: 2m"),
        ("canary_regression", "> 1.5 *", "> 1.4 *"),
        ("canary_regression", "> 1.5 *", "> 15 *"),
        ("canary_regression", "> 0.002", "> 0.00001"),
        ("canary_regression", "> 20", "> 5"),
        ("canary_regression", "> 0.1", "> 0.05"),
        ("canary_regression", "> 0.5", "> 1.5"),
        ("canary_regression", '"latency|flips"', '".*"'),
        ("canary_regression", "for: 15s", "for: 3m"),
        ("model_version_errors", "> 0.005", "> 0.002"),
        ("model_version_errors", "> 0.005", "> 0.05"),
        ("model_version_errors", "[2m])) > 3", "[2m])) > 1"),
        ("model_version_errors", "> 3 *", "> 0.1 *"),
        ("model_version_errors", '"nan|error|late"', '"nan|error|late|full"'),
        ("model_version_errors", "for: 10s", "for: 5m"),
        ("blurred_images", "> 0.2", "> 0.15"),
        ("blurred_images", "> 0.2", "> 0.5"),
        ("blurred_images", "> 15", "> 9"),
        ("blurred_images", 'le="50.0"', 'le=~".*"'),
        ("blurred_images", "(service, device_type)", "(service)"),
        ("blurred_images", "for: 15s", "for: 2m"),
        ("low_quality_text", "> 0.05", "> 0.03"),
        ("low_quality_text", "> 0.05", "> 0.3"),
        ("low_quality_text", "> 15", "> 9"),
        ("low_quality_text", '{route!="/v1/photos"}', ""),
        ("low_quality_text", '"not_found|method"', '"nothing"'),
        ("low_quality_text", 'modality="text"', 'modality=~".*"'),
        ("low_quality_text", "for: 15s", "for: 2m"),
        ("preprocess_mismatch", "> 0", "> -1"),
        ("preprocess_mismatch", "> 0", "> 1"),
        ("preprocess_mismatch", "(service, trained, served)", "(service)"),
        ("preprocess_mismatch", "for: 15s", "for: 0s"),
        ("preprocess_mismatch", "for: 15s", "for: 3m"),
        ("pii_mask_mismatch", "> 0.05", "> 0.03"),
        ("pii_mask_mismatch", "> 0.05", "> 0.6"),
        ("pii_mask_mismatch", "> 3", "> 1"),
        ("pii_mask_mismatch", "for: 45s", "for: 5s"),
        ("pii_mask_mismatch", "service, mask_format", "service, kind"),
        ("event_loop_blocked", "> 0.05", "> 0.03"),
        ("event_loop_blocked", "> 0.05", "> 0.25"),
        ("event_loop_blocked", ", 1) > 5", ", 1) > 0"),
        ("event_loop_blocked", "/ clamp_min(sum by (service) (model_worker_up), 1)\n", "\n"),
        ("event_loop_blocked", ") / clamp_min(sum by (service) (model_worker_up), 1) >", ") >"),
        ("event_loop_blocked", "for: 15s", "for: 1m"),
        ("event_loop_blocked", "keep_firing_for: 90s", "keep_firing_for: 10m"),
        ("event_loop_blocked", "> 0.25", "> 0.9"),
        ("event_loop_blocked", "> 0.25", "> 0.1"),
        ("event_loop_blocked", "unless on (service)", "and on (service)"),
        ("exporter_unreachable", "for: 30s", "for: 20s"),
        ("exporter_unreachable", "for: 30s", "for: 1m"),
        ("exporter_unreachable", "or on () absent", "and on () absent"),
        ("exporter_unreachable", 'up{job="inferdeck-exporter"} == 0', "up == 0"),
        ("latency_objective", "> 0.3\n", "> 0.2\n"),
        ("latency_objective", "> 0.3\n", "> 0.4\n"),
        ("latency_objective", "> 0.8\n", "> 1.1\n"),
        ("latency_objective", "> 1.5\n", "> 0.8\n"),
        ("latency_objective", ">= 40", ">= 1"),
        ("latency_objective", ">= 40", ">= 400"),
        ("latency_objective", "for: 1m", "for: 15s"),
        ("pod_pending", "for: 2m", "for: 1m"),
        ("pod_pending", "for: 2m", "for: 5m"),
        ("pod_pending", 'phase="Pending"', 'phase="Running"'),
        ("pod_pending", "and on (namespace, pod)", "or on (namespace, pod)"),
        ("regex_backtracking", ") > 10\n", ") > 8\n"),
        ("regex_backtracking", ") > 10\n", ") > 60\n"),
        ("regex_backtracking", ") > 4\n", ") > 3\n"),
        ("regex_backtracking", ") > 6\n", ") > 60\n"),
        ("regex_backtracking", ") > 6\n", ") > 1\n"),
        ("regex_backtracking", "0.85 *", "0.1 *"),
        ("regex_backtracking", "0.6 *", "1.1 *"),
        ("regex_backtracking", "0.6 *", "0.2 *"),
        ("regex_backtracking", "> 0.4 *", "> 0 *"),
        ("regex_backtracking", "> 0.4 *", "> 9 *"),
        ("regex_backtracking", "for: 15s", "for: 2m"),
        ("rollout_cuts_off", "for: 20s", "for: 1m"),
        ("rollout_cuts_off", "for: 20s", "for: 5s"),
        ("rollout_cuts_off", "(kube_deployment_status_replicas{", "(kube_deployment_spec_replicas{"),
        ("rollout_cuts_off", "[5m]) > 0", "[5m]) >= 0"),
        ("rollout_cuts_off", ">= max by", "> max by"),
        ("rollout_cuts_off", ") == 1", ") == 0"),
        ("rollout_cuts_off", '"inferdeck"}) == 0', '"inferdeck"}) == 9'),
        ("series_explosion", "> 20\n", "> 10\n"),
        ("series_explosion", "> 20\n", "> 2000\n"),
        ("series_explosion", "> 2000\n", "> 1500\n"),
        ("series_explosion", "> 2000\n", "> 9000\n"),
        ("series_explosion", "for: 15s", "for: 2m"),
        ("collector_down", "> 20\n", "> 10\n"),
        ("collector_down", "> 20\n", "> 60\n"),
        ("collector_down", "for: 15s", "for: 0s"),
        ("collector_down", "for: 15s", "for: 1m"),
        ("service_down", "for: 20s", "for: 10s"),
        ("service_down", "for: 20s", "for: 1m"),
        ("service_down", "or on () absent", "or absent"),
        ("service_down", 'up{job="service"} == 0\n', 'up{job="service"} < 0\n'),
        ("service_down", "          job: service\n", ""),
        ("slow_start", "> 10\n", "> 7\n"),
        ("slow_start", "> 10\n", "> 30\n"),
        ("slow_start", "[2m]) > 0\n", "[2m]) >= 0\n"),
        ("slow_start", "|model_missing|model_damaged|model_failed", ""),
        ("slow_start", ") == 1", ") == 0"),
        ("slow_start", "offset 15s", "offset 15m"),
        ("slow_start", "for: 5s", "for: 2m"),
        ("tokenizer_cache_growth", "> 1 *", "> 2 *"),
        ("tokenizer_cache_growth", "> 1 *", ">= 1 *"),
        ("tokenizer_cache_growth", ") > 0\n", ") >= 0\n"),
        ("tokenizer_load_lock", "> 5\n", "> 4\n"),
        ("tokenizer_load_lock", "> 2 *", "> 5 *"),
        ("tokenizer_load_lock", "> 2 *", "> 1 *"),
        ("tokenizer_load_lock", ">= 3", ">= 2"),
        ("tokenizer_load_lock", "[2m]) > 0", "[2m]) >= 0"),
        ("model_loaded_twice", ">= 3", ">= 1"),
        ("model_loaded_twice", "model_duplicate_sessions", "model_open_sessions"),
        ("batch_too_large", ">= 5", ">= 3"),
        ("batch_too_large", "> 0.01", "> 0.001"),
        ("gpu_lost", "reset_required|driver_gone|silent", "reset_required|driver_gone"),
        ("gpu_lost", "lost|reset_required", "lost|no_permission"),
        ("gpu_lost", "for: 15s", "for: 5s"),
        ("gpu_saturated", "> 0.95", "> 0.94"),
        ("gpu_saturated", "> 0.95", "> 0.98"),
        ("gpu_saturated", "[30s]", "[5s]"),
        ("gpu_saturated", "> 0.06", "> 0.02"),
        ("gpu_saturated", "> 0.06", "> 0.1"),
        ("gpu_saturated", "> 0.1\n", "> 0.3\n"),
        ("gpu_noisy_neighbour", "> 0.1\n", "> 0.09\n"),
        ("gpu_noisy_neighbour", "> 0.1\n", "> 0.3\n"),
        ("gpu_noisy_neighbour", "> 0.95", "> 0.99"),
        ("gpu_noisy_neighbour", '"other"', '"own"'),
        ("gpu_out_of_memory", "< 0.02", "< 0.03"),
        ("gpu_out_of_memory", "< 0.02", "< 0.01"),
        ("gpu_out_of_memory", "> 0.01", "> 0.2"),
        ("gpu_out_of_memory", "triton_down|", ""),
        ("gpu_out_of_memory", "error|degraded", "error"),
        ("gpu_memory_leak", "60 * 60", "120 * 60"),
        ("gpu_memory_leak", "60 * 60", "10 * 60"),
        ("gpu_memory_leak", "> 0.5 *", "> -9 *"),
        ("gpu_memory_leak", "> 1.02 *", "> 2 *"),
        ("gpu_memory_leak", '"own"', '"other"'),
        ("gpu_kernel_regression", "< 1.25", "< 1.3"),
        ("gpu_kernel_regression", "< 1.25", "< 0.9"),
        ("gpu_kernel_regression", "for: 15s", "for: 3m"),
        ("client_disconnects", "> 0.05\n", "> 0.03\n"),
        ("client_disconnects", ">= 20", ">= 5"),
        ("client_disconnects", '"disconnected"', '"ok"'),
        ("confidence_p95_fall", "> 0.15\n", "> 0.13\n"),
        ("error_budget_burn", "> 6 * 0.001", "> 4 * 0.001"),
        ("error_budget_burn", ">= 10", ">= 2"),
        ("error_budget_burn_slow", "> 1 * 0.001", "> 0.8 * 0.001"),
        ("error_rate", "> 0.05\n", "> 0.03\n"),
        ("error_budget_burn", "offset 30m", "offset 2h"),
        ("error_rate", ">= 10", ">= 5"),
        ("error_rate", 'how="died"', 'how="clean"'),
        ("error_rate", "[90s])\n", "[5s])\n"),
        ("error_rate", '!="refused"', '!="ok"'),
        ("error_rate", " or rate(model_unfinished_requests_total[1m])", ""),
        ("file_descriptors_near_limit", "> 0.7", "> 0.6"),
        ("file_descriptors_near_limit", "for: 1m", "for: 5s"),
        ("memory_growth", "8 * 3600", "10 * 3600"),
        ("memory_growth", "> 1.1 *", "> 1.01 *"),
        ("memory_growth", "for: 30m", "for: 5m"),
        ("no_traffic", "== 0", "< 9"),
        ("no_traffic", "offset 1d", "offset 1h"),
        ("notifications_lost", "> 5,", "> 3,"),
        ("notifications_lost", 'result!="sent"', 'result="sent"'),
        ("queue_wait", "> 0.06\n", "> 0.04\n"),
        ("queue_wait", "> 0.5\n", "> 0.1\n"),
        ("queue_wait", ">= 40", ">= 5"),
        ("request_stuck", "> 60", "> 30"),
        ("scrape_failing", ">= 4", ">= 2"),
        ("scrape_failing", "> 0.05\n", "> 0.01\n"),
        ("telemetry_loss", 'reason!="disk_full"', 'reason!="internal"'),
        ("telemetry_loss", "> 50,", "> 20,"),
        ("stream_lag", ">= 0.98", ">= 0.9"),
        ("stream_lag", "> 100)", "> 99)"),
        ("stream_lag", "> 30\n", "> 29\n"),
        ("worker_deadlock", 'waits="lock"', 'waits="call"'),
        ("worker_deadlock", ">= 2", ">= 1"),
        ("worker_deadlock", 'source="loop"', 'source="thread"'),
        ("worker_stalled", "> 15", "> 10"),
        ("worker_stalled", 'source="thread"', 'source="loop"'),
        ("gc_pauses", "> 0.05\n", "> 0.04\n"),
        ("gc_pauses", "> 5\n", "> 500\n"),
        ("gc_pauses", 'le="0.05"', 'le="0.1"'),
        ("gc_pauses", "> 0.03", "> 0.01"),
        ("file_descriptors_exhausted", "> 5", "> 3"),
        ("file_descriptors_exhausted", "> 5", "> 70"),
        ("file_descriptors_exhausted", "[1m]", "[5m]"),
        ("cpu_throttled", "> 0.25", "> 0.15"),
        ("cpu_throttled", "> 0.5", "> 0.35"),
        ("cpu_throttled", "> 0.1\n", "> 0.01\n"),
        ("disk_full", '"disk_full"', '"internal"'),
        ("disk_full", "< 0.03\n", "< 0.3\n"),
        ("disk_full", "< 67108864\n", "< 1\n"),
        ("triton_down", "for: 20s", "for: 5s"),
        ("triton_down", "unless on ()", "and on ()"),
        ("triton_down", 'state="timeout"', 'state="refused"'),
        ("triton_hung", 'state="timeout"', 'state="unloaded"'),
        ("triton_hung", "for: 15s", "for: 0s"),
        ("triton_model_unloaded", 'state="unloaded"', 'state="timeout"'),
        ("triton_model_unloaded", "for: 15s", "for: 0s"),
        ("triton_slow_network", "> 0.04", "> 0.02"),
        ("triton_slow_network", "> 0.04", "> 0.1"),
        ("triton_slow_network", "> 1\n", "> 0\n"),
        ("triton_slow_network", "/ 1e6", "/ 1e9"),
        ("triton_slow_network", "> 0.5\n", "> 5\n"),
        ("client_pool_wait", "> 0.02", "> 0.01"),
        ("client_pool_wait", "> 0.02", "> 0.1"),
        ("client_pool_wait", "2 * sum", "0.5 * sum"),
        ("client_pool_wait", "> 1\n", "> 0\n"),
        ("queue_delay_misset", "> 0.04", "> 0.03"),
        ("queue_delay_misset", "> 0.04", "> 0.08"),
        ("queue_delay_misset", "3 * sum", "2 * sum"),
        ("queue_delay_misset", "3 * sum", "60 * sum"),
        ("queue_delay_misset", "< 4", "< 6"),
        ("queue_delay_misset", "< 4", "< 1"),
        ("queue_delay_misset", "> 0.5", "> 0.1"),
        ("queue_delay_misset", "> 0.5", "> 30"),
        ("illegal_memory_access", 'illegal_memory_access"', 'cuda_error"'),
        ("illegal_memory_access", "[5m]", "[20m]"),
        ("illegal_memory_access", "> 0.5", "> 1.5"),
        ("triton_stub_dead", "> 0.5", "> 1.5"),
        ("triton_stub_dead", "[2m]", "[10m]"),
        ("long_text_burst", "> 0.06", "> 0.04"),
        ("long_text_burst", "> 0.06", "> 0.3"),
        ("long_text_burst", ">= 10", ">= 0"),
        ("long_text_burst", "> 0.5\n", "> 0.01\n"),
        ("thread_pool_exhausted", "> 0.25", "> 0.2"),
        ("thread_pool_exhausted", "< 0.8", "< 1.8"),
        ("thread_pool_exhausted", 'waits="lock"', 'waits="call"'),
        ("watchdog", "vector(1)", "vector(1) > 1"),
        ("worker_killed", 'how="died"', 'how="clean"'),
        ("worker_killed", "> 0.5\n", "> 1.5\n"),
        ("worker_killed", ">= 1\n", ">= 0\n"),
        ("worker_killed", "[2m:5s]", "[5s:5s]"),
        ("worker_killed", "for: 10s", "for: 3m"),
    ],
)
def test_promtool_tests_notice_a_wrong_rule(tmp_path: Path, slug: str, old: str, new: str) -> None:
    """A rule with one number, word or condition changed fails its tests: they are no decoration."""
    for folder in ("rules", "tests"):
        shutil.copytree(ALERTS / folder, tmp_path / folder)
    rule = tmp_path / "rules" / f"{slug}.yml"
    text = rule.read_text(encoding="utf-8")
    assert old in text
    rule.write_text(text.replace(old, new), encoding="utf-8")

    done = run_tool("promtool", ["test", "rules", tmp_path / "tests" / f"{slug}.test.yml"])

    assert 1 == done.rc, done.output
    assert "FAILED" in done.output
