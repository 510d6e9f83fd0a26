"""Begin requests while the collector closes the ring under them; a process of its own, since a mistake kills it."""

import gc
import sys
from pathlib import Path
from typing import Any

from probes.intake import Intake
from probes.ringfile import open_ring
from probes.settings import Identity, RecorderSettings


class Closes:
    """Closes a ring when it is collected; it is garbage of a cycle as soon as it is made."""

    def __init__(self, owned: Any) -> None:
        self.owned, self.me = owned, self

    def __del__(self) -> None:
        self.owned.close()


def turn(folder: Path, kept: int) -> str:
    """Return what the request is told that begins while its ring is closed."""
    owned = open_ring(folder, "closing", Identity(), RecorderSettings(ring_rows=64), lambda _reason: None)
    intake = Intake(owned)
    scope: dict[str, Any] = {"type": "http", "method": "POST", "headers": [(b"user-agent", b"x")]}
    # So many are in flight that the allocator's spare objects are used up at another place each time.
    flying = [intake.begin(scope) for _ in range(kept)]
    gc.disable()
    Closes(owned)
    gc.enable()
    gc.set_threshold(1, 1, 1)
    try:
        flying.append(intake.begin(scope))
    except Exception:  # noqa: BLE001 - of any class: the caller serves the request unrecorded
        return "refused"
    finally:
        gc.set_threshold(700, 10, 10)
    return "begun"


for number in range(60):
    sys.stdout.write(turn(Path(sys.argv[1]) / str(number), number) + "\n")
