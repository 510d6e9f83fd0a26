from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.foreign.conftest import Watched


def test_a_stage_on_a_thread_belongs_to_its_own_request(watched: Watched) -> None:
    """In a synchronous route `stage` finds the request that its thread works for, also when many run at once."""
    texts = ["1" * number + "x" * (50 - number) for number in range(40)]
    with watched.serve("uvicorn", "plain_app:app", "--fd", "{fd}") as (client, _):
        with ThreadPoolExecutor(8) as pool:
            counts = list(pool.map(lambda text: client.get(f"/sync/{text}").json()["digits"], texts))
        table = watched.rows(len(texts))
        watched.until(lambda: watched.metric("model_stage_seconds_count", stage="digits.thread") == len(texts))

    assert list(range(40)) == counts
    assert list(range(40)) == sorted(table["digits.thread/found"].tolist())
    assert {50} == set(table["digits.thread/characters"].tolist())
    starts, durations = table.stage("digits.thread")
    assert (starts > 0).all()
    assert (starts + durations <= table.numbers("duration_ns") / 1e9).all()
