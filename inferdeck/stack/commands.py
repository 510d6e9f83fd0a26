"""`up`, `down` and `status`: what they do, apart from how it is asked for and shown."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.jaeger import find_jaeger
from inferdeck.stack.plan import StackPlan, plan_from_settings
from inferdeck.stack.ports import require_free
from inferdeck.stack.process import ProcessRecord, is_alive, log_tail, start, stop
from inferdeck.stack.state import StackState, make_private_folder, only_stack, read_state, write_private, write_state
from inferdeck.stack.triton import find_triton
from inferdeck.version import ROOT
from probes.session_key import RETIRED

__all__ = ["down", "find_tools", "prepare_model", "stack_urls", "up"]

Say = Callable[[str], None]
# what `down --purge` removes: what the parts make
PURGED = (
    *(
        "logs",
        "prometheus",
        "alertmanager",
        "triton",
        "reports",
        "triage",
        "exporter.state",
        "exporter.lock",
        "session.key",
        "archive",
        "rows",
    ),
    *("run", "mitigations/reserve", "mitigations/lock"),
)
# and what it leaves: incidents that were handed on, and evidence
KEPT = ("bundles", "drills", "mitigations")
# and beside the ring files, by name, what else the recorder and the exporter put into their folder
RING_FOLDER = ("key", "control", "reference.npz")


def find_tools() -> dict[str, str]:
    """Return the path of each program of Prometheus, Alertmanager and Jaeger that can be found here."""
    from alerts.promtool import TOOLS, find_tool

    found = {name: str(path) for name in TOOLS if (path := find_tool(name))}
    return found | ({"jaeger": str(jaeger)} if (jaeger := find_jaeger()) else {})


def prepare_model(model_dir: Path, progress: Callable[[str, float], None], say: Say = lambda _line: None) -> None:
    """Make sure that a sound model is there, training it when it is missing.

    Args:
        model_dir: Folder of the artefacts.
        progress: Gets the present step and the share done.
        say: Gets one line when a training begins: a pipe shows no bar.

    Raises:
        CannotRun: If it is damaged or cannot be trained.
    """
    from service.artifacts import ArtifactsDamaged, ArtifactsMissing
    from service.training.ensure import ensure_model

    begun = False

    def told(what: str, share: float) -> None:
        nonlocal begun
        if not begun:
            begun = True
            # a folder of each working folder: whoever has a model elsewhere can still say so next time
            say(
                f"no model in {model_dir} (INFERDECK_SERVICE_MODEL_DIR names another folder): "
                "training one, about half a minute"
            )
        progress(what, share)

    try:
        ensure_model(model_dir, told)
    except (ArtifactsMissing, ArtifactsDamaged) as error:
        raise CannotRun(str(error)) from error


def stack_urls(state: StackState) -> dict[str, str]:
    """Return where each running part is found."""
    return {part.name: part.url for part in state.parts if part.left_out is None}


def up(settings: StackSettings, say: Say, progress: Callable[[str, float], None], *, foreground: bool) -> StackState:
    """Start the stack of the settings, or what has ended of a running one, and return when it is ready.

    Args:
        settings: Ports and folders.
        say: Gets one line for each step.
        progress: Progress of a training, if one is needed.
        foreground: Host the stack in this process, until Ctrl-C or SIGTERM.

    Raises:
        CannotRun: If it cannot be started; nothing is left running then.
    """
    if (running := _degraded(settings.state_path)) is not None:
        return _mend(running, settings, say)
    tools = find_tools()
    # before the model: whoever has a stack already, or a taken port, should not wait for a training to hear of it
    with only_stack(settings.state_path):
        require_free(settings.host, settings.ports_with(tools))
    prepare_model(settings.model_path, progress, say)
    _warn_of_rows(settings, say)
    plan = plan_from_settings(settings, tools | find_triton(settings, say))
    if foreground:
        from inferdeck.stack.supervisor import supervise

        supervise(plan, say, lambda _line: say("ready; Ctrl-C ends it"))
        return _known_state(plan.state_dir)
    return _start_detached(plan, say)


def _warn_of_rows(settings: StackSettings, say: Say) -> None:
    """Say when the service will serve without a record of it: its own log is no place where one looks first."""
    from inferdeck.doctor_rows import room
    from probes.folder import FolderRefused, prepare_folder

    try:
        prepare_folder(settings.ring_path)
    except FolderRefused as error:
        say(f"warning: requests will be served but not recorded: {error}")
        return
    for check in room(settings):
        if check.state == "fail":
            say(f"warning: {check.detail}; {check.mend}")


def _degraded(state_dir: Path) -> StackState | None:
    """Return the stack if it is supervised and a part of it has ended, else None."""
    state = read_state(state_dir)
    if state is None or state.phase != "ready" or not (state.supervisor and is_alive(state.supervisor)):
        return None
    return state if any(part.record and not is_alive(part.record) for part in state.parts) else None


def _mend(state: StackState, settings: StackSettings, say: Say) -> StackState:
    dead = [part.name for part in state.parts if part.record and not is_alive(part.record)]
    say(f"starting again: {', '.join(dead)}")
    before = state.mends
    if state.supervisor is not None:
        os.kill(state.supervisor.pid, signal.SIGHUP)
    deadline = time.monotonic() + settings.ready_timeout_seconds * len(dead)
    while time.monotonic() < deadline:
        time.sleep(0.25)
        state = _known_state(settings.state_path)
        if state.mends > before:
            if state.message:
                raise CannotRun(state.message)
            return state
    raise CannotRun(f"{', '.join(dead)} did not come back in time", "see `inferdeck status`")


def _start_detached(plan: StackPlan, say: Say) -> StackState:
    run = make_private_folder(plan.state_dir / "run")
    # a file and no argument: paths and settings do not belong into the list of processes
    write_private(run / "plan.json", json.dumps(plan.to_json(), indent=1))
    log = plan.state_dir / "logs" / "supervisor.log"
    argv = (sys.executable, "-P", "-m", "inferdeck.stack.supervisor", str(run / "plan.json"))
    record, child = start("supervisor", argv, log=log, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT)
    # the supervisor keeps its own deadline and says why; ours only covers that it cannot even say so
    deadline = time.monotonic() + plan.ready_timeout_seconds + plan.stop_grace_seconds * 6
    try:
        while time.monotonic() < deadline:
            ended = child.poll() is not None
            state = read_state(plan.state_dir)
            ours = state if state and state.supervisor and state.supervisor.pid == record.pid else None
            if ended:
                reason = ours.message if ours and ours.message else " ".join(log_tail(log, 1))
                raise CannotRun(
                    reason or "the supervisor ended without a word", "" if "read " in reason else f"read {log}"
                )
            if ours and ours.phase == "ready":
                for part in ours.parts:
                    say(
                        f"{part.name}: ready on {part.url}"
                        if part.left_out is None
                        else f"{part.name}: left out, {part.left_out}"
                    )
                return ours
            time.sleep(0.1)
        raise CannotRun("the stack is not ready in time", f"read {log}")
    except BaseException:
        # Ctrl-C while starting, or no answer: what was started is ended with it
        stop(record, grace_seconds=plan.stop_grace_seconds * 6, reap=child.poll)
        raise


def _known_state(state_dir: Path) -> StackState:
    state = read_state(state_dir)
    if state is None:
        raise CannotRun(f"the record of the stack in {state_dir} has gone", "start it again with `inferdeck up`")
    return state


def down(settings: StackSettings, *, purge: bool) -> dict[str, Any]:
    """Stop the stack of the state folder: its supervisor first, then whatever that left behind.

    Args:
        settings: Where the stack is, and how long TERM may take.
        purge: Delete the rows, logs, reports and Prometheus' data as well.

    Returns:
        `stopped`: name and way of each process that ran; `purged`: folders deleted; `kept`: folders that a purge left.
    """
    state = read_state(settings.state_path)
    stopped: list[dict[str, Any]] = []
    if state is not None:
        live = {part.name for part in state.live_parts()}
        if state.supervisor and is_alive(state.supervisor):
            # the supervisor first: it knows the order, and would notice the ends of its parts as deaths
            stopped.append(_stop_supervisor(state.supervisor, settings.stop_grace_seconds * 6))
        # read anew: the supervisor may have restarted or stopped parts meanwhile
        state = _known_state(settings.state_path)
        for part in reversed(state.parts):
            if part.record is None:
                continue
            report = stop(part.record, grace_seconds=settings.stop_grace_seconds)
            if part.name in live:
                # the supervisor has ended it meanwhile, which was our TERM as well
                how = "term" if report.how == "gone" else report.how
                stopped.append({"name": part.name, "pid": part.record.pid, "how": how})
        state.phase = "stopped"
        # on a full disk the record stays as it was; its processes are gone all the same
        with contextlib.suppress(OSError):
            write_state(state)
    purged = _purge(settings.state_path, Path(state.ring_dir)) if purge and state is not None else []
    kept = [str(folder) for name in KEPT if purge and (folder := settings.state_path / name).is_dir()]
    return {"state_dir": str(settings.state_path), "stopped": stopped, "purged": purged, "kept": kept}


def _stop_supervisor(record: ProcessRecord, grace_seconds: float) -> dict[str, Any]:
    # only its own process: its children are stopped in order by itself, or one by one afterwards
    os.kill(record.pid, signal.SIGTERM)
    os.kill(record.pid, signal.SIGCONT)
    deadline = time.monotonic() + grace_seconds
    while is_alive(record) and time.monotonic() < deadline:
        time.sleep(0.05)
    how = "term"
    if is_alive(record):
        os.kill(record.pid, signal.SIGKILL)
        how = "kill"
    return {"name": "supervisor", "pid": record.pid, "how": how}


def _purge(state_dir: Path, ring_dir: Path) -> list[str]:
    """Delete what a stack left: by name, since the folders are the user's choice and may hold more than ours.

    Only where the record of a stack was found: `logs` and `run` of any other folder are somebody else's.
    """
    rows = [path for path in sorted(ring_dir.glob("*")) if _of_rows(path)]
    gone = _delete([*(state_dir / name for name in PURGED), *rows])
    with contextlib.suppress(OSError):
        # only without a journal: who did what is kept
        (state_dir / "mitigations").rmdir()
    with contextlib.suppress(OSError):
        ring_dir.rmdir()
        gone.append(str(ring_dir))
    return gone


def _of_rows(path: Path) -> bool:
    return path.suffix in {".ring", ".new"} or path.name in RING_FOLDER or path.match(RETIRED)


def _delete(places: list[Path]) -> list[str]:
    """Delete files and folders that are there, links themselves and not what they lead to; return which were."""
    gone = []
    for place in places:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif place.exists() or place.is_symlink():
            place.unlink()
        else:
            continue
        gone.append(str(place))
    return gone
