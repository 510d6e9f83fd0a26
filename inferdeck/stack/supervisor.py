"""The process behind `up`: hosts the stack, reaps its children, stops them on SIGTERM.

Run as `python -m inferdeck.stack.supervisor PLAN.json`; `up --foreground` calls `supervise` itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from inferdeck.errors import CannotRun, Interrupted
from inferdeck.stack.embedded import EmbeddedStack, Say
from inferdeck.stack.plan import StackPlan
from inferdeck.stack.process import ProcessRecord, kernel_start_ticks
from inferdeck.stack.state import make_private_folder, only_stack, state_file, write_state

__all__ = ["main", "supervise"]


def own_record(log: Path) -> ProcessRecord:
    """Return the record of this process, so that `down` can tell it from a stranger."""
    token = os.environ.get("INFERDECK_STACK_TOKEN", "")
    return ProcessRecord(
        "supervisor", os.getpid(), kernel_start_ticks(os.getpid()) or 0, token, tuple(sys.argv), str(log), time.time()
    )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


def supervise(plan: StackPlan, say: Say, on_ready: Say = lambda _line: None) -> None:
    """Run the plan's stack until SIGTERM or SIGINT; SIGHUP starts again what has ended.

    Args:
        plan: The stack.
        say: Gets one line for each change.
        on_ready: Called once all parts are ready.

    Raises:
        CannotRun: If the stack cannot be started.
        Interrupted: If it was told to end while starting; all that was started is stopped.
    """
    ending, mending = threading.Event(), threading.Event()
    # a start is broken off at once; afterwards the loop ends in order
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    signal.signal(signal.SIGHUP, lambda _number, _frame: mending.set())
    with only_stack(plan.state_dir):
        stack = EmbeddedStack(plan, say)
        stack.start(own_record(plan.state_dir / "logs" / "supervisor.log"))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: ending.set())
        on_ready("ready")
        try:
            while not ending.wait(0.25):
                for part in stack.poll():
                    log = part.record.log if part.record else "?"
                    say(f"{part.name}: ended with {part.exit_code}; its log is {log}")
                if mending.is_set():
                    mending.clear()
                    mend_or_say(stack, say)
                _keep_record(stack, say)
        finally:
            for report in stack.stop():
                say(f"{report.name}: stopped ({report.how}, {report.took_seconds:.1f} s)")


def _keep_record(stack: EmbeddedStack, say: Say) -> None:
    """Write the record anew when somebody deleted the state folder: without it nobody could end this stack."""
    state_dir = stack.plan.state_dir
    if not state_file(state_dir).exists():
        with contextlib.suppress(OSError, CannotRun):
            make_private_folder(state_dir)
            write_state(stack.state)
            say(f"the record of the stack in {state_dir} was deleted under it; written anew")


def mend_or_say(stack: EmbeddedStack, say: Say) -> None:
    """Start again what has ended; what cannot be mended is said, and costs nobody else anything."""
    try:
        stack.mend()
    except (CannotRun, OSError) as error:
        # the others go on, on a full disk too; `up` and `status` show what is still dead
        say(f"cannot mend: {error}")


def main(argv: list[str]) -> int:
    """Run a stack from a plan file.

    Args:
        argv: One path.

    Returns:
        0 when it was stopped, 2 when it could not start.
    """
    plan = StackPlan.from_json(json.loads(Path(argv[0]).read_text(encoding="utf-8")))

    def say(line: str) -> None:
        # a log on a full disk costs the line, not the stack
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")

    try:
        supervise(plan, say)
    except (CannotRun, OSError) as error:
        say(f"cannot run: {error}")
        return 2
    except Interrupted:
        say("told to end while starting")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
