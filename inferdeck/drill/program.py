'''Programs that cause a failure: what a file must hold, and how it is read.

A program is a Python file. In the checkout it is `tests/failures/<slug>.py`; from anywhere else it is given by
`--program FILE --expect SLUG`.

    """One sentence: what really goes wrong."""
    SLUG = "event_loop_blocked"        # what triage shall name; `--expect` wins
    WORKERS = 2                        # optional: worker processes of the service; 1 by default
    BACKEND = "triton"                 # optional: the model behind a real Triton; in the service's process by default
    SETTINGS = {"batch_size": "16"}    # optional: settings of the service, as INFERDECK_SERVICE_<NAME> would hold them
    SERVICE_ENV = {"LD_LIBRARY_PATH": "{folder}/lib"}  # optional: further variables of the service, by their full names
    EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/lib"}  # optional: those of the exporter

    def wrap(app, armed):              # runs inside the service process
        async def wrapped(scope, receive, send):
            if scope["type"] == "http" and armed():
                ...                    # the failure itself
            await app(scope, receive, send)
        return wrapped

    def cause(stack):                  # runs in the drill's process: a context manager
        ...                            # entering causes the failure, leaving ends it

`wrap` gets the ASGI app and returns one; it sits inside the recorder, so its work is seen as the app's own. `armed()`
tells whether the failure is on; it costs a look at a flag file every 50 ms at most. `cause` gets an
`inferdeck.drill.handle.StackHandle`: URLs, pids, folders, `kill_service()`, `restart_service()`, `set_rate()` and so
on. A file may hold either or both: then the wrap is armed before the cause is entered, so that a service that is
started again by the cause finds it on. A file that holds neither is run as a script while the failure lasts (SIGTERM
ends it), with INFERDECK_SERVICE_URL, INFERDECK_SERVICE_PID and INFERDECK_STATE_DIR in its environment. `twin_wrap` and
`twin_cause` are the healthy twin: what looks alike and must be named by nobody. `cannot_cause()` returns why this
machine is none on which it can be caused, and then the run is left out and said; or None. The programs of
`tests/failures/silence` look like trouble and are none; AT_START = True asks for a stack that has just started.
SIMULATED = True says that part of the cause is played and not real; such runs are scored apart. COLLECTOR = True asks
for a stack with Jaeger in it, STREAM = True for one with a stream of user queries. In SERVICE_ENV and EXPORTER_ENV
`{folder}` stands for the run's state folder.
DRAWN = {"PAUSE_SECONDS": (0.1, 0.4)}
names numbers at the file's top that the seed of each run draws anew (inferdeck/drill/drawing.py).
`prepare(folder)` is called with it before the stack starts, for what these variables name. `usual(stack)` is a context
manager around all of a run, the healthy time before the cause included: what belongs to this machine, well or not.
'''

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from inferdeck.drill.drawing import Ranges, draw, read_ranges, with_numbers
from inferdeck.errors import CannotRun
from inferdeck.version import ROOT, in_checkout

__all__ = ["Armed", "Program", "failures_folder", "known_programs", "load_module", "read_program"]

HOOKS = ("wrap", "cause", "twin_wrap", "twin_cause", "cannot_cause", "prepare", "usual")
# a request must not pay for a file system call: the flag is looked at this often at most
LOOK_SECONDS = 0.05
# each takes 17 MiB of rows and a model; a drill's machine may have two cores
MOST_WORKERS = 8


@dataclass(frozen=True)
class Program:
    """A program as read from its file, without having run it.

    Attributes:
        path: Absolute path of the file.
        slug: What triage shall name.
        sentence: First line of its docstring.
        hooks: Those of HOOKS that it defines.
        workers: Worker processes that the service shall have.
        healthy: Whether it is no failure: nothing may be alerted or named.
        at_start: Whether it needs a stack that has just started.
        simulated: Whether part of the cause is played, so that its runs are scored apart.
        collector: Whether the stack shall have a Jaeger that takes the exporter's spans.
        stream: Whether the stack shall have a stream of user queries, read from files.
        backend: What answers for the model: onnx or triton.
        settings: Variables for the service's environment; "{folder}" in a value stands for the run's state folder.
        exporter_env: The same for the exporter's.
        ranges: Numbers that each run draws anew, with their least and most.
    """

    path: Path
    slug: str
    sentence: str
    hooks: frozenset[str]
    workers: int = 1
    healthy: bool = False
    at_start: bool = False
    simulated: bool = False
    collector: bool = False
    stream: bool = False
    backend: str = "onnx"
    settings: Mapping[str, str] = field(default_factory=dict)
    exporter_env: Mapping[str, str] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)

    @property
    def is_script(self) -> bool:
        """Return whether the file defines no hook and is run as it is."""
        return not self.hooks & {"wrap", "cause"}


def failures_folder(root: Path = ROOT) -> Path:
    """Return the folder of the checkout's programs.

    Raises:
        CannotRun: If this is no checkout: tests are never shipped.
    """
    if not in_checkout(root):
        raise CannotRun(
            "the programs of tests/failures are not shipped in the wheel",
            "run from a checkout, or give a program with --program FILE --expect SLUG",
        )
    return root / "tests" / "failures"


def known_programs(folder: Path) -> list[str]:
    """Return the slugs that have a program in *folder*."""
    # test_*.py beside them are tests of the programs
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith(("test_", "_", "conftest")))


