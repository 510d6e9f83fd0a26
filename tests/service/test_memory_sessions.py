"""Sessions of this process, and those of a model that is there already."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from service import memory_sessions


class Runtime:
    """What stands for onnxruntime: a class of its own in each test."""

    def __init__(self) -> None:
        class InferenceSession:
            def __init__(self, model: Any, *, providers: Any = None) -> None:
                if model == "damaged":
                    raise ValueError(model)
                self.model, self.providers = model, providers

        self.InferenceSession = InferenceSession


def test_second_session_of_a_file_is_a_duplicate_until_it_is_gone(tmp_path: Path) -> None:
    """Whoever made it, by whatever name of the file; another model is none, and one that failed is no session."""
    gc.collect()  # what other tests left behind must not go away in between
    before = memory_sessions.sessions()
    one, two = tmp_path / "one.onnx", tmp_path / "two.onnx"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    (tmp_path / "link").symlink_to(one)
    runtime = Runtime()
    memory_sessions.watch_sessions(runtime)
    memory_sessions.watch_sessions(runtime)

    def told() -> tuple[int, int]:
        gc.collect()
        now = memory_sessions.sessions()
        return now.open - before.open, now.duplicate - before.duplicate

    held = [runtime.InferenceSession(str(one), providers=["cpu"])]
    assert held[0].providers == ["cpu"]
    held.append(runtime.InferenceSession(two))
    assert told() == (2, 0)
    try:
        runtime.InferenceSession("damaged")
    except ValueError:
        assert told() == (2, 0)
    held.append(runtime.InferenceSession(tmp_path / "link"))
    assert told() == (3, 1)
    held.pop()
    assert told() == (2, 0)
    held += [runtime.InferenceSession(b"model"), runtime.InferenceSession(b"model")]
    assert told() == (4, 1)
    held.clear()
    assert told() == (0, 0)


def test_onnxruntime_is_watched_when_a_model_is_loaded() -> None:
    """The real class: wrapped by the loading, and its sessions count."""
    import onnxruntime

    memory_sessions.watch_sessions(onnxruntime)
    assert getattr(onnxruntime.InferenceSession.__init__, "counts_sessions", False)
