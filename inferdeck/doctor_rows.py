"""What `doctor` sees of the rows: their folder and files, the room for them, the exporter's state, the clock."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from inferdeck.checks import Check
from inferdeck.settings import StackSettings

__all__ = ["clock", "exporter_state", "room", "row_files"]

MIB = 1024 * 1024
# the exporter writes its state every few seconds; ten times that is a disk that hangs or is full
OLD_STATE_SECONDS = 60.0
# rows bear wall time on a steady clock that is anchored once a second; a step of a second shows in every window
CLOCK_STEP_SECONDS = 1.0
FUTURE_SECONDS = 60.0


def row_files(folder: Path) -> Iterator[Check]:
    """Look at the modes of ring files and key: rows hold session ids, and the key makes hashes of them.

    Args:
        folder: Folder of the rows.
    """
    from probes.folder import KEY_BYTES, KEY_NAME
    from probes.reader import RingError, RingFile, list_rings
    from probes.session_key import RETIRED

    paths = list_rings(folder)
    if not paths:
        yield Check("row files", "absent", f"no worker has recorded in {folder}", "start the service")
        return
    key = folder / KEY_NAME
    private = [path for path in (*paths, key, *folder.glob(RETIRED)) if path.exists()]
    if wide := [path.name for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077]:
        yield Check("row files", "warn", f"open to others: {', '.join(wide[:5])}", f"chmod 600 {folder}/*")
    elif not key.exists() or key.stat().st_size != KEY_BYTES:
        # without it no session is found; a new one makes old rows unfindable, so the service must not make it silently
        yield Check("row files", "fail", f"{key} is missing or damaged: sessions are not found", "restart the service")
    else:
        unreadable = []
        for path in paths:
            try:
                RingFile(path).close()
            except (RingError, OSError) as error:
                unreadable.append(str(error) or path.name)
        if unreadable:
            yield Check("row files", "warn", "; ".join(unreadable[:3]), "remove what is no ring of ours")
        else:
            yield Check("row files", "ok", f"{len(paths)} in {folder}")


def room(settings: StackSettings, free_bytes: int | None = None) -> Iterator[Check]:
    """Compare the room where rows go with what the workers take, and take once more while a restart overlaps.

    Args:
        settings: Folder and workers.
        free_bytes: Instead of what the file system says.
    """
    from probes.layout import plan_layout
    from probes.reader import list_rings
    from probes.settings import RecorderSettings

    sizes = RecorderSettings()
    each = plan_layout(sizes.row_bytes, sizes.ring_rows, sizes.open_slots).total
    there = next(place for place in (settings.ring_path, *settings.ring_path.parents) if place.exists())
    free = shutil.disk_usage(there).free if free_bytes is None else free_bytes
    # what is taken already need not be free
    taken = len(list_rings(settings.ring_path))
    workers = settings.service_workers
    missing = max(0, workers - taken) * each
    spare = max(0, 2 * workers - taken) * each
    text = f"{free // MIB} MiB free in {there}; {workers} workers take {workers * each // MIB} MiB"
    mend = "free some, set fewer workers or INFERDECK_RING_DIR (in a container: raise --shm-size)"
    if free < missing:
        yield Check("room for rows", "fail", f"{text}: rows of some would not survive a kill", mend)
    elif free < spare:
        yield Check("room for rows", "warn", f"{text}, twice that while one generation follows another", mend)
    else:
        yield Check("room for rows", "ok", text)


def exporter_state(state_dir: Path, running: bool, now: float | None = None) -> Iterator[Check]:
    """Look whether the exporter's totals and cursors are kept, and lately if it runs.

    Args:
        state_dir: State folder.
        running: Whether the exporter of this state folder runs.
        now: Unix seconds.
    """
    from exporters.state import StateUnreadableError, load_state

    path = state_dir / "exporter.state"
    try:
        found = load_state(path)
        age = (time.time() if now is None else now) - path.stat().st_mtime if found else 0.0
    except StateUnreadableError as error:
        yield Check("exporter state", "warn", str(error), "the exporter counts anew from now on; look at the disk")
        return
    if found is None:
        if running:
            mend = "a restart of the exporter would lose its totals: look at its log"
            yield Check("exporter state", "warn", f"no {path} although the exporter runs", mend)
        else:
            yield Check("exporter state", "absent", f"no {path}", "the exporter makes it")
    elif running and age > OLD_STATE_SECONDS:
        mend = f"is the disk of {state_dir} full? telemetry_state_write_errors_total"
        yield Check("exporter state", "fail", f"not written for {age:.0f} s while the exporter runs", mend)
    else:
        yield Check("exporter state", "ok", f"{len(found.rings)} rings, written {max(age, 0.0):.0f} s ago")


def clock(
    settings: StackSettings, program: Path, now: float | None = None, monotonic_now: float | None = None
) -> Iterator[Check]:
    """Look at the clock from three sides: this program, our own files, and the start of each living worker.

    Prometheus refuses samples of a clock that was set back, and windows of minutes are wrong by every step.

    Args:
        settings: Folders.
        program: A file that is older than now.
        now: Unix seconds.
        monotonic_now: Seconds of the monotonic clock.
    """
    wall = time.time() if now is None else now
    steady = time.monotonic() if monotonic_now is None else monotonic_now
    told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))
    if wall < program.stat().st_mtime - 86_400:
        yield Check("clock", "fail", f"the clock says {told}, older than this program", "set the machine's clock")
        return
    state = settings.state_path / "exporter.state"
    ahead = state.stat().st_mtime - wall if state.exists() else 0.0
    if ahead > FUTURE_SECONDS:
        yield Check("clock", "fail", f"{state} is {ahead:.0f} s in the future: the clock was set back", "use NTP")
    elif (step := max((abs(s) for s in _steps(settings.ring_path, wall, steady)), default=0.0)) > CLOCK_STEP_SECONDS:
        mend = "let it be slewed, not stepped; restart the service, so that its rows begin anew"
        yield Check("clock", "warn", f"stepped by {step:.1f} s since a worker started", mend)
    else:
        yield Check("clock", "ok", told)


def _steps(ring_dir: Path, wall: float, steady: float) -> Iterator[float]:
    """Yield by how much the wall clock left the steady one since each living worker's start, in seconds."""
    from exporters.ring_folder import open_rings
    from probes.folder import boot_id
    from probes.reader import RingFile

    boot = boot_id()
    for ring in open_rings(ring_dir):
        # the monotonic clock begins anew with each boot
        if isinstance(ring, RingFile) and ring.header.boot_id == boot and ring.owner_alive():
            header = ring.header
            yield (wall - header.started_unix_ns / 1e9) - (steady - header.started_monotonic_ns / 1e9)
