"""`doctor`, `check`, `build`, `train`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inferdeck.result import Outcome
from inferdeck.setting_help import ExporterCommand
from inferdeck.verbs.common import reports

__all__ = ["build", "check", "doctor", "export", "train"]


@click.command(short_help="Look whether this machine can run the stack.")
@click.option("--mapping", metavar="NAME|FILE", help="Instead: which metrics of this mapping a Prometheus has.")
@click.option("--prometheus", "url", metavar="URL", help="That Prometheus; the stack's by default.")
@click.option("--job", metavar="NAME", help="The service's scrape job, when several have the metrics.")
@click.option("--manifests", metavar="PATH", help="Instead: judge Kubernetes objects, rendered or a kustomization.")
@click.option("--nodes", metavar="FILE", help="The cluster's nodes, from `kubectl get nodes -o yaml`.")
@click.option("--warm-up", type=click.FloatRange(min=0), metavar="SECONDS", help="Of a start; else as rows tell.")
@click.option("--longest-request", type=click.FloatRange(min=0), metavar="SECONDS", help="Else as rows tell.")
@reports
def doctor(*, quiet: bool, **options: Any) -> Outcome:
    r"""Look whether this machine can run the stack, and how the running one is.

    Exit 1 when something is broken; each line that is not ok says how to mend it. With --manifests it judges what would
    be applied to a cluster: a finding bears the slug of the failure that it would become.

    \b
    Examples:
      inferdeck doctor
      inferdeck doctor --mapping triton --prometheus http://127.0.0.1:9090
      inferdeck doctor --manifests deploy/k8s/overlays/gpu --nodes nodes.yaml --warm-up 12
    """
    from inferdeck.checks import report
    from inferdeck.doctor import examine
    from inferdeck.settings import load_settings

    del quiet
    given = {name for name, value in options.items() if value is not None}
    for lead, followers in (("mapping", {"url", "job"}), ("manifests", {"nodes", "warm_up", "longest_request"})):
        if lead not in given and (alone := sorted(given & followers)):
            told = {"url": "--prometheus"}.get(alone[0], f"--{alone[0].replace('_', '-')}")
            raise click.UsageError(f"{told} goes with --{lead}")
    if {"mapping", "manifests"} <= given:
        raise click.UsageError("--mapping and --manifests exclude each other")
    settings = load_settings()
    if "mapping" in given:
        from inferdeck.doctor_mapping import examine_mapping

        return report(examine_mapping(settings, options["mapping"], options["url"], options["job"]))
    if "manifests" in given:
        from inferdeck.manifests.judge import examine_manifests

        return report(
            examine_manifests(
                Path(options["manifests"]),
                Path(options["nodes"]) if options["nodes"] else None,
                settings.ring_path,
                warm_up=options["warm_up"],
                longest_request=options["longest_request"],
            )
        )
    return report(examine(settings))


@click.command(short_help="Check alerts, runbooks, dashboards and schemas.")
@click.option("--prometheus", "url", metavar="URL", help="Also ask this Prometheus all that the dashboards ask.")
@click.option(
    "--minutes", type=click.FloatRange(1.0, 1440.0), default=15.0, show_default=True, help="How far back to ask."
)
@reports
def check(*, url: str | None, minutes: float, quiet: bool) -> Outcome:
    r"""Check alerts, dashboards, generated files, runbooks, mappings and schemas; starts and changes nothing.

    \b
    Example:
      inferdeck check
      inferdeck check --prometheus http://127.0.0.1:19090
    """
    from inferdeck.check import examine
    from inferdeck.check_panels import check_panels
    from inferdeck.checks import guarded, report

    del quiet
    asked = [] if url is None else guarded("dashboards: data", lambda: check_panels(url, minutes))
    return report([*examine(), *asked])


@click.command(short_help="Write the generated files anew.")
@reports
def build(*, quiet: bool) -> Outcome:
    r"""Write the generated files anew: rules, Alertmanager's template, promtool tests, tables.

    \b
    Example:
      inferdeck build
    """
    from inferdeck.build import build as write_generated

    del quiet
    payload = write_generated()
    changed = payload["changed"]
    return Outcome(payload, 0, lambda console: console.print("\n".join(changed) or "nothing changed", markup=False))


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the model; the settings' by default."
)
@click.option("--search", is_flag=True, help="First search for settings within production's limits, by Optuna.")
@click.option("--trials", type=click.IntRange(1, 10_000), help="Of the search, those of earlier runs included; 50.")
@click.option("--minutes", type=click.FloatRange(min=0.01, max=60), help="Most for the search; 60.")
@click.option(
    "--study",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Its database, gone on with if it is there; build/search/study.db.",
)
@reports
def train(
    *, out: Path | None, search: bool, trials: int | None, minutes: float | None, study: Path | None, quiet: bool
) -> Outcome:
    r"""Train the model from real reviews, in about half a minute.

    The old model stays until the new one has passed its floors on the test set. A search takes some seconds a trial;
    one that is ended goes on where it was.

    \b
    Examples:
      inferdeck train
      inferdeck train --out /tmp/model
      inferdeck train --search --trials 20 --minutes 10
    """
    from inferdeck.settings import load_settings
    from inferdeck.terminal import progress_bar
    from inferdeck.training import train_model

    if not search and (trials, minutes, study) != (None, None, None):
        raise click.UsageError("--trials, --minutes and --study go with --search")
    folder = (out or load_settings().model_path).expanduser().absolute()
    database = (study or Path("build/search/study.db")).expanduser().absolute() if search else None
    with progress_bar("training the model", quiet=quiet) as progress:
        payload = train_model(folder, progress, study=database, trials=trials or 50, seconds=60 * (minutes or 60.0))
    return Outcome(payload, 0, lambda console: console.print(f"model in {folder}", markup=False))


@click.command(cls=ExporterCommand, short_help="Run the exporter: rows in, metrics and spans out.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; the settings' by default.")
@click.option("--host", help="Address to bind; 127.0.0.1 by default.")
def export(port: int | None, host: str | None) -> int:
    r"""Run the exporter in the foreground: rows in, metrics and spans out.

    Settings are variables, listed below; without INFERDECK_RING_DIR the only service that records without a
    stack is followed.

    \b
    Examples:
      inferdeck export
      INFERDECK_RING_DIR=/rows inferdeck export --port 9464
    """
    import signal

    from exporters.app import main

    # the server sets handlers of its own; until then TERM shall simply end it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return main({key: value for key, value in {"port": port, "host": host}.items() if value is not None})
