"""Probes: what measures inside the service process; three lines attach the flight recorder to any ASGI app.

from probes import attach, stage
recorder = attach(app, service="my-model")
with stage("model.forward", batch_size=8): ...
"""

from probes.asgi import FlightRecorder, attach
from probes.plan import define_stage
from probes.record import Record, batch_stage, bind, current, stage
from probes.recorder import Recorder
from probes.settings import Identity, RecorderSettings

__all__ = [
    "FlightRecorder",
    "Identity",
    "Record",
    "Recorder",
    "RecorderSettings",
    "attach",
    "batch_stage",
    "bind",
    "current",
    "define_stage",
    "stage",
]
