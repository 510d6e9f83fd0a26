"""The triage service as a process: `python -m runbooks`."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exporters.serving import CannotStartError, listen, run_until_stopped, serve_app, stopped_by_signals
from runbooks.engine import triage
from runbooks.inbox import Inbox, Incident
from runbooks.investigation.hand import InvestigationHand
from runbooks.mapping.load import find_mapping
from runbooks.mitigation.hand import MitigationHand
from runbooks.mitigation.journal import Journal, JournalError
from runbooks.mitigation.settings import MitigationSettings
from runbooks.notify.notifier import notifier_of
from runbooks.notify.settings import load_notify_settings
from runbooks.pages import load_pages
from runbooks.settings import TriageSettings
from runbooks.sources import LoneRows, Sources
from runbooks.store import ReportStore
from runbooks.watch import Tell, TriageWatch
from runbooks.webhook import make_app

__all__ = ["main", "serve"]

_log = logging.getLogger("runbooks")


def main(overrides: Mapping[str, Any] | None = None) -> int:
    """Run the service until SIGTERM or SIGINT.

    Args:
        overrides: Settings by field name that win over the environment.

    Returns:
        Exit status: 0 stopped, 2 could not start (one line on stderr says why, and the mend).
    """
    # One line per query would drown what matters.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return run_until_stopped(lambda: serve(TriageSettings(**(overrides or {}))), "INFERDECK_TRIAGE_")


def make_watch(settings: TriageSettings, store: ReportStore, tell: Tell | None = None) -> TriageWatch:
    """Return the thread that works off the incidents of a state folder; it is not started.

    Args:
        settings: The settings.
        store: Where reports are kept.
        tell: Hears of each result.
    """
    archive = settings.state_dir / "archive"
    if settings.mapping:
        sources = Sources.foreign(find_mapping(settings.mapping), settings.prometheus_url, settings.job or None)
    else:
        sources = Sources.open(settings.ring_dir, settings.prometheus_url or None, archive)
    if settings.ring_dir is None and not settings.mapping:
        sources = replace(sources, rows=LoneRows(archive))

    def look(alert: str, at: float) -> Mapping[str, Any]:
        return triage(sources, alert=alert or None, at=at, window=settings.lookback_seconds)

    return TriageWatch(
        Inbox(settings.state_dir / "triage", settings.most_waiting),
        store,
        look,
        tell=tell,
    )


def make_hand(settings: TriageSettings, store: ReportStore) -> MitigationHand:
    """Return what carries out switched-on mitigations; it is not started, and does nothing when none is switched on.

    Args:
        settings: Where the state folder is.
        store: Where reports are kept.

    Raises:
        pydantic.ValidationError: If an id is switched on that is in no page or not safe.
        CannotStartError: If one is switched on, and what is done could not be written down.
    """
    mine = MitigationSettings(state_dir=settings.state_dir)
    try:
        # room is set aside now, for people as well: on the day it is needed the disk may be full
        Journal(mine.folder, time.time).prepare()
    except JournalError as error:
        if mine.enabled:
            raise CannotStartError(str(error)) from error
    if mine.enabled:
        _log.info("switched on after a verdict: %s", ", ".join(sorted(mine.enabled)))
    return MitigationHand(mine.enabled, load_pages(), store, mine.mitigate_recheck_seconds)


def serve(settings: TriageSettings) -> None:
    """Serve until stopped by a signal.

    Raises:
        CannotStartError: If the port is taken.
    """
    stopping = threading.Event()
    with (
        stopped_by_signals(stopping),
        contextlib.closing(listen(settings.host, settings.port, "INFERDECK_TRIAGE_PORT")) as listener,
    ):
        host, port = listener.getsockname()[:2]
        store = ReportStore(settings.state_dir / "reports", settings.most_reports)
        # An address of all interfaces leads nowhere from a reader's browser.
        own_url = f"http://{host}:{port}" if settings.loopback else ""
        notifier = notifier_of(load_notify_settings(), store, own_url)
        hand = make_hand(settings, store)
        # Of a service without our rows there is nothing to investigate.
        investigation = InvestigationHand(store, enabled=settings.investigate and not settings.mapping)

        def tell(incident: Incident, kept: Mapping[str, Any]) -> None:
            # First the people, then what may be done without them.
            notifier.tell(incident, kept)
            hand.hear(kept, lambda told: notifier.tell(incident, kept, told))
            investigation.hear(kept)

        watch = make_watch(settings, store, tell)
        notifier.start()
        hand.start()
        investigation.start()
        watch.start()
        try:
            _log.info("notifications on http://%s:%d/webhook, reports below %s", host, port, settings.state_dir)
            token = settings.token.get_secret_value() if settings.token else None
            serve_app(make_app(watch, token, settings.host, notifier), listener, stopping)
        finally:
            watch.stop()
            investigation.stop()
            hand.stop()
            notifier.stop()
    _log.info("stopped; %d incidents wait for the next start", len(watch.inbox))
