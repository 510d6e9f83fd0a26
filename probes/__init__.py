"""Probes: what measures inside the service process; three lines attach the flight recorder to any ASGI app.

from probes import attach, stage
recorder = attach(app, service="my-model")
with stage("model.forward", batch_size=8): ...

Names are loaded when they are first asked for: who only reads rows (`probes.reader`) needs no recorder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

_HOMES: Final = {
    "FlightRecorder": "asgi",
    "Identity": "settings",
    "Record": "record",
    "Recorder": "recorder",
    "RecorderSettings": "settings",
    "attach": "asgi",
    "batch_stage": "record",
    "bind": "record",
    "current": "record",
    "define_stage": "plan",
    "stage": "record",
}


def __getattr__(name: str) -> Any:
    """Return one of the names, and remember it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names too."""
    return sorted({*globals(), *__all__})
