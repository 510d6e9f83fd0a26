"""The canary as the settings want it."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path

from service.backend import Backend, BackendError
from service.canary.judge import CanaryJudge, CanaryRules
from service.canary.route import Canary
from service.canary.state import FOLDER, CanaryStore
from service.canary.versions import Versions
from service.executor import Executor
from service.loading import load_onnx
from service.scheduler.assemble import scheduler
from service.scheduler.batch_call import BatchStage
from service.scheduler.dispatcher import Scheduler
from service.settings import Settings
from service.state_folder import state_folder

__all__ = ["CanaryPart"]

_TRITON = "triton:"


def _folder(settings: Settings) -> Path | None:
    """Return where the state is kept, None for in memory alone."""
    state = state_folder()
    return settings.canary_dir or (state and state / FOLDER)


def _load(settings: Settings, model: str, stable: Backend) -> Backend:
    if not model.startswith(_TRITON):
        return load_onnx(Path(model), settings.memory_reserve_bytes, settings.model_device)[0]
    from service.backend_triton import TritonBackend
    from service.triton.repository import VERSIONS

    served = model.removeprefix(_TRITON)
    if not isinstance(stable, TritonBackend) or served not in VERSIONS:
        raise BackendError(f"{model} needs the setting backend: triton, and one of its versions {', '.join(VERSIONS)}")
    return stable.beside(served)


class CanaryPart:
    """Everything of the canary in one worker: its state, its model, its threads and queues.

    Args:
        settings: The settings.
        stable: Returns the stable model once it is there.
        queues: The stable version's scheduler; batches are numbered, and memory is counted, together with it.
        batch_stage: Enters a stage of many rows.
    """

    def __init__(
        self,
        settings: Settings,
        stable: Callable[[], Backend | None],
        queues: Scheduler,
        batch_stage: BatchStage,
    ) -> None:
        rules = CanaryRules(
            least_requests=settings.canary_least_requests,
            error_share=settings.canary_error_share,
            latency_ratio=settings.canary_latency_ratio,
            flip_share=settings.canary_flip_share,
        )
        self.versions = Versions(
            CanaryStore(_folder(settings)),
            functools.partial(self._loaded, settings),
            stable,
            CanaryJudge(rules),
            wanted=(settings.canary_model, settings.canary_share),
        )
        self._working = False
        self._executor = Executor(settings.model_threads, "canary")
        self._comparing = Executor(1, "canary-compare")
        # Its rate is the stable version's, who lets it in.
        own = settings.model_copy(update={"knee_rps": 0.0})
        mine = scheduler(own, self._executor, self._executor, batch_stage, gate=queues.gate)
        mine.numbers = queues.numbers
        self.route = Canary(self.versions, mine, self._comparing, settings.canary_compare_share, random.random)

    def start(self) -> None:
        """Look for a canary from now on; after any fork."""
        self.versions.start()

    def _loaded(self, settings: Settings, model: str, stable: Backend) -> Backend:
        """Return the model that a state names, with threads to run it: most services never have one."""
        backend = _load(settings, model, stable)
        if not self._working:
            self._working = True
            self._executor.start()
            self._comparing.start()
        return backend

    def stop(self) -> None:
        """Stop them, within a bounded time."""
        self.versions.stop()
        self._executor.close()
        self._comparing.close()
