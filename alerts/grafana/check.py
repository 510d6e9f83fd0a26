"""All that can be judged about Grafana's alerting files without a Grafana: many mistakes would stop it at its start."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alerts.check import Finding
from alerts.grafana.convert import alertmanager_of, expanded
from alerts.grafana.model import EXPRESSION, FormatError, variables
from alerts.grafana.reading import Provisioned, read_provisioned, unknown_keys
from alerts.grafana.variables import DEFAULTS, MAY_BE_EMPTY
from alerts.panels import read_panels
from alerts.promtool import ToolMissingError, ToolResult, run_tool
from alerts.yaml_text import YamlError, dump, parse

__all__ = ["check_grafana", "datasource_uids", "default_environment"]

Runner = Callable[[str, Sequence[str | Path]], ToolResult]
COMPOSE: Final = "docker-compose.observability.yml"
DATASOURCES: Final = "dashboards/provisioning/datasources"
# Channels that a user may choose for the three variables.
_CHOICES: Final = {
    f"INFERDECK_NOTIFY_{channel}": ("triage", "email", "slack", "dingtalk", "feishu")
    for channel in ("PAGE", "TICKET", "DATA_QUALITY")
}
_USED_TEMPLATE: Final = re.compile(r'(?:template|tmpl\.Exec) "([^"]+)"')
_DEFINED: Final = re.compile(r'\{\{-? ?define "([^"]+)"')
_MEND: Final = "mend alerts/grafana, then run `python -m alerts`"


def check_grafana(root: Path, run: Runner = run_tool) -> list[Finding]:
    """Return the outcome of every check, in a fixed order.

    Args:
        root: The checkout.
        run: Runs a tool of Prometheus or Alertmanager.
    """
    try:
        files = read_provisioned(root)
    except YamlError as error:
        return [Finding("grafana: alerting files", "fail", str(error), "run `python -m alerts`")]
    if not files.rules():
        return [Finding("grafana: alerting files", "fail", "no rule", "run `python -m alerts`")]
    looks: Mapping[str, Callable[[], Iterator[str]]] = {
        "known keys": lambda: iter(unknown_keys(files)),
        "uids and titles": lambda: _identities(files),
        "variables": lambda: _variables(files),
        "receivers and mute timings": lambda: _routing(files),
        "templates": lambda: _templates(files),
        "panels": lambda: _panels(files, root),
    }
    return [
        *(_finding(f"grafana: {name}", list(look())) for name, look in looks.items()),
        _data_sources(files, root),
        _compose(root),
        *_tools(files, run),
    ]


def default_environment() -> dict[str, str]:
    """Return the variables with their defaults, as `grafana.env` sets them."""
    return {name: default for name, (default, _) in DEFAULTS.items()}


def _finding(name: str, wrong: Sequence[str]) -> Finding:
    return Finding(name, "fail", "; ".join(wrong), _MEND) if wrong else Finding(name, "ok", "all well")


def _identities(files: Provisioned) -> Iterator[str]:
    receivers = [receiver for point in files.entries("contactPoints") for receiver in point["receivers"]]
    uids = [str(one["uid"]) for one in (*files.rules(), *receivers)]
    yield from (f"uid {uid} is there {count} times" for uid, count in Counter(uids).items() if count > 1)
    yield from (f"uid {uid} is no uid of 40 letters, digits, - and _" for uid in uids if not _is_uid(uid))
    titles = Counter((group["folder"], rule["title"]) for group in files.entries("groups") for rule in group["rules"])
    yield from (f"{count} rules are called {title}" for (_, title), count in titles.items() if count > 1)
    names = Counter(
        str(entry["name"]) for kind in ("contactPoints", "muteTimes", "templates") for entry in files.entries(kind)
    )
    yield from (f"the name {name} is there {count} times" for name, count in names.items() if count > 1)
    gone = {entry["uid"] for entry in files.entries("deleteRules")} & set(uids)
    yield from (f"rule {uid} is both written and deleted" for uid in sorted(gone))
    if len(files.entries("policies")) != 1:
        yield f"{len(files.entries('policies'))} policy trees: Grafana keeps the last one only"


def _is_uid(uid: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_-]{1,40}", uid) is not None


def _variables(files: Provisioned) -> Iterator[str]:
    """Yield what Grafana's expansion would break: unknown variables, lone `$`, addresses that end up empty."""
    for where, text in _expanded_texts(files):
        try:
            yield from (f"{where}: {name} has no default" for name in variables(text) if name not in DEFAULTS)
        except FormatError as error:
            yield f"{where}: {error}"
    empty = {name for name, (default, _) in DEFAULTS.items() if not default} - MAY_BE_EMPTY
    yield from (f"{name} is empty by default: Grafana would not start" for name in sorted(empty))
    yield from (
        f"rule {rule['title']}, annotation {name}: ${{ is expanded by some versions only"
        for rule in files.rules()
        for name, text in rule["annotations"].items()
        if "${" in text
    )


