"""What is known of the GPUs, as gauges: an adapter without arithmetic beyond sums by program."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from exporters.gauges import Gauges
from exporters.gpu.reading import Absent, Card, CardProcess, Snapshot
from exporters.labels import OTHER
from exporters.names_gpu import CARD_STATES, OWNERS, PROCESS_LIMIT
from exporters.totals import Labels

__all__ = ["gpu_gauges"]

# A service's model that Triton serves is in a process of Triton's: on a card whose service is known, they are its own.
_TRITON: Final = frozenset({"tritonserver", "triton_python_backend_stub"})


def gpu_gauges(snapshot: Snapshot, own_pids: Collection[int] | None) -> Gauges:
    """Return the gauges; what is absent has none, and an `_up` that is 0.

    Args:
        snapshot: The cards.
        own_pids: Processes of the service that is watched; None when no service is known.
    """
    gauges: Gauges = {
        "gpu_exporter_up": {(): float(snapshot.state == "ok")},
        "gpu_exporter_state": {(state,): float(snapshot.state == state) for state in CARD_STATES},
    }
    programs = _programs(snapshot.cards)
    for card in snapshot.cards:
        _put(gauges, "gpu_card_up", (card.label,), float(card.state == "ok"))
        # The present state alone: with a series for each, a box of divided cards would take the whole budget of series.
        _put(gauges, "gpu_card_state", (card.label, card.state), 1.0)
        if card.state == "ok":
            _put(gauges, "gpu_card_info", (card.label, card.name, snapshot.driver), 1.0)
        for reading, values in card.readings.items():
            _put(gauges, "gpu_reading_up", (card.label, reading), float(not isinstance(values, Absent)))
            if not isinstance(values, Absent):
                for (metric, labels), value in values.items():
                    _put(gauges, metric, (card.label, *labels), value)
        if card.readings and not isinstance(card.readings.get("processes"), Absent):
            _put_processes(gauges, card, own_pids, programs)
    return gauges


def _put(gauges: Gauges, metric: str, labels: Labels, value: float) -> None:
    gauges.setdefault(metric, {})[labels] = value


def _put_processes(gauges: Gauges, card: Card, own_pids: Collection[int] | None, programs: Collection[str]) -> None:
    """Add up a card's processes by owner and program."""
    # An empty card is known to be empty: that 0 is a measurement.
    owners = OWNERS[:2] if own_pids is not None else OWNERS[2:]
    counts = dict.fromkeys(owners, 0.0)
    memory: dict[Labels, float] = {}
    for process in card.processes:
        owner = _owner(process, own_pids)
        counts[owner] += 1
        if not isinstance(process.used_bytes, Absent):
            program = process.name if process.name in programs else OTHER
            key = (card.label, owner, program)
            memory[key] = memory.get(key, 0.0) + process.used_bytes
    for owner, count in counts.items():
        _put(gauges, "gpu_processes", (card.label, owner), count)
    if memory:
        gauges.setdefault("gpu_process_memory_bytes", {}).update(memory)


def _owner(process: CardProcess, own_pids: Collection[int] | None) -> str:
    if own_pids is None:
        return "unknown"
    return "own" if process.pid in own_pids or process.name in _TRITON else "other"


def _programs(cards: Iterable[Card]) -> set[str]:
    """Return the programs that get a series by name: those with most memory."""
    held: dict[str, int] = {}
    for process in (process for card in cards for process in card.processes):
        used = process.used_bytes if isinstance(process.used_bytes, int) else 0
        held[process.name] = held.get(process.name, 0) + used
    return set(sorted(held, key=lambda name: (-held[name], name))[:PROCESS_LIMIT])
