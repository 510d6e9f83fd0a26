"""The console: exit codes, one-line errors, JSON alone on stdout, quick help."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from inferdeck.bench.cli import bench
from inferdeck.check import _schemas, examine
from inferdeck.cli import LazyGroup
from inferdeck.cli import run as run_console
from inferdeck.errors import CannotRun, Interrupted
from inferdeck.schema import VERBS, schema_names, validate
from inferdeck.verbs.canary import canary
from inferdeck.verbs.grafana import grafana
from inferdeck.verbs.stream import stream
from inferdeck.verbs.triton import triton
from inferdeck.version import ROOT

VERBS_WITH_HELP = sorted(LazyGroup.VERBS)


def run(
    *arguments: str, cwd: Path | None = None, timeout_seconds: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the console as its users do, in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
    environment |= {"PYTHONPATH": str(ROOT), **variables}
    argv = [sys.executable, "-P", "-m", "inferdeck", *arguments]
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout_seconds, check=False
    )


@pytest.mark.parametrize("verb", VERBS_WITH_HELP)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    """Help ends well, and shows how the verb is called."""
    done = run(verb, "--help")

    assert 0 == done.returncode
    assert f"inferdeck {verb}" in done.stdout.split("Example", 1)[1]
    assert "\\b" not in done.stdout
    assert f"\n    inferdeck {verb}" in done.stdout or f"\n    inferdeck --json {verb}" in done.stdout


def test_the_list_of_verbs_is_shown() -> None:
    """`inferdeck --help` lists all verbs with a sentence each."""
    done = run("--help")

    assert 0 == done.returncode
    for verb in VERBS_WITH_HELP:
        assert re.search(rf"^  {verb} +\w", done.stdout, re.MULTILINE), verb


def test_help_does_not_import_heavy_packages() -> None:
    """A cold `trace --help` loads neither numpy nor rich, FastAPI or pydantic: that keeps it quick."""
    code = (
        "import sys; sys.argv = ['inferdeck', 'trace', '--help']\n"
        "from inferdeck.cli import run\nrun(['trace', '--help'])\n"
        "print(sorted({'numpy', 'rich', 'fastapi', 'pydantic', 'httpx', 'yaml'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert "[]" == done.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("nosuchverb",), "No such command"),
        (("trace", "--slow", "x"), "'x' is not a valid integer"),
        (("trace",), "ask for one of"),
        (("trace", "--slow", "1", "--errors"), "ask for one of"),
        (("trace", "--slow", "1", "--since", "tomorrow"), "is no duration"),
        (("drill",), "nothing to drill"),
        (("drill", "no_such_failure"), "no program causes no_such_failure"),
        (("drill", "--program", "/nonexistent.py"), "cannot read the program"),
        (("drill", "--expect", "service_down"), "--expect goes with --program"),
        (("drill", "service_down", "--clean", "3"), "exclude each other"),
        (("drill", "--rescore", "/nonexistent"), "no kept run"),
        (("triage", "--payload", "/nonexistent"), "cannot read /nonexistent"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_2(arguments: tuple[str, ...], word: str, tmp_path: Path) -> None:
    """Nothing on stdout, one line on stderr, no traceback."""
    done = run(*arguments, cwd=tmp_path, INFERDECK_RING_DIR=str(tmp_path))

    assert 2 == done.returncode
    assert "" == done.stdout
    assert 1 == len(done.stderr.splitlines()), done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["up", "status", "doctor"])
def test_a_state_folder_below_a_file_is_no_traceback(verb: str, tmp_path: Path) -> None:
    """Nothing runs there; `up` says which folder cannot be made and which variable moves it."""
    (tmp_path / "file").touch()

    done = run(verb, cwd=tmp_path, INFERDECK_STATE_DIR=str(tmp_path / "file" / "state"))

    assert "Traceback" not in done.stderr
    if verb == "up":
        assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
        assert "INFERDECK_STATE_DIR" in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """INFERDECK_DEBUG=1 is for those who mend the tool itself."""
    done = run("trace", cwd=tmp_path, INFERDECK_DEBUG="1")

    assert "Traceback" in done.stderr


def broken_group(error: BaseException) -> click.Group:
    """Return a console whose only verb raises."""

    @click.command()
    def verb() -> None:
        raise error

    return click.Group(commands={"verb": verb})


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (ZeroDivisionError("x\ny"), 2, "internal error, ZeroDivisionError: x y; INFERDECK_DEBUG=1"),
        (ModuleNotFoundError("No module named 'x'"), 2, "No module named 'x'; `inferdeck doctor`"),
        (CannotRun("a\nb", "do c"), 2, "inferdeck: a b; do c"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Interrupted(), 130, "interrupted"),
    ],
)
def test_whatever_a_verb_raises_is_one_line(
    error: BaseException, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors of our own, errors of ours, and signals all end in one line and their exit code."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert code == run_console(["verb"], broken_group(error))
    finally:
        signal.signal(signal.SIGTERM, before)

    out, err = capsys.readouterr()
    assert "" == out
    assert [True] == [word in line for line in err.splitlines() if line]


def test_a_wrong_setting_is_one_line(tmp_path: Path) -> None:
    """A setting that cannot be read names its variable."""
    done = run("status", cwd=tmp_path, INFERDECK_STACK_SERVICE_PORT="x")

    assert 2 == done.returncode
    assert "INFERDECK_STACK_SERVICE_PORT" in done.stderr
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("verb", "code"), [("status", 1), ("down", 0), ("doctor", None), ("check", None), ("status --json", 1)]
)
def test_json_is_alone_on_stdout_and_has_its_schema(verb: str, code: int | None, tmp_path: Path) -> None:
    """`--json` before or after the verb gives the same shape, with the stamp of every result."""
    name, *rest = verb.split()
    done = run(name, *rest, cwd=tmp_path) if rest else run("--json", name, cwd=tmp_path)

    result = json.loads(done.stdout)
    validate(name, result)
    assert ["version", "commit", "started", "took_s"] == list(result)[:4]
    assert code is None or code == done.returncode


def test_a_look_up_without_rows_has_the_shape_and_exit_1(tmp_path: Path) -> None:
    """An empty folder finds nothing, which is a miss and no error."""
    done = run("trace", "abcdefghijklmnop1234", "--json", cwd=tmp_path, INFERDECK_RING_DIR=str(tmp_path))

    assert 1 == done.returncode
    result = json.loads(done.stdout)
    validate("trace", result)
    assert [] == result["traces"]
    assert {"session_id": "abcdefghijklmnop1234"} == result["query"]


def test_every_result_has_a_schema_and_every_schema_a_verb() -> None:
    """`export`, `stream run` run until they are stopped; `bench`, `canary` and the like have a result for each verb."""
    assert set(VERBS) == set(LazyGroup.VERBS) - {"export", "bench", "canary", "grafana", "stream", "triton"}
    groups = {f"{group.name}_{verb}" for group in (bench, canary, grafana, stream, triton) for verb in group.commands}
    groups -= {"stream_run"}
    assert {*VERBS, *groups} == set(schema_names())
    for name in schema_names():
        with pytest.raises(Exception, match=r"required property|under any of the given schemas"):
            validate(name, {})


def test_check_looks_at_every_schema_there_is() -> None:
    """Also at those of `bench`."""
    (found,) = [one for one in examine() if one.name == "schemas"]

    assert ("ok", f"{len(schema_names())} results have a schema") == (found.state, found.detail)


def test_a_schema_that_is_broken_or_missing_fails() -> None:
    """Each is named with what is wrong; one that is no JSON is no traceback."""

    def load(name: str) -> dict[str, Any]:
        return json.loads("{") if name == "trace" else {"type": "objekt"} if name == "drill" else {"type": "object"}

    (found,) = _schemas(load, [name for name in schema_names() if name != "erase"])

    assert ("fail", "mend inferdeck/schemas") == (found.state, found.mend)
    told = found.detail.split("; ")
    assert ["erase: there is none", "drill: ", "trace: "] == [one[:7] if one[0] in "dt" else one for one in told]


def test_build_tells_what_it_wrote_in_its_schema(tmp_path: Path) -> None:
    """A rule that was edited by hand is written anew; a second time there is nothing to do."""
    packages = ("alerts", "dashboards", "exporters", "inferdeck", "probes", "runbooks", "service")
    for folder in (*packages, "tests/failures"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    rule = tmp_path / "alerts" / "rules" / "disk_full.yml"
    rule.write_text("edited by hand")

    first, second = (json.loads(run("build", "--json", cwd=tmp_path, PYTHONPATH=str(tmp_path)).stdout) for _ in "12")

    for result in (first, second):
        validate("build", result)
    assert (["alerts/rules/disk_full.yml"], []) == (first["changed"], second["changed"])
    assert (ROOT / "alerts" / "rules" / "disk_full.yml").read_text() == rule.read_text()


@pytest.mark.real
@pytest.mark.timeout(400)
def test_train_tells_what_it_made_in_its_schema(tmp_path: Path) -> None:
    """The model of the real reviews, and the figures that it was judged by."""
    done = run("train", "--out", str(tmp_path / "model"), "--json", timeout_seconds=360, cwd=tmp_path)

    result = json.loads(done.stdout)
    validate("train", result)
    assert (0, str(tmp_path / "model")) == (done.returncode, result["model_dir"])
    assert result["report"]["version"]
    assert (tmp_path / "model" / "model.onnx").is_file()
