"""`trace`, `triage`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["trace", "triage"]


@click.command()
@click.argument("session_id", required=False)
@click.option("--trace", "trace_id", metavar="ID", help="A trace id, 32 hexadecimal digits.")
@click.option("--slow", type=click.IntRange(1, 200), metavar="N", help="The N slowest requests.")
@click.option("--errors", is_flag=True, help="Requests that went wrong.")
@click.option("--since", help="How far back --slow and --errors look: 90s, 15m (the default), 2h; or when an id was.")
@click.option(
    "--endpoints", metavar="URLS", help="Ask these exporters: http://a:9464,http://b:9464 or dns://name:9464."
)
@click.option("--jaeger", "url", metavar="URL", help="Ask this Jaeger too; the stack's by default, none for none.")
@click.option("--promote", is_flag=True, help="Send what was found in the rows to Jaeger, or to the set OTLP target.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the waterfall as a page.")
@reports
def trace(
    *,
    session_id: str | None,
    trace_id: str | None,
    slow: int | None,
    errors: bool,
    since: str | None,
    endpoints: str | None,
    url: str | None,
    promote: bool,
    html: Path | None,
    quiet: bool,
) -> Outcome:
    r"""Show a request as a waterfall that names the slow stage and why.

    Reads the flight recorder's rows and the exporter's archive, then asks Jaeger, where the stack has one or
    INFERDECK_JAEGER_URL names one, and lays both together; the service need not run. With --endpoints it asks
    exporters elsewhere; their token is taken from INFERDECK_EXPORTER_API_TOKEN. They hand out spans and no causes: what
    is slow is told from the other requests, so that why is named on the machine that holds the rows. Exit 1 when
    nothing is found.

    \b
    Examples:
      inferdeck trace 3vTqXkz0S0e0l7o1yTnqQw
      inferdeck trace --trace 4bf92f3577b34da6a3ce929d0e0e4736
      inferdeck trace --slow 5 --since 15m
      inferdeck trace --errors --json
      inferdeck trace 3vTqXkz0S0e0l7o1yTnqQw --promote --html session.html
      inferdeck trace 3vTqXkz0S0e0l7o1yTnqQw --since 3h --endpoints dns://exporter.example:9464
    """
    import os

    from inferdeck.jaeger_place import jaeger_url
    from inferdeck.look_up import Query, look_up, look_up_elsewhere, parse_duration, ring_folder
    from inferdeck.promote import send_found
    from inferdeck.settings import load_settings

    del quiet
    back = parse_duration(since) if since is not None else None
    query = Query(session_id, trace_id, slow, errors, 900.0 if back is None else back, back)
    if endpoints is not None:
        if promote or url is not None:
            raise click.UsageError(
                "--endpoints asks other machines: --promote and --jaeger belong to the one of the rows"
            )
        payload = look_up_elsewhere(query, endpoints, os.environ.get("INFERDECK_EXPORTER_API_TOKEN", ""))
    else:
        settings = load_settings()
        asked = jaeger_url(settings.state_path, url)
        payload = look_up(query, ring_folder(settings), settings.state_path / "archive", jaeger=asked)
        if promote and payload["traces"]:
            payload["promoted"] = send_found(payload["traces"], settings.state_path)
    if html is not None:
        from inferdeck.trace_page import write_page

        write_page(html, payload)
        payload["html"] = str(html)

    def show(console: Console) -> None:
        # Only here: drawing loads a library of its own, and --json draws nothing.
        from inferdeck.waterfall import show_traces

        show_traces(console, payload)

    return Outcome(payload, 0 if payload["traces"] else 1, show)


@click.command(short_help="Name the layer and the cause of what is wrong.")
@click.option("--alert", metavar="NAME", help="The alert that fired, e.g. EventLoopBlocked.")
@click.option(
    "--payload", type=click.Path(path_type=Path), help="A notification of Alertmanager or Grafana; - is stdin."
)
@click.option("--at", metavar="TIME", help="Time to look at: ISO 8601 or Unix seconds; now by default.")
@click.option("--bundle", type=click.Path(path_type=Path), metavar="FILE", help="Look at a file of `inferdeck bundle`.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as a page, with plots.")
@click.option("--mapping", metavar="NAME|FILE", help="For a service without our rows: how its metrics map to ours.")
@click.option("--prometheus", "url", metavar="URL", help="Prometheus to ask; the stack's by default.")
@click.option("--job", metavar="NAME", help="With --mapping: the service's scrape job, when several have the metrics.")
@reports
def triage(
    *,
    alert: str | None,
    payload: Path | None,
    at: str | None,
    bundle: Path | None,
    html: Path | None,
    mapping: str | None,
    url: str | None,
    job: str | None,
    quiet: bool,
) -> Outcome:
    r"""Name the layer and the cause of what is wrong, with the evidence; or say that nothing can be named.

    Without options it asks what is wrong right now. Works with Prometheus or the rows missing, and says what that
    costs. A service that is not ours is judged by its own metrics with --mapping; what they cannot tell is said.
    Exit 0 when a cause is named, 1 when triage abstains.

    \b
    Examples:
      inferdeck triage
      inferdeck triage --alert EventLoopBlocked
      inferdeck triage --payload notification.json --json
      inferdeck triage --at 2026-01-01T03:00:00Z --html report.html
      inferdeck triage --bundle incident.tar.gz
      inferdeck triage --mapping fastapi-instrumentator --prometheus http://127.0.0.1:9090
    """
    from inferdeck.settings import load_settings
    from inferdeck.triage_command import run_triage, triage_bundle

    del quiet
    if bundle is not None:
        if alert or payload or at or html or mapping or url or job:
            raise click.UsageError("--bundle holds its own alert, time and sources")
        return triage_bundle(bundle)
    return run_triage(
        load_settings(), alert=alert, payload=payload, at=at, mapping=mapping, url=url, job=job, page=html
    )
