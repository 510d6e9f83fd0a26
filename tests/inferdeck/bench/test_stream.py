"""The bench of the stream: a real run without a broker, its shape, and messages that are all of the contract."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from inferdeck.bench import stream
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from inferdeck.schema import validate
from service.stream.message import read_query
from tests.service.stream._queries import message


def test_a_real_run_has_its_shape() -> None:
    """Both variants did the whole work; what is left out is said."""
    seen: list[float] = []
    result = stream.run_stream(1000, 1, lambda _word, share: seen.append(share), kafka=False)

    validate("bench_stream", Stopwatch().stamp(result))
    assert {"bare", "files"} == set(result["per_core"])
    assert 1.0 == result["of_bare"]["bare"]
    assert sorted(seen) == seen


def test_every_message_is_one_of_the_contract_and_none_comes_twice() -> None:
    """Or the figure would be that of refusals."""
    made = stream.make_messages(500, time.time())

    assert 500 == len({read_query(message(one), 16384).identity(b"k" * 16) for one in made})


def test_a_run_that_lost_messages_is_no_figure(tmp_path: Path) -> None:
    """It would look fast."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "messages.jsonl").write_bytes(b"\n".join(stream.make_messages(10, time.time() - 700.0)) + b"\n")

    with pytest.raises(CannotRun, match="counted 10 of 11"):
        stream._measured("bare", tmp_path / "work", tmp_path / "in", "", 11)
