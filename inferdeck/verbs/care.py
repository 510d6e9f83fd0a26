"""`selftest`, `bundle`, `erase`, `rekey`: the stack proves itself, hands an incident over, forgets a person, a key."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["bundle", "erase", "rekey", "selftest"]


@click.command(short_help="Follow a marked request and alert through the running stack.")
@reports
def selftest(*, quiet: bool) -> Outcome:
    """Send a marked request and a marked alert through the running stack, and prove every link of both ways.

    Request: answered by the service, a row found by its session, counted by the exporter, scraped by Prometheus,
    shown as a trace. Alert: rules evaluated and Watchdog through to Alertmanager, a synthetic alert taken by
    Alertmanager, arrived at the webhook.

    The request is a real one and excluded from nothing: figures and rows count it. Its session id begins with
    inferdeck-selftest, as does its client release. The alert (slug selftest) has a route of its own that pages nobody,
    and starts no triage; it is over within a minute.

    What does not run here is absent, not broken. Takes 5 s as a rule and a minute at most; exit 1 when a link is
    broken, and the first broken one is named.

    \b
    Examples:
      inferdeck selftest
      inferdeck selftest --json
    """  # noqa: D301  # click takes the backspace itself as its mark
    from inferdeck.selftest.run import run_selftest
    from inferdeck.settings import load_settings

    del quiet
    return run_selftest(load_settings())


@click.command(short_help="Put an incident into one redacted file.")
@click.option("--report", "report_id", metavar="ID", help="A kept report.")
@click.option("--last", is_flag=True, help="The last kept report; so it is without options.")
@click.option("--since", metavar="TIME", help="No report: triage now, looking back 90s, 15m, 2h.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Below the state folder by default.")
@reports
def bundle(*, report_id: str | None, last: bool, since: str | None, out: Path | None, quiet: bool) -> Outcome:
    """Put an incident into one redacted file that triage can look at again, anywhere.

    Holds the report, the rows of its window, Prometheus' series, what doctor says, the tails of the logs, and the
    versions of code, rules and runbooks; a manifest with checksums. Session ids are replaced by their keyed hashes,
    whose key stays here; texts of requests are never stored; secrets are masked. Trace ids, names of machines and
    paths stay.

    A replay over the bundle is part of making it, and the output says whether it names what the report names.

    \b
    Examples:
      inferdeck bundle
      inferdeck bundle --report 20260101T000000Z-0123abcd -o incident.tar.gz
      inferdeck bundle --since 15m
      inferdeck triage --bundle incident.tar.gz
    """  # noqa: D301  # click takes the backspace itself as its mark
    from inferdeck.bundle.collect import run_bundle
    from inferdeck.settings import load_settings

    del quiet
    if last and (report_id or since):
        raise click.UsageError("--last goes with neither --report nor --since")
    return run_bundle(load_settings(), report_id, since, out)


@click.command(short_help="Take a session out of everything that is kept.")
@click.argument("session_id", required=False)
@click.option("--hash", "keyed_hash", metavar="HASH", help="Its keyed hash instead, 16 hexadecimal digits.")
@reports
def erase(*, session_id: str | None, keyed_hash: str | None, quiet: bool) -> Outcome:
    """Take a session out of everything that is kept: rows of living and dead workers, archive, bundles, reports, logs.

    Its id and hash go; the measurements of its requests stay, as nobody's. Doing it twice does no harm. With - as
    SESSION_ID it is read from stdin, and stands in no list of processes.

    In files only values go: those of session fields, and whole tokens of other values; never keys. An id that is
    shorter than 8 characters, or reads like a common word, is looked for by its hashes and in session fields alone;
    logs are searched for ids of 16 or more characters.

    Exit 0 when all that is ours was reached, 1 when something was not, and which is said. Spans that were sent to
    Jaeger or another OTLP target cannot be reached, nor backups, nor bundles that were handed on.

    \b
    Examples:
      inferdeck erase 3vTqXkz0S0e0l7o1yTnqQw
      printf %s 3vTqXkz0S0e0l7o1yTnqQw | inferdeck erase -
      inferdeck erase --hash 0123456789abcdef --json
    """  # noqa: D301  # click takes the backspace itself as its mark
    from inferdeck.erase import MOST_ID_BYTES, run_erase
    from inferdeck.settings import load_settings

    del quiet
    if session_id == "-":
        # one byte more than is allowed, so that a longer one is refused and not cut
        raw = sys.stdin.buffer.read(MOST_ID_BYTES + 1)
        session_id = raw.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return run_erase(load_settings(), session_id, keyed_hash)


@click.command(short_help="Give session hashes another key, from the next start on.")
@reports
def rekey(*, quiet: bool) -> Outcome:
    """Put another secret in place for the keyed hashes by which sessions are found in rows.

    The secret is the file session.key in the state folder (or INFERDECK_KEY_FILE), 0600, made at the first start.
    Workers take a new one up at their next start; restart the service when it must be soon. Rows that were hashed with
    earlier keys are still found and erased: their keys stay beside the rows, 16 at most, and in the archive as long as
    its segments.

    \b
    Examples:
      inferdeck rekey
      inferdeck rekey --json
    """  # noqa: D301  # click takes the backspace itself as its mark
    from inferdeck.rekey import run_rekey
    from inferdeck.settings import load_settings

    del quiet
    return run_rekey(load_settings())
