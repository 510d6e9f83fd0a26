"""The scene of one run: a fresh stack on free ports, its traffic, and everything ended and cleaned up afterwards."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferdeck.drill.handle import StackHandle
from inferdeck.drill.program import Program, load_module
from inferdeck.drill.watch import AlertWatch
from inferdeck.drill.wrapping import FLAG_VARIABLE, HOOK_VARIABLE, PROGRAM_VARIABLE, SEED_VARIABLE
from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings, stack_ring_dir
from inferdeck.stack.embedded import EmbeddedStack
from inferdeck.stack.plan import StackPlan, plan_on_free_ports
from inferdeck.stack.process import ProcessRecord
from inferdeck.stack.shield import uninterrupted
from inferdeck.stack.state import make_private_folder, only_stack
from inferdeck.traffic import TrafficPlan
from inferdeck.traffic_process import TrafficProcess

__all__ = ["Scene", "fresh_plan", "open_scene", "planned", "sweep_leftovers", "with_program"]

Say = Callable[[str], None]
# what a program writes for the folder that only the run knows
FOLDER_WORD = "{folder}"


@dataclass
class Scene:
    """A running stack with traffic.

    Attributes:
        flag: File whose existence arms a program's wrap.
        reviews: Shares of real reviews that pass the contract, before and after cleaning.
    """

    plan: StackPlan
    stack: EmbeddedStack
    traffic: TrafficProcess
    watch: AlertWatch
    flag: Path
    base_rate: float
    reviews: dict[str, Any]

    @property
    def handle(self) -> StackHandle:
        """Return the scene as a program sees it."""
        return StackHandle(self.stack, self.traffic, self.base_rate)

    @property
    def records(self) -> list[ProcessRecord]:
        """Return the processes of the stack and of its traffic, as written down when they were started last."""
        return [self.traffic.record, *(part.record for part in self.stack.state.parts if part.record)]


def flag_path(state_dir: Path) -> Path:
    """Return the flag's path."""
    return state_dir / "run" / "armed"


def fresh_plan(
    settings: StackSettings,
    tools: dict[str, str],
    state_dir: Path,
    workers: int = 1,
    backend: str = "onnx",
    *,
    collector: bool = False,
    stream: bool = False,
    service_env: Mapping[str, str] | None = None,
    exporter_env: Mapping[str, str] | None = None,
) -> StackPlan:
    """Return a plan for a run: free ports, a fresh folder of rows beside those of other stacks.

    Args:
        settings: Where the model is.
        tools: Programs found.
        state_dir: Fresh state folder of the run.
        workers: Worker processes of the service.
        backend: What answers for the model: onnx or triton.
        collector: Whether Jaeger, where it is there, takes the exporter's spans.
        stream: Whether there is a stream of user queries.
        service_env: Settings of the service, as variables; "{folder}" stands for the state folder.
        exporter_env: The same for the exporter.

    Raises:
        CannotRun: If Prometheus or Alertmanager is missing: without them no alert can fire. Or if Triton is asked for
            and cannot be had.
    """
    settings = settings.model_copy(update={"backend": backend, "stream": stream})
    if backend == "triton":
        from inferdeck.stack.triton import install_triton

        tools = tools | {"triton": str(install_triton(lambda _line: None))}
    for name in ("prometheus", "prometheus-alertmanager"):
        if name not in tools:
            raise CannotRun(
                f"{name} was not found, and without it no alert can fire", "run `python -m inferdeck.tool_install`"
            )
    folder = stack_ring_dir(state_dir).parent
    sweep_leftovers(folder)
    # beside the rows of other stacks, in the folder that is private already
    rows = folder / f"run-{secrets.token_hex(4)}"
    plan = plan_on_free_ports(settings, tools, state_dir, rows, jaeger=collector)
    service, exporter = (
        {name: value.replace(FOLDER_WORD, str(state_dir)) for name, value in (told or {}).items()}
        for told in (service_env, exporter_env)
    )
    return replace(plan, service_workers=workers, service_env=service, exporter_env=exporter)


