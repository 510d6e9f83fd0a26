"""The scheduler as the settings want it."""

from __future__ import annotations

from typing import Final

from service.executor import Executor
from service.scheduler.batch_call import BatchStage
from service.scheduler.dispatcher import Scheduler, SchedulerRules
from service.scheduler.lanes import LaneRules
from service.scheduler.memory import MemoryGate
from service.scheduler.priority import KeyUnusable, PriorityRule, read_key
from service.settings import ENV_PREFIX, Settings, SettingsError

__all__ = ["priority_rule", "scheduler"]

_AHEAD_SECONDS: Final = 0.002
"""What a request that goes first may find ahead of it in a thread: little beside the 100 ms of requirements B4."""


def priority_rule(settings: Settings) -> PriorityRule:
    """Return who goes first.

    Raises:
        SettingsError: If the key of the header cannot be used.
    """
    try:
        key = read_key(settings.vip_key_file) if settings.vip_key_file is not None else None
    except KeyUnusable as error:
        raise SettingsError(f"{ENV_PREFIX}VIP_KEY_FILE: {error}") from error
    return PriorityRule(settings.vip_product_ids, settings.vip_product_prefixes, key)


def scheduler(
    settings: Settings,
    executor: Executor,
    vip_executor: Executor,
    batch_stage: BatchStage,
    *,
    gate: MemoryGate | None = None,
) -> Scheduler:
    """Return the scheduler of one worker.

    Args:
        settings: The settings.
        executor: Threads for everybody.
        vip_executor: The thread for VIPs.
        batch_stage: Enters a stage of many rows.
        gate: Knows whether a device has room; by default the model has none of its own.
    """
    batching = settings.batching
    lanes = LaneRules(
        places={"vip": settings.vip_places, "normal": settings.queue_places, "long": settings.long_places},
        batch_size=settings.batch_size if batching else 1,
        batch_wait_ns=int(settings.batch_wait_seconds * 1e9) if batching else 0,
    )
    rules = SchedulerRules(
        lanes,
        settings.deadline_seconds,
        settings.long_text_characters,
        ahead_seconds=0.0 if batching else _AHEAD_SECONDS,
        # Every worker lets its share in.
        rate=settings.knee_rps * settings.knee_share / settings.workers,
    )
    return Scheduler(executor, vip_executor, rules, batch_stage, gate=gate)
