"""All that is judged about the catalogue and its generated files, each with the mend; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from alerts.load import CatalogueError, load_catalogue
from alerts.model import Alert
from alerts.names_check import unknown_in_query, unknown_names
from alerts.panels import PANELS, read_panels
from alerts.places import place
from alerts.promtool import ToolMissingError, ToolResult, run_tool
from alerts.readme import related_files
from alerts.recording import Recording, load_recordings, recorded_names
from alerts.write import ROOT, differences, untracked
from alerts.yaml_text import YamlError, parse
from exporters.names import METRICS, OBJECTIVES_SECONDS, Metric

__all__ = ["Finding", "check"]

State = Literal["ok", "fail", "absent"]
Runner = Callable[[str, Sequence[str | Path]], ToolResult]


def _patiently(name: str, arguments: Sequence[str | Path]) -> ToolResult:
    # All cases of all alerts, days of them among these: a quarter of a minute, and much longer on a busy machine.
    return run_tool(name, arguments, timeout_seconds=300.0)


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: `absent` when what it needs is not on this machine."""

    name: str
    state: State
    detail: str
    mend: str = ""


def check(root: Path = ROOT, metrics: Mapping[str, Metric] = METRICS, run: Runner = _patiently) -> list[Finding]:
    """Return the outcome of every check of the alerts, in a fixed order.

    Args:
        root: The checkout.
        metrics: The metrics that rules may speak about, by full name.
        run: Runs a tool of Prometheus or Alertmanager.
    """
    try:
        alerts = load_catalogue(root / "alerts" / "catalogue")
        recordings = load_recordings(root / "alerts" / "recording")
    except CatalogueError as error:
        return [
            Finding("alerts: catalogue", "fail", line, "mend the file, then run `python -m alerts`")
            for line in str(error).splitlines()
        ]
    return [
        Finding("alerts: catalogue", "ok", f"{len(alerts)} alerts: {', '.join(alert.slug for alert in alerts)}"),
        *_names(alerts, metrics, recordings, root),
        *_panels(alerts, root),
        *_objectives(alerts, metrics, root),
        *_related(alerts, root),
        *_pages(alerts, root),
        *_generated(root),
        *_tools(root, run),
    ]


def _names(
    alerts: Sequence[Alert], metrics: Mapping[str, Metric], recordings: Sequence[Recording], root: Path
) -> Iterator[Finding]:
    name = "alerts: names in expressions"
    recorded = recorded_names(recordings)
    wrong = []
    for alert in alerts:
        for what in unknown_names(alert, metrics, recorded):
            told, _, said = what.rpartition(": ")
            key, word = ("tests" if told.startswith("test ") else "expr"), (said or what).split()[0]
            wrong.append(f"{place(_file(root, alert), key, word)}: {what}")
    for one in recordings:
        queries = dict.fromkeys(expr for rules in one.groups().values() for _, expr in rules)
        found = dict.fromkeys(what for expr in queries for what in unknown_in_query(expr, metrics, by_job=True))
        path = root / "alerts" / "recording" / f"{one.slug}.yaml"
        wrong += [f"recording/{place(path, 'rules', what.split()[0])}: {what}" for what in found]
    if not wrong:
        yield Finding(name, "ok", "every metric, label and value is in exporters/names.py")
    for what in wrong:
        yield Finding(name, "fail", what, "mend the spelling, or add it to exporters/names.py")


def _panels(alerts: Sequence[Alert], root: Path) -> Iterator[Finding]:
    name, path = "alerts: panel of each", root / PANELS
    if not path.is_file():
        detail = f"no {PANELS}: whether the panels are there cannot be told"
        yield Finding(name, "absent", detail, "run `inferdeck build`")
        return
    known = read_panels(root)
    wrong = [f"{place(_file(root, alert), 'runbook')}: has no panel" for alert in alerts if alert.panel is None]
    wrong += [
        f"{place(_file(root, alert), 'panel')}: {alert.panel} is not in {PANELS}{_close(alert.panel, known)}"
        for alert in alerts
        if alert.panel is not None and alert.panel not in known
    ]
    if not wrong:
        yield Finding(name, "ok", f"each is one of the {len(known)} of {PANELS}")
    for what in wrong:
        yield Finding(name, "fail", what, "name a panel of the dashboards in the alert's file")


def _close(panel: str, known: Iterable[str]) -> str:
    near = get_close_matches(panel, list(known), n=2)
    return f" (close: {', '.join(near)})" if near else ""


def _file(root: Path, alert: Alert) -> Path:
    return root / "alerts" / "catalogue" / f"{alert.slug}.yaml"


