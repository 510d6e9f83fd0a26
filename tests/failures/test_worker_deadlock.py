"""The two kinds of entries take their locks in opposite order and stand for ever; the twin's move."""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path
from typing import Any

from probes.standstill import Standstill


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("worker_deadlock.py")
    spec = importlib.util.spec_from_file_location("worker_deadlock_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(entries: list[Any]) -> list[threading.Thread]:
    """Start each entry in a daemon thread; those that stand for ever end with the process."""

    def book(entry: Any) -> None:
        entry()

    threads = [threading.Thread(target=book, args=(entry,), daemon=True) for entry in entries]
    for thread in threads:
        thread.start()
    return threads


def test_opposite_orders_stand_and_their_two_lines_are_told() -> None:
    """Both threads wait for a lock, at the second `with` of either method."""
    ledger = load().Ledger()
    run([ledger.sell, ledger.restock])
    until = time.monotonic() + 20
    while not (ledger.prices.locked() and ledger.stock.locked()) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5)
    now = [0.0]
    watch = Standstill(clock=lambda: now[0])
    watch.reading(9.0)
    now[0] = 6.0
    standing = watch.reading(15.0)["standing"]

    told = [one for one in standing["places"] if "worker_deadlock.py" in one["stack"][0]]
    assert {"lock"} == {one["waits"] for one in told}
    assert {"Ledger.sell", "Ledger.restock"} == {one["stack"][0].split()[-1] for one in told}


def test_one_order_moves_on() -> None:
    """The twin's entries all end, one after the other."""
    ledger = load().Ledger()
    threads = run([ledger.sell] * 5)
    for thread in threads:
        thread.join(20)

    assert not any(thread.is_alive() for thread in threads)
