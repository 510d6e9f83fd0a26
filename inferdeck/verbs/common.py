"""What all verbs share: the --json option, the stamp on the result, and how it is shown."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec

import click

from inferdeck.result import Outcome, Stopwatch, to_json

__all__ = ["reports"]

P = ParamSpec("P")


def reports(function: Callable[P, Outcome]) -> Callable[P, int]:
    """Turn a function that returns an `Outcome` into a verb's body.

    The function gets `quiet` (True with --json, or when stderr is no terminal) beside its own options.

    Args:
        function: Does the work.

    Returns:
        A function that prints the result and returns the exit code.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout, and nothing else there.")
    @click.pass_context
    @functools.wraps(function)
    def body(ctx: click.Context, /, *args: Any, as_json: bool, **options: Any) -> int:
        as_json = as_json or bool((ctx.obj or {}).get("json"))
        watch = Stopwatch()
        outcome = function(*args, quiet=as_json, **options)  # type: ignore[arg-type]  # click passes options by name
        if as_json:
            sys.stdout.write(to_json(watch.stamp(outcome.payload)) + "\n")
        elif outcome.show is not None:
            from inferdeck.terminal import stdout_console

            outcome.show(stdout_console())
        return outcome.code

    return body  # type: ignore[return-value]  # click.pass_context hides the context argument
