"""Behind `inferdeck drill`: chooses between failures, clean time and rescoring, and shows the result."""

from __future__ import annotations

from pathlib import Path

from inferdeck.drill.command import DrillRequest, choose_programs, drill
from inferdeck.drill.view import show_drill
from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.settings import load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.terminal import progress_bar, sayer

__all__ = ["run_drill"]


def run_drill(request: DrillRequest, *, clean_minutes: float | None, rescore: Path | None, quiet: bool) -> Outcome:
    """Carry out one call of `drill`.

    Args:
        request: Failures to run.
        clean_minutes: Minutes of healthy traffic instead.
        rescore: Folder of kept evidence to score again instead.
        quiet: Say nothing on the way.

    Raises:
        CannotRun: If two of these are asked for at once, or it cannot be carried out.
    """
    failures = bool(request.slugs or request.every or request.program or request.expect)
    if failures + (clean_minutes is not None) + (rescore is not None) > 1:
        raise CannotRun("failures, --clean and --rescore exclude each other", "call drill once for each")
    settings, tools, say = load_settings(), find_tools(), sayer(quiet=quiet)
    if rescore is not None:
        from inferdeck.drill.rescore import rescore_runs

        payload, code = rescore_runs(rescore, tools, say, blind_only=request.blind)
        return Outcome(payload, code, lambda console: show_drill(console, payload))
    if clean_minutes is None:
        # nobody waits for a training to hear that a name was mistyped
        choose_programs(request)
    with progress_bar("training the model", quiet=quiet) as progress:
        prepare_model(settings.model_path, progress, say)
    if clean_minutes is not None:
        from inferdeck.drill.clean import clean_plan, run_clean

        payload, code = run_clean(clean_plan(clean_minutes, request.seed), request, settings, tools, say)
    else:
        payload, code = drill(request, settings, tools, say)
    return Outcome(payload, code, lambda console: show_drill(console, payload))
