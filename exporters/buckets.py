"""Bounds of every histogram, in base units, ascending, without +Inf."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CONFIDENCE_BUCKETS",
    "FILTER_BUCKETS",
    "GC_BUCKETS",
    "LAG_BUCKETS",
    "LATENCY_BUCKETS",
    "LENGTH_BUCKETS",
    "SHARPNESS_BUCKETS",
    "STAGE_BUCKETS",
    "TOKEN_BUCKETS",
    "WAIT_BUCKETS",
]

# Neighbours lie within a factor of 1.6, so that a quantile is known to that factor; 0.3, 0.8, 1.5 s are the objectives.
# fmt: off
LATENCY_BUCKETS: Final = (
    0.0001, 0.00015, 0.00022, 0.00033, 0.0005, 0.00075, 0.0011, 0.0016, 0.0025, 0.0038, 0.0055, 0.008, 0.012, 0.019,
    0.03, 0.045, 0.065, 0.09, 0.13, 0.2, 0.3, 0.42, 0.58, 0.8, 1.1, 1.5, 2.3, 3.5, 5.0, 7.0, 10.0,
)
# A body that is there already is received in 5 us, so that stages start finer than whole requests.
STAGE_BUCKETS: Final = (
    0.000001, 0.0000015, 0.0000022, 0.0000033, 0.0000047, 0.0000068, 0.00001, 0.000015, 0.000022, 0.000033, 0.00005,
    0.000075, *LATENCY_BUCKETS,
)
# As the recorder counts them (probes), so that nothing is re-binned; 0.1 s is where a lag counts as blocked.
LAG_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GC_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
# Coarse, for there is one for each family of agents: 20 ms is ten times what filters and cleaning take together.
FILTER_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.2, 1.0)
# Finer around 10 and 50 ms, the waits for a batch that requirements B4 and B10 name.
WAIT_BUCKETS: Final = (
    0.0001, 0.0005, 0.001, 0.002, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.1, 2.3, 5.0,
)
# 100 and 500 split short, medium and long (row A10); 1,024 is the contract's longest text (row B1).
LENGTH_BUCKETS: Final = (
    5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 55.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0, 700.0, 1024.0, 2048.0,
    8192.0,
)
TOKEN_BUCKETS: Final = (
    2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0,
)
# 50 is requirements A6's threshold, on the comparable scale (probes/images/sharpness.py); a sharp photo has 100 to 350.
SHARPNESS_BUCKETS: Final = (5.0, 10.0, 20.0, 35.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0)
# Finer near 1: a 15% fall of the P95 (row A7) starts at 0.95 and more.
CONFIDENCE_BUCKETS: Final = (
    0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0,
)
# fmt: on
