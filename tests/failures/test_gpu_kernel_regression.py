"""The new graph computes what it did while one of its kernels takes longer; replayed GPU timings show the same."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest

from exporters.kernels.baseline import LEARN_WINDOWS, BaselineStore
from exporters.kernels.gauges import kernel_gauges
from exporters.kernels.verdict import REPLAYED_RATIO
from exporters.kernels.watch import KernelWatch
from inferdeck.drill.program import load_module, read_program
from inferdeck.settings import load_settings
from service.artifacts import MODEL_FILE
from service.training.ensure import ensure_model
from tests.exporters.kernels.replays import Replayed

PROGRAM = Path(__file__).with_name("gpu_kernel_regression.py")


def prepared(folder: Path) -> SimpleNamespace:
    """Return the stack for the program's causes, with the graph that its exporter would time."""
    ensure_model(load_settings().model_path, lambda _what, _share: None)
    load_module(PROGRAM).prepare(folder)
    return SimpleNamespace(state_dir=folder, service_url="http://127.0.0.1:9")


def logits(graph: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return what a graph answers for some tokens."""
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    ids = np.arange(1, 61, dtype=np.int64).reshape(2, 30)
    found = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    assert isinstance(found, np.ndarray)
    return found


def test_the_new_graph_answers_alike_and_is_taken_back(tmp_path: Path) -> None:
    """One node more in front of the one that has more to do; the service's own model is not touched."""
    told = read_program(PROGRAM)
    assert (True, True) == (told.simulated, {"prepare", "usual", "cause", "twin_cause"} <= told.hooks)
    program, stack = load_module(PROGRAM), prepared(tmp_path)
    served = (load_settings().model_path / MODEL_FILE).read_bytes()
    path = tmp_path / program.CANARY
    with program.cause(stack):
        changed = path.read_bytes()
    assert served == path.read_bytes() == (load_settings().model_path / MODEL_FILE).read_bytes()
    names = [{node.name for node in onnx.load_from_string(one).graph.node} for one in (served, changed)]
    assert {"pad_rows"} == names[1] - names[0]
    assert program.NODE in names[0] & names[1]
    assert np.allclose(logits(served), logits(changed), atol=1e-6)


def test_the_drill_waits_for_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the last window of it, and it says so when there is none."""
    program = load_module(PROGRAM)
    stack = SimpleNamespace(state_dir=tmp_path)
    times = {"sum": [1e-5] * (LEARN_WINDOWS - 1)}
    form = {"baselines": {"model 32x256": {"fastest_seconds": times}}}
    for text in ("", "{}", json.dumps(form)):
        (tmp_path / "kernels.json").write_text(text)
        assert not program.learned(tmp_path)
    monkeypatch.setattr(program, "LEARN_SECONDS", 0.0)
    with pytest.raises(RuntimeError, match="no baseline"), program.usual(stack):
        pass
    monkeypatch.setattr(program, "LEARN_SECONDS", 60.0)
    times["sum"].append(1e-5)
    later = threading.Timer(0.2, (tmp_path / "kernels.json").write_text, [json.dumps(form)])
    later.start()
    began = time.monotonic()
    with program.usual(stack):
        assert time.monotonic() - began >= 0.15
    later.join()


@pytest.mark.parametrize("slower", [1.0, 1.23])
def test_a_gpu_kernel_of_1_23_times_its_time_makes_the_alert_and_an_unchanged_one_does_not(
    tmp_path: Path, slower: float
) -> None:
    """Replayed timings of a card with its noise, through verdict and gauges to what the rule asks for."""
    source = Replayed(11)
    watch = KernelWatch(source, BaselineStore(tmp_path / "kernels.json"), threshold_ratio=REPLAYED_RATIO)
    for _ in range(LEARN_WINDOWS):
        watch.look()
    source.slower = {"layer_norm": slower}
    source.driver = "590"
    watch.look()
    assert 1.0 not in kernel_gauges(watch.state, source.name)["model_kernel_regression_state"].values()
    watch.look()
    shown = kernel_gauges(watch.state, source.name)

    named = {kernel for (kernel,), state in shown["model_kernel_regression_state"].items() if state == 1.0}
    assert ({"layer_norm"} if slower > 1 else set()) == named
    assert shown["model_kernel_common_ratio"][()] < 1.25
    if named:
        assert 1.15 < shown["model_kernel_slowdown_ratio"]["layer_norm",] < 1.35
