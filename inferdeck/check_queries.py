"""Whether the queries that the runbooks tell people to run speak about what exists, and are PromQL at all."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from inferdeck.checks import Check

__all__ = ["Query", "check_queries", "queries_of"]

# A metric of ours or of Kubernetes, or a recorded series, by how its name begins.
_METRIC = re.compile(
    r"\b(?:(?:model|runtime|telemetry|data|gpu|stream|kube|prometheus)_[a-z0-9_]+|[a-z]+:[a-z0-9_]+:[a-z0-9_]+)"
)
_CODE = re.compile(r"`([^`\n]+)`")

# Page's name, line, and the query.
Query = tuple[str, int, str]
Runner = Callable[[str, Sequence[str | Path]], "tuple[int, str]"]


def check_queries(root: Path, promtool: Runner | None = None) -> Iterator[Check]:
    """Yield one finding for each query of the runbooks that is wrong, or that none is.

    Args:
        root: The checkout.
        promtool: Runs promtool: name and arguments to exit status and output; by default the one on this machine.
    """
    from alerts.load import CatalogueError
    from alerts.names_check import unknown_in_query
    from alerts.promtool import ToolMissingError
    from alerts.recording import load_recordings, recorded_names

    try:
        recorded = recorded_names(load_recordings(root / "alerts" / "recording"))
    except CatalogueError:
        # Said by the check of the alerts, with file and line.
        recorded = set()
    queries = [query for page in sorted((root / "runbooks").glob("[A-Z]*.md")) for query in queries_of(page)]
    wrong = []
    for page, line, text in queries:
        found = unknown_in_query(text, recorded=recorded) if _is_promql(text) else _unknown_name(text, recorded)
        wrong += [f"{page}:{line}: {what}" for what in found]
    name = "runbooks: queries"
    if not wrong:
        yield Check(name, "ok", f"{len(queries)} queries and names of metrics, all of them known")
    for what in wrong:
        yield Check(name, "fail", what, "mend the page, or add the name to exporters/names.py")
    try:
        yield from _syntax([query for query in queries if _is_promql(query[2])], promtool or _promtool)
    except ToolMissingError as error:
        yield Check("runbooks: queries are PromQL", "absent", str(error), "run `python -m inferdeck.tool_install`")


def queries_of(page: Path) -> list[Query]:
    """Return the queries and names of metrics between backquotes in a page, each with the page's name and its line."""
    found = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        # Commands hold names of ours as well; whoever checks pages judges those.
        found += [
            (page.name, number, text)
            for text in _CODE.findall(line)
            if not text.startswith("inferdeck ") and (_METRIC.search(text) or re.match(r"up\b", text))
        ]
    return found


def _is_promql(text: str) -> bool:
    return bool(re.search(r"[({\[ ]", text))


def _unknown_name(text: str, recorded: Collection[str]) -> list[str]:
    """Return what is wrong with a name alone: it may be a metric, a family without its suffix, or a label."""
    from exporters.names import KUBERNETES, LABELS, METRICS, NOTIFYING

    base = re.sub(r"_(?:bucket|sum|count)$", "", text)
    known = text in recorded or text in LABELS or text == "up" or base in METRICS or text in {**KUBERNETES, **NOTIFYING}
    # `model_` alone speaks of all names that begin so.
    return [] if known or text.endswith("_") else [f"{text} is no metric of exporters/names.py"]


def _promtool(name: str, arguments: Sequence[str | Path]) -> tuple[int, str]:
    from alerts.promtool import run_tool

    done = run_tool(name, arguments)
    return done.rc, done.output


def _syntax(queries: Sequence[Query], promtool: Runner) -> Iterator[Check]:
    """Let the real parser read every query, as rules of one file: its message names the rule, which names the page."""
    from alerts.yaml_text import dump

    name = "runbooks: queries are PromQL"
    rules = [{"record": f"page:line_{index}:query", "expr": text} for index, (_, _, text) in enumerate(queries)]
    with tempfile.TemporaryDirectory(prefix="inferdeck-check-") as folder:
        path = Path(folder) / "pages.yml"
        path.write_text(dump({"groups": [{"name": "pages", "rules": rules}]}, "queries of the runbooks"), "utf-8")
        rc, output = promtool("promtool", ["check", "rules", path])
    if rc == 0:
        yield Check(name, "ok", f"{len(queries)} queries")
        return
    blamed = sorted({int(index) for index in re.findall(r"line_(\d+):query", output)})
    for index in blamed:
        page, line, text = queries[index]
        yield Check(name, "fail", f"{page}:{line}: `{text}` does not parse", "mend the page")
    if not blamed:
        yield Check(name, "fail", output.strip(), "mend the page")