def _expanded_texts(files: Provisioned) -> Iterator[tuple[str, str]]:
    for point in files.entries("contactPoints"):
        for receiver in point["receivers"]:
            yield from ((f"contact point {point['name']}", text) for text in _texts(receiver["settings"]))
    yield from (("policies", text) for text in _texts(files.entries("policies")))
    for rule in files.rules():
        own = [rule["title"], rule["uid"], rule["condition"], rule["for"], *rule["labels"].values()]
        yield from ((f"rule {rule['title']}", text) for text in own)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _routing(files: Provisioned) -> Iterator[str]:
    points = {entry["name"] for entry in files.entries("contactPoints")}
    timings = {entry["name"] for entry in files.entries("muteTimes")}
    for name, choices in _CHOICES.items():
        yield from (f"{name} may be {choice}, which is no contact point" for choice in choices if choice not in points)
    for route in _routes(expanded(files.entries("policies"), default_environment())):
        if route["receiver"] not in points:
            yield f"a policy names the receiver {route['receiver']!r}, which is none"
        named = [*route.get("mute_time_intervals", []), *route.get("active_time_intervals", [])]
        yield from (f"a policy names the mute timing {name!r}, which is none" for name in named if name not in timings)


def _routes(routes: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for route in routes:
        yield route
        yield from _routes(route.get("routes", []))


def _templates(files: Provisioned) -> Iterator[str]:
    texts = [entry["template"] for entry in files.entries("templates")]
    defined = Counter(name for text in texts for name in _DEFINED.findall(text))
    yield from (f"{name} is defined {count} times" for name, count in defined.items() if count > 1)
    settings = _texts([point["receivers"] for point in files.entries("contactPoints")])
    used = {name for text in (*texts, *settings) for name in _USED_TEMPLATE.findall(text)}
    yield from (f"{name} is used and not defined" for name in sorted(used - defined.keys()))


def _panels(files: Provisioned, root: Path) -> Iterator[str]:
    known = {(panel["uid"], panel["id"]) for panel in read_panels(root).values()}
    for rule in files.rules():
        link = (rule.get("dashboardUid"), rule.get("panelId"))
        if link != (None, None) and link not in known:
            yield f"rule {rule['title']} leads to panel {link[1]} of {link[0]}, which is not in dashboards/panels.json"


def datasource_uids(root: Path) -> set[str] | None:
    """Return the uids of the provisioned data sources, or None where none are provisioned.

    Args:
        root: The checkout.
    """
    paths = sorted((root / DATASOURCES).glob("*.y*ml"))
    if not paths:
        return None
    documents = [parse(path.read_text(encoding="utf-8"))[0] for path in paths]
    return {source["uid"] for document in documents for source in document.get("datasources", [])}


def _data_sources(files: Provisioned, root: Path) -> Finding:
    name = "grafana: data sources"
    there = datasource_uids(root)
    used = {query["datasourceUid"] for rule in files.rules() for query in rule["data"]} - {EXPRESSION}
    if there is None:
        return Finding(name, "absent", f"none are provisioned in {DATASOURCES}")
    return _finding(name, [f"{uid} is asked and not provisioned" for uid in sorted(used - there)])


def _compose(root: Path) -> Finding:
    """Return whether the container of Grafana is given every variable, none of them empty."""
    name = "grafana: variables in the compose file"
    path = root / COMPOSE
    if not path.is_file():
        return Finding(name, "absent", f"no {COMPOSE}")
    document, _ = parse(path.read_text(encoding="utf-8"))
    given = document.get("services", {}).get("grafana", {}).get("environment", {})
    missing = [f"{variable} is not given to Grafana's container" for variable in DEFAULTS if variable not in given]
    # "${NAME:-default}": what is there when a user has set nothing.
    wrong = [
        f"{variable} has another default in {COMPOSE} than in alerts/grafana/variables.py: {given[variable]!r}"
        for variable, (default, _) in DEFAULTS.items()
        if default and variable in given and given[variable] != f"${{{variable}:-{default}}}"
    ]
    return _finding(name, missing + wrong)


def _tools(files: Provisioned, run: Runner) -> Iterator[Finding]:
    """Yield what the real tools say: amtool of the policies, promtool of each question."""
    policies = expanded(files.entries("policies")[0], default_environment())
    alertmanager = alertmanager_of(policies, files.entries("muteTimes"), files.entries("contactPoints"))
    questions = {
        "groups": [
            {
                "name": "grafana",
                "rules": [
                    {"record": f"grafana:{rule['uid'].replace('-', '_')}", "expr": rule["data"][0]["model"]["expr"]}
                    for rule in files.rules()
                ],
            }
        ]
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, tool, command, document in (
            ("grafana: policies by amtool", "amtool", ("check-config",), alertmanager),
            ("grafana: questions by promtool", "promtool", ("check", "rules"), questions),
        ):
            path = Path(folder) / f"{tool}.yml"
            path.write_text(dump(document, "converted from Grafana's files"), encoding="utf-8")
            try:
                done = run(tool, [*command, path])
            except ToolMissingError as error:
                yield Finding(name, "absent", str(error), "run `python -m inferdeck.tool_install`")
                continue
            yield _finding(name, [] if done.rc == 0 else [done.output.strip()])
