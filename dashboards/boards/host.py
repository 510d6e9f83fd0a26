"""Runtime and host: workers, event loop, collector, memory, descriptors, start, disk."""

from __future__ import annotations

from typing import Final

from dashboards.expr import pick, quantile, total
from dashboards.spec import Panel, Query

__all__ = ["HOST"]

_NO_EXPORTER = "No worker is seen: the exporter or the service is not there."
# States that a start ends in, and that no start passes through.
_STARTING = 'phase!~"ready|stopped|model_missing|model_damaged|model_failed"'

HOST: Final = (
    Panel(
        key="targets",
        id=20,
        title="What Prometheus reaches",
        kind="statetimeline",
        unit="short",
        description="Whether each target answered its scrapes. Only service red: the service is gone. "
        "Only the exporter red: telemetry is blind, and the service may be well.",
        no_data="This Prometheus has no targets.",
        queries=(Query("min by (job, instance) (up)", "{{job}}"),),
        width=12,
        alerts=("service_down", "exporter_unreachable"),
        mappings={"0": ("down", "red"), "1": ("up", "green")},
    ),
    Panel(
        key="workers",
        id=21,
        title="Workers, and how they ended",
        kind="timeseries",
        unit="short",
        description="Worker processes that live, and those that ended in 2 minutes: died (no last word: a signal, the "
        "OOM killer) or clean (a deploy).",
        no_data=_NO_EXPORTER,
        queries=(
            Query(f"sum({pick('model_worker_up')})", "alive"),
            Query(f"sum by (how) (increase({pick('model_worker_ends_total')}[2m]))", "ended in 2 minutes: {{how}}"),
        ),
        alerts=("worker_killed",),
        minimum=0,
        width=6,
    ),
    Panel(
        key="event-loop",
        id=22,
        title="Event loop blocked",
        kind="timeseries",
        unit="percentunit",
        description="Share of time that a worker's event loop was late by more than 0.1 s: synchronous work holds it. "
        "Triage shows the stack that blocks.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(
                f"{total('runtime_event_loop_blocked_seconds_total')} / clamp_min(sum({pick('model_worker_up')}), 1)",
                "blocked",
            ),
        ),
        alerts=("event_loop_blocked",),
        objective=(("event_loop_blocked", "blocked_ratio"),),
        minimum=0,
        width=6,
    ),
    Panel(
        key="heartbeat",
        id=23,
        title="Signs of life",
        kind="timeseries",
        unit="s",
        description="Age of the oldest worker's last sign of life. Loop old, thread young: the event loop hangs. "
        "Both old: "
        "the whole process stands still.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"max by (source) ({pick('runtime_heartbeat_age_seconds')})", "{{source}}"),),
        alerts=("event_loop_blocked",),
        objective=(("worker_stalled", "seconds"),),
        minimum=0,
        width=6,
    ),
    Panel(
        key="cpu",
        id=24,
        title="CPU",
        kind="timeseries",
        unit="short",
        description="CPU seconds per second of the service (1 is one core full), and the busy share of the whole "
        "host. Host "
        "full and service not: a neighbour takes it.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(total("runtime_process_cpu_seconds_total"), "service, cores"),
            Query(f"max({pick('runtime_host_cpu_ratio')})", "host, share of all"),
            Query(total("runtime_loop_cpu_wait_seconds_total"), "event loops wait for a CPU"),
        ),
        alerts=("cpu_throttled",),
        minimum=0,
        width=6,
    ),
    Panel(
        key="gc-pauses",
        id=25,
        title="Pauses of the garbage collector",
        kind="timeseries",
        unit="percentunit",
        description="Share of time that workers stood still for the cyclic garbage collector, by generation. "
        "Generation 2 "
        "is the one that grows with what the process keeps.",
        no_data=_NO_EXPORTER,
        queries=(Query(total("runtime_gc_pause_seconds_sum", by="generation"), "generation {{generation}}"),),
        alerts=("gc_pauses",),
        stack=True,
        minimum=0,
        width=6,
    ),
    Panel(
        key="memory",
        id=26,
        title="Memory",
        kind="timeseries",
        unit="bytes",
        description="Resident memory of all workers. A line that never levels off is a leak.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"sum({pick('runtime_process_resident_memory_bytes')})", "service"),),
        minimum=0,
        width=6,
    ),
    Panel(
        key="memory-slope",
        id=27,
        title="Slope of memory",
        kind="timeseries",
        unit="binBps",
        description="How fast the service's resident memory grows, fitted over 10 minutes. After the start it levels "
        "off; "
        "above zero for an hour is a leak.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"sum(deriv({pick('runtime_process_resident_memory_bytes')}[10m]))", "growth"),),
        width=6,
    ),
    Panel(
        key="file-descriptors",
        id=28,
        title="File descriptors",
        kind="timeseries",
        unit="percentunit",
        description="Open descriptors over the limit, of the worker nearest to it. At 100% nothing can be accepted "
        "or opened.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"max({pick('runtime_file_descriptors_used_ratio')})", "used"),),
        objective=(("file_descriptors_near_limit", "ratio"),),
        alerts=("file_descriptors_exhausted",),
        minimum=0,
        maximum=1,
        width=6,
    ),
    Panel(
        key="start",
        id=29,
        title="Last start, by phase",
        kind="bargauge",
        unit="s",
        description="How long each phase of the last start took, the slowest live worker. Cold start should be under "
        "8 s.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(
                f"max by (phase) ({pick('runtime_start_phase_seconds', _STARTING)})",
                "{{phase}}",
                instant=True,
            ),
        ),
        alerts=("slow_start",),
        objective=(("slow_start", "seconds"),),
        base="blue",
        minimum=0,
        width=6,
    ),
    Panel(
        key="phase",
        id=34,
        title="Phase of the service",
        kind="statetimeline",
        unit="short",
        description="Which phase the service says it is in. Warming up for long: a slow start, not a dead service.",
        no_data="The service is not there: a dead one says nothing.",
        queries=(Query(f"max by (phase) ({pick('runtime_phase')} == 1)", "{{phase}}"),),
        width=6,
        alerts=("slow_start",),
        mappings={"1": ("now", "blue")},
    ),
    Panel(
        key="disk",
        id=30,
        title="Room on the disks",
        kind="timeseries",
        unit="percentunit",
        description="Free share of the disk under the exporter's state and under the rows. When it is used up, "
        "telemetry is "
        "lost by the reason disk_full; requests go on.",
        no_data="The exporter is not there.",
        queries=(Query(f"min by (folder) ({pick('runtime_disk_free_ratio')})", "{{folder}}"),),
        alerts=("disk_full",),
        objective=(("disk_full", "free_ratio"),),
        minimum=0,
        maximum=1,
        width=6,
    ),
    Panel(
        key="lag",
        id=31,
        title="Event loop lag",
        kind="timeseries",
        unit="s",
        description="How late the event loop's ticks came: the median is the machine's noise, the P99 what requests "
        "feel.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(quantile(0.99, "runtime_event_loop_lag_seconds"), "P99"),
            Query(quantile(0.5, "runtime_event_loop_lag_seconds"), "median"),
        ),
        alerts=("event_loop_blocked",),
        minimum=0,
        width=6,
    ),
    Panel(
        key="host-memory",
        id=32,
        title="Memory left on the host",
        kind="timeseries",
        unit="bytes",
        description="What the host can give to new work without swapping. Near 0 the kernel kills workers.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"min({pick('runtime_host_memory_available_bytes')})", "left"),),
        alerts=("worker_killed",),
        width=6,
        minimum=0,
    ),
    Panel(
        key="threads",
        id=33,
        title="Threads",
        kind="timeseries",
        unit="short",
        description="Threads of all workers; a climb that never ends is a pool without a bound. And those that do not "
        "move while a request does not end: for a lock, they wait for each other.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(f"sum({pick('runtime_threads')})", "threads"),
            Query(f"sum by (waits) ({pick('runtime_standing_threads')})", "standing: {{waits}}"),
            Query(f"sum by (waits) ({pick('runtime_standing_tasks')})", "standing tasks: {{waits}}"),
        ),
        alerts=("worker_deadlock", "thread_pool_exhausted"),
        width=6,
        minimum=0,
    ),
)