def planned(
    program: Program,
    settings: StackSettings,
    tools: dict[str, str],
    state_dir: Path,
    hook: str,
    *,
    seed: int | None = None,
) -> StackPlan:
    """Return the plan that a program asks for, once it has prepared what its variables name.

    Args:
        program: The program.
        settings: Where the model is.
        tools: Programs found.
        state_dir: Fresh state folder of the run.
        hook: wrap or twin_wrap: put around the service's app, where the program has it.
        seed: Draws the numbers that the program lets vary.

    Raises:
        CannotRun: As `fresh_plan` does, or if the program cannot prepare.
    """
    plan = fresh_plan(
        settings,
        tools,
        state_dir,
        program.workers,
        program.backend,
        collector=program.collector,
        stream=program.stream,
        service_env=program.settings,
        exporter_env=program.exporter_env,
    )
    if "prepare" in program.hooks:
        make_private_folder(state_dir)
        try:
            load_module(program.path, seed=seed).prepare(state_dir)
        except Exception as error:
            raise CannotRun(f"{program.path.name} cannot prepare: {type(error).__name__}: {error}") from error
    return with_program(plan, program, hook, seed) if hook in program.hooks else plan


def sweep_leftovers(
    folder: Path, older_than_seconds: float = 3600.0, clock: Callable[[], float] = time.time
) -> list[Path]:
    """Remove rows of runs that were killed before they could clean up: they take memory, 17 MiB each.

    Args:
        folder: Folder of the rows of all stacks of this user.
        older_than_seconds: Younger ones may be about to start.
        clock: Wall clock.

    Returns:
        What was removed.
    """
    from probes.folder import is_locked

    removed = []
    for rows in folder.glob("run-????????"):
        rings = list(rows.glob("*.ring"))
        newest = max((path.stat().st_mtime for path in (rows, *rings)), default=0.0)
        if clock() - newest > older_than_seconds and not any(is_locked(ring) for ring in rings):
            shutil.rmtree(rows, ignore_errors=True)
            removed.append(rows)
    return removed


def with_program(plan: StackPlan, program: Program, hook: str, seed: int | None = None) -> StackPlan:
    """Return the plan with a program's hook around the service's app.

    Args:
        plan: The stack.
        program: The program.
        hook: wrap or twin_wrap.
        seed: Draws the numbers that the program lets vary.
    """
    environment = plan.service_env | {
        # by environment: the service's settings stay those that are shipped, and hold no word of drills
        PROGRAM_VARIABLE: str(program.path),
        HOOK_VARIABLE: hook,
        FLAG_VARIABLE: str(flag_path(plan.state_dir)),
        SEED_VARIABLE: "" if seed is None else str(seed),
    }
    return replace(plan, service_middleware=("inferdeck.drill.wrapping:wrap",), service_env=environment)


@contextmanager
def open_scene(plan: StackPlan, traffic: TrafficPlan, say: Say) -> Iterator[Scene]:
    """Start stack and traffic; on the way out, whatever happened, stop both and remove the rows.

    Args:
        plan: The stack.
        traffic: What to send; its URL is set here.
        say: Gets one line for each step.

    Raises:
        CannotRun: If either does not start.
    """
    make_private_folder(plan.state_dir)
    sender: TrafficProcess | None = None
    with only_stack(plan.state_dir):
        stack = EmbeddedStack(plan, say)
        try:
            # the generator reads the reviews while the stack starts
            sender = TrafficProcess(
                replace(traffic, url=plan.url("service_port")), plan.state_dir / "logs" / "traffic.log"
            )
            stack.start()
            reviews = sender.wait_ready()
            sender.go()
            watch = AlertWatch(plan.url("prometheus_port"), plan.url("alertmanager_port"))
            yield Scene(plan, stack, sender, watch, flag_path(plan.state_dir), traffic.rate, reviews)
        finally:
            with uninterrupted():
                if sender is not None:
                    sender.kill()
                if stack.state.phase != "failed":
                    stack.stop()
                shutil.rmtree(plan.ring_dir, ignore_errors=True)
