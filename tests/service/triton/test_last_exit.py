"""What is read from the end of a server: bounded, of this life alone, and no more than was said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.triton.last_exit import MOST_CHARACTERS, MOST_LINES, Exit, end_of, kind_of, last_lines, write

ILLEGAL = "[E:onnxruntime:log, cuda_call.cc:118] CUDA failure 700: an illegal memory access was encountered ; GPU=0"


@pytest.mark.parametrize(
    ("code", "line", "kind"),
    [
        (-6, ILLEGAL, "illegal_memory_access"),
        (134, "RuntimeError: CUDA error: an illegal memory access was encountered", "illegal_memory_access"),
        (-6, "CUDA failure 2: out of memory ; GPU=0", "out_of_memory"),
        (1, "CUDA error: device-side assert triggered", "cuda_error"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", "signal"),
        (1, "error: creating server: Internal - failed to load all models", "failed"),
        # what it survived is not what ended it
        (0, ILLEGAL, "clean"),
    ],
)
def test_the_kind_of_an_end(code: int, line: str, kind: str) -> None:
    """By its words where they are known, else by its code."""
    assert kind == kind_of(code, ["I1201 model.cc loaded", line, "Signal (6) received."])


def test_what_the_supervisor_killed_ended_by_that() -> None:
    """Whatever its log says."""
    assert "stopped" == kind_of(-9, [ILLEGAL], stopped=True)


def test_lines_are_of_this_life_and_bounded(tmp_path: Path) -> None:
    """An earlier life's words are not this one's; a log of any size costs the same."""
    log = tmp_path / "tritonserver.log"
    log.write_text(ILLEGAL + "\n")
    began = log.stat().st_size
    assert "signal" == end_of(-6, log, began).kind
    with log.open("a") as file:
        file.writelines(f"{number} {'x' * 1000}\n" for number in range(300))

    lines = last_lines(log, began)
    assert (MOST_LINES, MOST_CHARACTERS) == (len(lines), max(map(len, lines)))
    assert lines[-1].startswith("299 ")
    log.write_text(ILLEGAL)
    assert (ILLEGAL,) == last_lines(log, began)
    assert () == last_lines(tmp_path / "missing", 0)


def test_the_file_is_private_and_its_loss_is_no_error(tmp_path: Path) -> None:
    """A log may hold what nobody else shall read; a folder that is gone is not the supervisor's end."""
    path = tmp_path / "last_exit.json"
    write(path, Exit(-6, "illegal_memory_access", 5.0, (ILLEGAL,)))
    write(tmp_path / "missing" / "last_exit.json", Exit(-6, "signal", 5.0, ()))

    assert 0o600 == path.stat().st_mode & 0o777
    assert {"code": -6, "kind": "illegal_memory_access", "unix_seconds": 5.0, "lines": [ILLEGAL]} == json.loads(
        path.read_text()
    )
    assert [path] == list(tmp_path.iterdir())
