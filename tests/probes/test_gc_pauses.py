from __future__ import annotations

import gc

from probes.gc_pauses import GcPauses


def test_collections_are_counted_by_generation_while_it_listens() -> None:
    """Full collections go to generation 2; after stop() nothing is counted."""
    pauses = GcPauses()
    pauses.start()
    pauses.start()
    try:
        before = pauses.reading()["gc"]["2"]["collections"]
        gc.collect()
        gc.collect()
        heard = pauses.reading()["gc"]["2"]
    finally:
        pauses.stop()
    gc.collect()

    assert before + 2 == heard["collections"] == sum(heard["pause"]["counts"])
    assert heard["pause"]["sum_s"] > 0
    assert heard == pauses.reading()["gc"]["2"]


def test_a_long_pause_is_kept_with_its_time_and_a_short_one_is_not() -> None:
    """A pause that callers notice can be laid beside their requests; the list is bounded."""
    now = [100.0]
    # Of the seconds half are spent on the CPU.
    pauses = GcPauses(lambda: now[0], lambda: 5_000_000_000, lambda: int(now[0] * 5e8))

    def collect(seconds: float, generation: int) -> None:
        pauses._heard("start", {"generation": generation})
        now[0] += seconds
        pauses._heard("stop", {"generation": generation})

    collect(0.04, 2)
    collect(0.25, 2)

    expected = [{"start_unix_ns": 4_750_000_000, "duration_ns": 250_000_000, "generation": 2, "cpu_ns": 125_000_000}]
    assert expected == pauses.reading()["gc_long"]
    for _ in range(100):
        collect(0.06, 1)
    assert 32 == len(pauses.reading()["gc_long"])
    assert "cpu_ns" not in pauses.reading()["gc_long"][-1]