def read_program(path: Path, expect: str | None = None) -> Program:
    """Read a program's file without running it.

    Args:
        path: The file.
        expect: The slug that triage shall name; the file's SLUG by default.

    Raises:
        CannotRun: If it cannot be read, or nothing says what it causes.
    """
    path = path.expanduser().absolute()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"cannot read the program {path}: {error}", "give the path of a readable file") from error
    if path.suffix != ".py":
        return _other_script(path, expect)
    try:
        # parsed and not imported: a script has its effect by being imported
        tree = ast.parse(text, filename=str(path))
    except SyntaxError as error:
        raise CannotRun(f"{path.name}, line {error.lineno}: {error.msg}", "mend the program") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    defined |= {target.id for node in tree.body if isinstance(node, ast.Assign) for target in _names(node)}
    # hooks that several programs share stand in a helper beside them
    defined |= {one.asname or one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
    slug = expect or _constant(tree, "SLUG")
    if not isinstance(slug, str) or not slug:
        raise CannotRun(f"{path.name} does not say what it causes", "add SLUG = '...' or give --expect SLUG")
    sentence = (ast.get_docstring(tree) or "").partition("\n")[0]
    return Program(
        path,
        slug,
        sentence,
        frozenset(defined & set(HOOKS)),
        _workers(tree, path),
        at_start=_constant(tree, "AT_START") is True,
        simulated=_constant(tree, "SIMULATED") is True,
        collector=_constant(tree, "COLLECTOR") is True,
        stream=_constant(tree, "STREAM") is True,
        backend=_backend(tree, path),
        settings=_settings(tree, path) | _texts(tree, path, "SERVICE_ENV"),
        exporter_env=_texts(tree, path, "EXPORTER_ENV"),
        ranges=read_ranges(tree, path.name),
    )


def _names(node: ast.Assign) -> list[ast.Name]:
    return [target for target in node.targets if isinstance(target, ast.Name)]


def _constant(tree: ast.Module, name: str) -> object:
    """Return what a name is set to at the top of a program; None when that is no constant."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(target.id == name for target in _names(node)):
            return node.value.value if isinstance(node.value, ast.Constant) else None
    return None


def _workers(tree: ast.Module, path: Path) -> int:
    if not any(target.id == "WORKERS" for node in tree.body if isinstance(node, ast.Assign) for target in _names(node)):
        return 1
    number = _constant(tree, "WORKERS")
    if type(number) is not int or not 1 <= number <= MOST_WORKERS:
        raise CannotRun(f"WORKERS of {path.name} is no number from 1 to {MOST_WORKERS}", "write WORKERS = 2")
    return number


def _backend(tree: ast.Module, path: Path) -> str:
    told = _constant(tree, "BACKEND")
    if told not in {None, "onnx", "triton"}:
        raise CannotRun(f"BACKEND of {path.name} is neither onnx nor triton", 'write BACKEND = "triton"')
    return str(told or "onnx")


def _settings(tree: ast.Module, path: Path) -> dict[str, str]:
    return {f"INFERDECK_SERVICE_{name.upper()}": value for name, value in _texts(tree, path, "SETTINGS").items()}


def _texts(tree: ast.Module, path: Path, constant: str) -> dict[str, str]:
    """Return the texts by name that a constant of the program holds; none without it.

    Raises:
        CannotRun: If it holds anything else.
    """
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(target.id == constant for target in _names(node)):
            with suppress(ValueError):
                told = ast.literal_eval(node.value)
                if isinstance(told, dict) and all(type(word) is str for pair in told.items() for word in pair):
                    return told
            raise CannotRun(
                f"{constant} of {path.name} are no texts by name", f'write {constant} = {{"batch_size": "16"}}'
            )
    return {}


def _other_script(path: Path, expect: str | None) -> Program:
    import os

    if not os.access(path, os.X_OK):
        raise CannotRun(f"{path.name} is neither Python nor executable", "chmod +x it, or write it in Python")
    if not expect:
        raise CannotRun(f"{path.name} does not say what it causes", "give --expect SLUG")
    return Program(path, expect, "", frozenset())


def load_module(path: Path, shown_name: str = "program.py", seed: int | None = None) -> ModuleType:
    """Run a program's file as a module and return it.

    Args:
        path: The file; its folder is appended to the import path, so that it may have helpers beside it.
        shown_name: What stack traces call the file: the real name would tell the answer to whoever reads them.
        seed: Draws the numbers that the program lets vary; without one they are as they are written.

    Raises:
        CannotRun: If it raises while being loaded.
    """
    module = ModuleType("drill_program")
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        # appended: a helper of the program must not win over our own packages
        sys.path.append(str(path.parent))
    # dataclasses look their module up by name
    sys.modules[module.__name__] = module
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=shown_name)
        if seed is not None:
            tree = with_numbers(tree, draw(read_ranges(tree, path.name), seed, path.stem))
        exec(compile(tree, shown_name, "exec"), module.__dict__)  # noqa: S102  # running it is the purpose
    except Exception as error:
        raise CannotRun(f"the program {path.name} fails while being loaded: {type(error).__name__}: {error}") from error
    return module


class Armed:
    """Tells whether the failure is on: whether a flag file exists, looked at every 50 ms at most."""

    def __init__(self, flag: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the flag's path.

        Args:
            flag: The file whose existence arms the program.
            clock: Monotonic seconds.
        """
        self._flag = flag
        self._clock = clock
        self._looked = -LOOK_SECONDS
        self._on = False

    def __call__(self) -> bool:
        """Return whether the failure is on, at most 50 ms late."""
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked, self._on = now, self._flag.exists()
        return self._on
