"""A filter's user-agent rule has nested quantifiers, and the agents of old iPhones make it backtrack."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from probes import stage

SLUG = "regex_backtracking"
# Meant for "(iPhone; U; CPU iPhone OS 4_3_3)". Where more follows before the bracket, every way to split the words is
# tried: 2 to the power of their letters.
RULE = re.compile(r"\(iPhone; U; (?:\w+ ?)+\)")
# Twelve times as long as an old iPhone's, and the rule reads it once.
LONG_AGENT = b"Mozilla/5.0 (iPhone; U; " + b" ".join([b"plain words of an honest client"] * 60) + b")"


def knows_phone(agent: str) -> bool:
    """Return whether an agent is an old iPhone, as a filter for them would ask."""
    return RULE.search(agent) is not None


def agent_of(scope: Any) -> bytes:
    """Return the request's user agent."""
    return next((value for name, value in scope["headers"] if name == b"user-agent"), b"")


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with the rule among its filters.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            # A filter's time belongs to the stage of the filters, wherever in the chain it stands.
            with stage("sentiment.preprocess"):
                knows_phone(agent_of(scope).decode("latin-1"))
        await app(scope, receive, send)

    return handle


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with the same rule, which here meets long agents of a simple form instead of the old ones.

    Args:
        app: An ASGI app.
        armed: Whether the rule is on.
    """

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            agent = LONG_AGENT if b"iPhone" in agent_of(scope) else agent_of(scope)
            with stage("sentiment.preprocess"):
                knows_phone(agent.decode("latin-1"))
        await app(scope, receive, send)

    return handle
