"""The command line: verbs are found here, defined in `inferdeck.verbs`, and their work is imported when they run."""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import ClassVar, NoReturn

import click

from inferdeck.errors import CannotRun, Interrupted
from inferdeck.version import version

__all__ = ["cli", "main"]


class LazyGroup(click.Group):
    """Finds a verb's definition when it is asked for, so that one verb's help does not import the others."""

    VERBS: ClassVar[dict[str, str]] = {
        "up": "inferdeck.verbs.stack",
        "down": "inferdeck.verbs.stack",
        "status": "inferdeck.verbs.stack",
        "demo": "inferdeck.verbs.failures",
        "drill": "inferdeck.verbs.failures",
        "trace": "inferdeck.verbs.look",
        "triage": "inferdeck.verbs.look",
        "investigate": "inferdeck.verbs.data",
        "reports": "inferdeck.verbs.kept",
        "deadletters": "inferdeck.verbs.kept",
        "mitigate": "inferdeck.verbs.mend",
        "canary": "inferdeck.verbs.canary",
        "doctor": "inferdeck.verbs.upkeep",
        "selftest": "inferdeck.verbs.care",
        "bundle": "inferdeck.verbs.care",
        "erase": "inferdeck.verbs.care",
        "rekey": "inferdeck.verbs.care",
        "check": "inferdeck.verbs.upkeep",
        "build": "inferdeck.verbs.upkeep",
        "train": "inferdeck.verbs.upkeep",
        "export": "inferdeck.verbs.upkeep",
        "grafana": "inferdeck.verbs.grafana",
        "triton": "inferdeck.verbs.triton",
        "stream": "inferdeck.verbs.stream",
        "bench": "inferdeck.bench.cli",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of a first day."""
        del ctx
        return list(self.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb's command, or None when there is no such verb."""
        del ctx
        module = self.VERBS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(module), cmd_name)
        keep_lines(command)
        return command


def keep_lines(command: click.Command) -> None:
    r"""Turn the two characters ``\b`` of raw docstrings into the one by which click leaves lines as they are.

    Args:
        command: A verb; those below it are done as well.
    """
    if command.help:
        command.help = command.help.replace("\\b\n", "\b\n")
    for below in getattr(command, "commands", {}).values():
        keep_lines(below)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout, and nothing else there.")
@click.version_option(version(), prog_name="inferdeck")
@click.pass_context
def cli(ctx: click.Context, as_json: bool) -> None:
    r"""Flight recorder, alerts, runbooks and triage for model services.

    \b
    First look:      inferdeck demo
    A stack:         inferdeck up; inferdeck status; inferdeck down
    A complaint:     inferdeck trace SESSION_ID
    An alert:        inferdeck triage --alert EventLoopBlocked
    Does it work?    inferdeck drill event_loop_blocked service_down

    Exit codes: 0 done, 1 a finding or a miss, 2 could not run (one line says why and how to mend it).
    INFERDECK_DEBUG=1 shows tracebacks.
    """
    ctx.obj = {"json": as_json}


keep_lines(cli)


def _on_term(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


def _complain(message: str) -> int:
    sys.stderr.write(f"inferdeck: {' '.join(message.split())}\n")
    return 2


def run(arguments: list[str] | None = None, group: click.Group = cli) -> int:
    """Run one verb.

    Args:
        arguments: The command line without the program; that of this process by default.
        group: Where the verbs are.

    Returns:
        The exit code: 0 done, 1 a finding or a miss, 2 could not run, 130 interrupted.
    """
    # a TERM must unwind like Ctrl-C, so that drills and demos end what they started
    signal.signal(signal.SIGTERM, _on_term)
    debug = os.environ.get("INFERDECK_DEBUG") == "1"
    try:
        code = group.main(arguments, prog_name="inferdeck", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except CannotRun as error:
        if debug:
            raise
        return _complain(str(error))
    except click.ClickException as error:
        hint = f"; see `{error.ctx.command_path} --help`" if isinstance(error, click.UsageError) and error.ctx else ""
        return _complain(f"{error.format_message()}{hint}")
    except (KeyboardInterrupt, click.Abort, Interrupted):
        sys.stderr.write("inferdeck: interrupted\n")
        return 130
    except BrokenPipeError:
        # the reader of our output has gone (`| head`): nothing to say, and nobody to say it to
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if debug:
            raise
        mend = "; free some space there" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        return _complain(f"{error.strerror or error}: {error.filename or 'a file of the stack'}{mend}")
    except ImportError as error:
        if debug:
            raise
        return _complain(
            f"{error}; `inferdeck doctor` tells what is missing, or whether a folder of that name hides ours"
        )
    except Exception as error:  # the last door: a traceback helps nobody at 3 a.m.
        if debug:
            raise
        return _complain(f"internal error, {type(error).__name__}: {error}; INFERDECK_DEBUG=1 shows where")


def main() -> None:
    """Run the console and exit with its code."""
    sys.exit(run())