def _objectives(alerts: Sequence[Alert], metrics: Mapping[str, Metric], root: Path) -> Iterator[Finding]:
    name = "alerts: latency objectives"
    latency = next((alert for alert in alerts if alert.slug == "latency_objective"), None)
    if latency is None:
        yield Finding(name, "fail", "no alert latency_objective", "write alerts/catalogue/latency_objective.yaml")
        return
    wrong = []
    for bucket, seconds in OBJECTIVES_SECONDS.items():
        threshold = latency.thresholds.get(f"{bucket}_seconds")
        if threshold is None or threshold.value != seconds:
            said = "none" if threshold is None else f"{threshold.value:g} s"
            where = place(_file(root, latency), "thresholds", f"{bucket}_seconds")
            wrong.append(f"{where}: {bucket}: exporters/names.py says {seconds:g} s, the alert says {said}")
        # Between two bounds the P95 is interpolated, and the alert would then be right only by luck.
        if seconds not in metrics["model_latency_seconds"].buckets:
            wrong.append(f"{bucket}: {seconds:g} s is no bound of model_latency_seconds")
    if not wrong:
        yield Finding(name, "ok", "the thresholds are those of exporters/names.py, and bounds of the histogram")
    for what in wrong:
        yield Finding(name, "fail", what, "say the same number in both, and among the histogram's bounds")


def _related(alerts: Sequence[Alert], root: Path) -> Iterator[Finding]:
    # A page without its checklist helps nobody, and what nothing causes has never been seen to fire its alert.
    for what, key in (("runbook", "runbook"), ("failure test", "slug")):
        name = f"alerts: {what} of each"
        files = [(alert, path) for alert in alerts if (path := related_files(alert).get(what))]
        missing = [
            f"{place(_file(root, alert), key)}: no {path}" for alert, path in files if not (root / path).is_file()
        ]
        if not missing:
            yield Finding(name, "ok", "all are there")
        for one in missing:
            yield Finding(name, "fail", one, "write it, or mend the name; then run `python -m alerts`")


def _pages(alerts: Sequence[Alert], root: Path) -> Iterator[Finding]:
    name = "alerts: runbooks speak about the same alert"
    wrong = []
    for alert in alerts:
        path = root / related_files(alert)["runbook"]
        if not path.is_file():
            continue
        # A symptom's layer is open here; its page may guess one.
        keys = ("alert", "slug", "kind", "severity") + (() if alert.kind == "symptom" else ("layer",))
        head = _front_matter(path)
        wrong += [
            f"{place(_file(root, alert), key)}: {key} is {getattr(alert, key)!r} here and {head.get(key)!r} in "
            f"{path.relative_to(root)}"
            for key in keys
            if getattr(alert, key) != head.get(key)
        ]
    if not wrong:
        yield Finding(name, "ok", "front matter and catalogue agree")
    for what in wrong:
        yield Finding(name, "fail", what, "mend the one that is wrong")


def _front_matter(path: Path) -> Mapping[str, object]:
    parts = path.read_text(encoding="utf-8").split("---\n")
    try:
        head, _ = parse(parts[1] if len(parts) > 2 and not parts[0] else "")
    except YamlError:
        # Whoever judges the pages says what is wrong with it; here its keys are simply not known.
        return {}
    return head if isinstance(head, dict) else {}


def _generated(root: Path) -> Iterator[Finding]:
    name = "alerts: generated files"
    lost = untracked(root)
    if lost is None:
        yield Finding(name, "absent", "no git checkout: whether the files are tracked cannot be told")
    elif lost:
        yield Finding(name, "fail", f"not tracked by git: {', '.join(lost)}", "git add them")
    changed = [line[4:].strip() for line in differences(root).splitlines() if line.startswith("--- ")]
    if changed:
        yield Finding(name, "fail", f"not current: {', '.join(changed)}", "run `python -m alerts` and commit")
    elif not lost:
        yield Finding(name, "ok", "tracked and current" if lost is not None else "current")


def _tools(root: Path, run: Runner) -> Iterator[Finding]:
    folder = root / "alerts"
    rules, tests = sorted(folder.glob("rules/*.yml")), sorted(folder.glob("tests/*.test.yml"))
    jobs: tuple[tuple[str, str, Sequence[str | Path]], ...] = (
        ("alerts: promtool check rules", "promtool", ["check", "rules", *rules]),
        ("alerts: promtool test rules", "promtool", ["test", "rules", *tests]),
        ("alerts: amtool check-config", "amtool", ["check-config", folder / "alertmanager.yml"]),
    )
    for name, tool, arguments in jobs:
        try:
            done = run(tool, arguments)
        except ToolMissingError as error:
            yield Finding(name, "absent", str(error), "run `python -m inferdeck.tool_install`")
            continue
        if done.rc == 0:
            yield Finding(
                name, "ok", f"{len(tests if 'test' in arguments else rules)} files" if tool == "promtool" else "valid"
            )
        else:
            yield Finding(name, "fail", done.output.strip(), "mend the catalogue, then run `python -m alerts`")
