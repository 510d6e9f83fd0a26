"""What `doctor` looks at: whether this machine can run the stack, and how the running one is."""

from __future__ import annotations

import importlib.util
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from inferdeck.checks import Check, guarded
from inferdeck.doctor_device import model_device
from inferdeck.doctor_notify import follow_ups
from inferdeck.doctor_rows import clock, exporter_state, room, row_files
from inferdeck.doctor_triton import triton
from inferdeck.settings import StackSettings
from inferdeck.stack.ports import is_free, listener
from inferdeck.stack.process import is_alive
from inferdeck.stack.state import StackState, read_state
from inferdeck.version import ROOT
from probes.core import core_state

__all__ = ["examine"]

PACKAGES = ("inferdeck", "probes", "exporters", "alerts", "dashboards", "runbooks", "service")
SERVING = ("onnxruntime", "tokenizers")
# older ones refuse keep_firing_for in rules, or matchers in routes (their release notes); both are in our files
OLDEST = {"prometheus": (2, 42), "promtool": (2, 42), "prometheus-alertmanager": (0, 22), "amtool": (0, 22)}
TOOL_TIMEOUT_SECONDS = 10.0
INTERPRETED_TIMES = 2  # of the compiled core's cost in an app: docs/overhead.md


def examine(settings: StackSettings) -> list[Check]:
    """Look at everything.

    Args:
        settings: Ports and folders.
    """
    looks = {
        "python": _python,
        "imports": _imports,
        "recorder": lambda: _recorder(*core_state()),
        "folders": lambda: _folders(settings),
        "row files": lambda: row_files(settings.ring_path),
        "room for rows": lambda: room(settings),
        "ports": lambda: _ports(settings),
        "tools": _tools,
        "model": lambda: _model(settings),
        "device": model_device,
        "triton": lambda: triton(settings),
        "exporter state": lambda: exporter_state(settings.state_path, _exporter_runs(settings)),
        "clock": lambda: clock(settings, Path(__file__)),
        "notifications": follow_ups,
        "stack": lambda: _stack(settings),
    }
    return [check for name, look in looks.items() for check in guarded(name, look)]


def _python() -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    # 3.10 and older do not get here: our imports fail there, and pip refuses to install
    yield Check("python", "ok", f"{version} ({sys.executable})")


def _imports() -> Iterator[Check]:
    """The packages bear plain names, so a folder of the user's may win over ours."""
    shadowed = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if not any(Path(place).resolve() == ROOT / name for place in places):
            shadowed.append(f"{name} is {places[0] if places else 'not found'}")
    if shadowed:
        yield Check(
            "imports",
            "fail",
            "; ".join(shadowed),
            f"take that folder off PYTHONPATH, or run from elsewhere; ours are in {ROOT}",
        )
    else:
        yield Check("imports", "ok", f"all packages come from {ROOT}")
    missing = [name for name in SERVING if importlib.util.find_spec(name) is None]
    if missing:
        yield Check("serving packages", "warn", f"missing: {', '.join(missing)}", "pip install 'inferdeck[service]'")
    else:
        yield Check("serving packages", "ok", ", ".join(SERVING))


def _recorder(state: str, path: Path | None) -> Iterator[Check]:
    """Which core the services of this installation record with."""
    from probes.core import CORE

    mend = "install inferdeck anew where there are a C compiler and Python's headers"
    if (ROOT / "hatch_build.py").is_file():
        mend = "`python hatch_build.py` (it needs a C compiler, Python's headers and Cython)"
    told = f"interpreted, costs about {INTERPRETED_TIMES:g} times as much of a request's CPU time"
    if path is not None and CORE is not None:
        yield Check("recorder", "ok", f"compiled ({path.name})")
    elif state == "asked":
        yield Check("recorder", "warn", f"{told}: INFERDECK_CORE asks for it", "unset INFERDECK_CORE")
    elif state == "compiled":
        yield Check("recorder", "warn", f"{told}: {path} cannot be loaded", mend)
    else:
        why = "the compiled core is of other sources or for another Python" if state == "stale" else "no compiled core"
        yield Check("recorder", "warn", f"{told}: {why}", mend)


