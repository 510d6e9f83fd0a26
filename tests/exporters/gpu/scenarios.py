"""Scenarios of the stub library that several tests use."""

from __future__ import annotations

GIB = 1 << 30

H200 = f"""\
driver 580.65.06
count 1
0.name NVIDIA H200
0.utilization 37 12
0.memory {141 * GIB} {100 * GIB} {41 * GIB}
0.temperature 44
0.power 312500
0.power_limit 700000
0.clock.sm 1980
0.clock.memory 3201
0.throttle 4
0.ecc.corrected 3
0.ecc.uncorrected 0
0.mig 0 0 0
0.process 4001 {30 * GIB} /opt/venv/bin/python
0.process 4002 {10 * GIB} /usr/bin/python
0.process 4003 - /usr/bin/train
"""

# One instance; as with real MIG, the card itself tells no utilisation, and an instance hardly more than its memory.
MIG = f"""\
driver 580.65.06
count 1
0.name NVIDIA H200
0.utilization !3
0.memory {141 * GIB} {100 * GIB} {41 * GIB}
0.processes !4
0.mig 1 1 7
0/2.name NVIDIA H200 MIG 1g.18gb
0/2.memory {16 * GIB} {15 * GIB} {1 * GIB}
0/2.process 5001 {GIB} /usr/bin/serve
"""

TWO_ONE_LOST = f"""\
driver 580.65.06
count 2
0 !15
1.name NVIDIA L4
1.utilization 0 0
1.memory {24 * GIB} {24 * GIB} 0
"""
