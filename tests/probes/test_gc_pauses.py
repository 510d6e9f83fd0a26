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