def _folders(settings: StackSettings) -> Iterator[Check]:
    for name, folder, variable in (
        ("state folder", settings.state_path, "INFERDECK_STATE_DIR"),
        ("row folder", settings.ring_path, "INFERDECK_RING_DIR"),
    ):
        if not folder.exists():
            # the first folder that exists decides whether the rest can be made
            parent = next(parent for parent in folder.parents if parent.exists())
            if os.access(parent, os.W_OK | os.X_OK):
                yield Check(name, "ok", f"{folder} will be made")
            else:
                yield Check(name, "fail", f"{folder} cannot be made: {parent} is not writable", f"set {variable}")
            continue
        info = folder.stat()
        if not os.access(folder, os.W_OK | os.X_OK):
            yield Check(name, "fail", f"{folder} is not writable", f"mend its owner or mode, or set {variable}")
        elif info.st_uid != os.geteuid():
            yield Check(
                name, "fail", f"{folder} belongs to user {info.st_uid}", f"set {variable} to a folder of your own"
            )
        elif stat.S_IMODE(info.st_mode) & 0o077:
            # rows, logs and reports hold session ids, which are personal data; the recorder refuses such a folder
            state, told = ("fail", ": no rows are kept there") if name == "row folder" else ("warn", "")
            detail = f"{folder} is open to others ({stat.S_IMODE(info.st_mode):o}){told}"
            yield Check(name, state, detail, f"chmod 700 {folder}")
        elif name == "row folder" and folder.is_symlink():
            yield Check(name, "fail", f"{folder} is a link, which the recorder does not follow", f"set {variable}")
        else:
            yield Check(name, "ok", str(folder))


def _exporter_runs(settings: StackSettings) -> bool:
    state = read_state(settings.state_path)
    part = state.part("exporter") if state else None
    return bool(part and part.record and is_alive(part.record))


def _ours(settings: StackSettings) -> StackState | None:
    state = read_state(settings.state_path)
    return state if state and state.live_parts() else None


def _ports(settings: StackSettings) -> Iterator[Check]:
    running = _ours(settings)
    ours = {part.port for part in running.live_parts()} if running else set()
    # the service's second listener has no part of its own
    if running and (service := running.part("service")) and service.record and is_alive(service.record):
        ours.add(int(service.health_url.split(":")[2].split("/")[0]))
    from inferdeck.stack.commands import find_tools

    for name, port in settings.ports_with(find_tools()).items():
        if port in ours:
            yield Check(name, "ok", f"{port} is held by our stack")
        elif is_free(settings.host, port):
            yield Check(name, "ok", f"{port} is free")
        else:
            who = listener(port)
            mend = f"stop that, or set INFERDECK_STACK_{name.upper()}"
            yield Check(name, "fail", f"{port} is taken{f' by {who}' if who else ''}", mend)


def _tools() -> Iterator[Check]:
    import subprocess

    from alerts.promtool import TOOLS, find_tool

    for name in TOOLS:
        # where the stack would take it from, in the same order
        path = find_tool(name)
        if path is None:
            yield Check(name, "absent", "not found", "`python -m inferdeck.tool_install` fetches it")
            continue
        done = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=TOOL_TIMEOUT_SECONDS, check=False
        )
        yield _tool(name, path, done.returncode, done.stdout or done.stderr)


def _tool(name: str, path: Path, code: int, output: str) -> Check:
    first = output.strip().partition("\n")[0].partition("(")[0].strip()
    mend = "`python -m inferdeck.tool_install` fetches one that fits"
    if code != 0:
        return Check(name, "fail", f"{first or 'does not run'} ({path})", mend)
    found = re.search(r"version (\d+)\.(\d+)", first)
    oldest = OLDEST[name]
    if found is None or (int(found[1]), int(found[2])) < oldest:
        wanted = ".".join(map(str, oldest))
        return Check(name, "warn", f"{first} ({path}); our files need {wanted} or newer", mend)
    return Check(name, "ok", f"{first} ({path})")


def _model(settings: StackSettings) -> Iterator[Check]:
    from service.artifacts import ArtifactsDamaged, ArtifactsMissing, load_artifacts

    try:
        found = load_artifacts(settings.model_path)
    except ArtifactsMissing as error:
        yield Check("model", "absent", str(error).partition(";")[0], "`inferdeck train`; `up` does it by itself")
    except ArtifactsDamaged as error:
        yield Check(
            "model", "fail", str(error).partition(";")[0], f"delete {settings.model_path}, then `inferdeck train`"
        )
    else:
        yield Check("model", "ok", f"{found.version} in {settings.model_path}")


def _stack(settings: StackSettings) -> Iterator[Check]:
    from inferdeck.stack.status import describe

    running = _ours(settings)
    if running is None:
        yield Check("stack", "absent", f"none runs from {settings.state_path}", "`inferdeck up` starts one")
        return
    for part in describe(running, settings.state_path)["parts"]:
        state = {"up": "ok", "unhealthy": "fail", "dead": "fail", "absent": "absent"}[part["health"]]
        age = part["last_scrape_age_s"]
        seen = part["detail"] or f"pid {part['pid']}" + (f", scraped {age:.0f} s ago" if age is not None else "")
        yield Check(f"stack: {part['name']}", state, seen, "" if state == "ok" else "`inferdeck status`, then its log")
    yield from _losses(Path(running.ring_dir))


def _losses(ring_dir: Path) -> Iterator[Check]:
    from exporters.rows import load_rows

    losses = {reason: count for reason, count in load_rows(ring_dir, since_ns=time.time_ns()).losses.items() if count}
    if losses:
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(losses.items()))
        yield Check("rows lost", "warn", told, "look at the telemetry_ figures of the exporter")
    else:
        yield Check("rows lost", "ok", "none")
