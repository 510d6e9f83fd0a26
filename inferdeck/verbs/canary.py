"""`canary status`, `canary set`, `canary rollback`."""

from __future__ import annotations

import math

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["canary"]


@click.group(short_help="Give another version of the model a share of the requests, and take it back.")
def canary() -> None:
    r"""Serve two versions of the model: a share of the sessions goes to the canary.

    A canary that fails is answered for by the stable version, within the same request. One that fails much more, takes
    1.5 times as long or gives other labels is taken back by itself: its share is 0 from then on, in all workers and
    after restarts, until it is set again.

    \b
    Examples:
      inferdeck canary set --model build/v2 --share 0.1
      inferdeck canary status
      inferdeck canary rollback
    """


@canary.command()
@reports
def status(*, quiet: bool) -> Outcome:
    r"""Show model, share, and why it was taken back, if it was.

    \b
    Examples:
      inferdeck canary status
      inferdeck canary status --json
    """
    from inferdeck.canary import show_canary
    from inferdeck.settings import load_settings

    del quiet
    return show_canary(load_settings())


@canary.command("set")
@click.option("--share", type=click.FloatRange(0.0, 1.0), help="Share of the sessions that go to it, 0 to 1.")
@click.option(
    "--model", metavar="DIR|triton:N", help="Its folder, as train --out writes it; or Triton's version 1 or 2."
)
@reports
def set_share(*, share: float | None, model: str | None, quiet: bool) -> Outcome:
    r"""Set the canary's share, its model, or both; workers follow within some seconds, without a restart.

    A session stays with its version, and a larger share keeps the sessions of the smaller one.

    \b
    Examples:
      inferdeck canary set --model build/v2 --share 0.1
      inferdeck canary set --share 0.5
      inferdeck canary set --model triton:1 --share 0.05
    """
    from inferdeck.canary import set_canary
    from inferdeck.settings import load_settings

    del quiet
    if share is None and model is None:
        raise click.UsageError("give --share, --model or both")
    if share is not None and math.isnan(share):
        raise click.UsageError("--share must be a number from 0 to 1")
    return set_canary(load_settings(), share=share, model=model)


@canary.command()
@reports
def rollback(*, quiet: bool) -> Outcome:
    r"""Send no request to the canary any more; exit 1 when there is none.

    \b
    Examples:
      inferdeck canary rollback
    """
    from inferdeck.canary import roll_back
    from inferdeck.settings import load_settings

    del quiet
    return roll_back(load_settings())
