"""The mitigations that the embedded stack knows: a part is started again, room is made on a full disk."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.process import is_alive, stop
from inferdeck.stack.state import StackState, read_state
from runbooks.mitigation.action import Action, ActionFailedError, Done

__all__ = ["ACTION_IDS", "stack_actions"]

ACTION_IDS = ("restart_service", "restart_exporter", "drop_leftovers", "prune_archive")

# The archive keeps this share of what it holds: the newest rows, which an incident is about.
KEPT_SHARE = 0.5
# The exporter holds the archive's lock while it seals.
LOCK_SECONDS = 10.0


def stack_actions(settings: StackSettings) -> Mapping[str, Action]:
    """Return id -> action for the stack of the settings; nothing is looked at yet."""
    state_dir = settings.state_path
    found = [
        Action(
            "restart_service",
            "stops what is left of the service and has the supervisor start it again on its ports",
            lambda: restart(settings, "service"),
        ),
        Action(
            "restart_exporter",
            "stops what is left of the exporter and has the supervisor start it again on its ports",
            lambda: restart(settings, "exporter"),
        ),
        Action(
            "drop_leftovers",
            "deletes rotated logs and half-written files that killed writers left in the state folder",
            lambda: drop_leftovers(state_dir),
        ),
        Action(
            "prune_archive",
            "deletes the older half of the archived rows, for good",
            lambda: prune_archive(state_dir / "archive"),
        ),
    ]
    return {action.id: action for action in found}


def restart(settings: StackSettings, name: str) -> Done:
    """Stop a part of the stack, if it runs, and wait until its supervisor has started it again.

    Args:
        settings: Where the stack is.
        name: The part.

    Raises:
        ActionFailedError: If there is no supervised stack, or the part does not come back.
    """
    state = _supervised(settings)
    part = state.part(name)
    if part is None or part.record is None:
        raise ActionFailedError(f"the stack has no {name}: {part.left_out if part else 'no such part'}")
    how = stop(part.record, grace_seconds=settings.stop_grace_seconds).how
    before, supervisor = state.mends, state.supervisor
    if supervisor is None:
        raise ActionFailedError("the stack has no supervisor; start it again with `inferdeck up`")
    os.kill(supervisor.pid, signal.SIGHUP)
    state = _until(settings, lambda now: now.mends > before, f"{name} did not come back in time")
    if state.message:
        raise ActionFailedError(state.message)
    new = state.part(name)
    if new is None or new.record is None or not is_alive(new.record):
        raise ActionFailedError(f"{name} did not stay up; see `inferdeck status`")
    was = {"gone": "was dead", "term": "was stopped", "kill": "did not react and was killed"}[how]
    return Done(f"{name} (pid {part.record.pid}) {was}, runs again as pid {new.record.pid}")


def _supervised(settings: StackSettings) -> StackState:
    try:
        state = read_state(settings.state_path)
    except CannotRun as error:
        raise ActionFailedError(str(error)) from error
    if state is None or state.phase != "ready" or state.supervisor is None or not is_alive(state.supervisor):
        raise ActionFailedError(f"no supervised stack runs from {settings.state_path}; start one with `inferdeck up`")
    return state


def _until(settings: StackSettings, over: Callable[[StackState], bool], late: str) -> StackState:
    deadline = time.monotonic() + settings.ready_timeout_seconds
    while time.monotonic() < deadline:
        time.sleep(0.25)
        state = read_state(settings.state_path)
        if state is not None and over(state):
            return state
    raise ActionFailedError(f"{late}; see `inferdeck status`")


def drop_leftovers(state_dir: Path) -> Done:
    """Delete what nobody misses: rotated logs, and half-written files older than a minute.

    Raises:
        ActionFailedError: If nothing could be deleted.
    """
    freed = count = 0
    for path in _leftovers(state_dir):
        try:
            size = path.stat().st_blocks * 512
            path.unlink()
        except OSError:
            continue
        freed, count = freed + size, count + 1
    if not count:
        raise ActionFailedError(f"no leftovers in {state_dir}: nothing was deleted")
    return Done(f"{count} leftovers deleted, {freed} bytes freed")


def _leftovers(state_dir: Path) -> Iterator[Path]:
    yield from (state_dir / "logs").glob("*.log.1")
    young = time.time() - 60.0
    for folder in (state_dir, *(state_dir / name for name in ("reports", "triage", "run", "archive"))):
        # as probes/private_file.py names them; a writer at work is younger than a minute
        for path in folder.glob(f".*.{'[0-9a-f]' * 16}"):
            try:
                if path.is_file() and not path.is_symlink() and path.stat().st_mtime < young:
                    yield path
            except OSError:
                continue


def prune_archive(folder: Path) -> Done:
    """Delete the oldest segments of the archive until it holds half of its bytes.

    Raises:
        ActionFailedError: If there is nothing to delete, or the exporter does not let go of the archive.
    """
    from exporters.archive.lock import archive_lock
    from exporters.archive.segment import list_segments

    if not folder.is_dir():
        raise ActionFailedError(f"no archive in {folder}: nothing was deleted")
    try:
        with archive_lock(folder, LOCK_SECONDS) as mine:
            if not mine:
                raise ActionFailedError("the exporter holds the archive; try again")
            segments = [(path, path.stat().st_size) for path in list_segments(folder)]
            total, freed, count = sum(size for _, size in segments), 0, 0
            for path, size in segments:
                if freed >= (1.0 - KEPT_SHARE) * total:
                    break
                path.unlink(missing_ok=True)
                freed, count = freed + size, count + 1
    except OSError as error:
        raise ActionFailedError(f"{folder} cannot be pruned: {error.strerror}") from error
    if not count:
        raise ActionFailedError(f"the archive in {folder} is empty: nothing was deleted")
    return Done(f"{count} of {len(segments)} archived segments deleted, {freed} of {total} bytes freed")
