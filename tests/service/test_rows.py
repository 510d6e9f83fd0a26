"""Each request leaves one row that tells what happened, and never the text."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from probes.reader import RingFile, list_rings
from service.backend import Calls

pytestmark = pytest.mark.anyio
URL = "/v1/sentiment"
JSON = {"content-type": "application/json"}
OUTCOMES = ("ok", "refused", "error", "degraded", "disconnected")


class Rows:
    """The rows of the only worker, strings looked up."""

    def __init__(self, folder: Path) -> None:
        (path,) = list_rings(folder)
        self.ring = RingFile(path)
        self.bytes = path.read_bytes()
        self.table = self.ring.read(0, 10_000).rows
        self.strings = self.ring.strings()

    def text(self, column: str) -> list[str]:
        """Return a column of string ids as strings."""
        return [self.strings[number] for number in self.table[column]]

    def outcomes(self) -> list[str]:
        """Return the outcomes as words."""
        return [OUTCOMES[number] for number in self.table["outcome"]]


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """Return what reads the rows of this test's service."""
    return lambda: Rows(tmp_path / "rings")


async def test_judgement_leaves_a_whole_row(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """Stages, attributes, label, confidence and model are there, and the children lie inside their parent."""
    async with serve() as (client, _app):
        await client.post(URL, json=good, headers={"x-session-id": "session-0123456789"})
    found = rows()
    (row,) = found.table
    length = len(good["text"])
    assert found.outcomes() == ["ok"]
    assert (row["http_status"], row["input_length"], row["tokens"]) == (200, length, length)
    assert row["session"] == b"session-0123456789"
    assert row["confidence"] == pytest.approx(0.843795, abs=1e-6)
    assert found.text("label") == ["positive"]
    assert found.text("model_version") == ["fake-1"]
    assert found.text("route") == [URL]
    assert found.text("reason") == [""]
    assert row["sentiment.preprocess/input_length"] == row["sentiment.preprocess/cleaned_length"] == length
    assert (row["sentiment.tokenizer/tokens"], row["sentiment.tokenizer/truncated"]) == (length, 0)
    assert (row["sentiment.tokenizer/seq_len"], row["sentiment.tokenizer/padding_ratio"]) == (length, 0.0)
    assert (row["model.forward/batch_size"], row["model.forward/seq_len"]) == (1, length)
    assert found.text("model.forward/device_type") == ["cpu"]
    assert found.text("model.forward/model_version") == ["fake-1"]
    assert row["scheduler.dispatch/queue_wait_ns"] >= 0
    start = {name: int(row[f"{name}/start_ns"]) for name in found.ring.header.stages}
    end = {name: start[name] + int(row[f"{name}/duration_ns"]) for name in start}
    order = ["sentiment.preprocess", "scheduler.dispatch", "sentiment.tokenizer", "model.forward"]
    assert start == start | dict(zip(order, sorted(start[name] for name in order), strict=True))
    assert end["model.forward"] <= end["scheduler.dispatch"] <= start["postprocess.confidence"]
    assert end["postprocess.confidence"] <= start["network.send"]
    assert found.ring.header.stages["model.forward"] == "scheduler.dispatch"


REFUSALS: dict[str, tuple[dict[str, Any], int, str]] = {
    "schema": ({"method": "POST", "url": URL, "json": {}}, 400, "schema"),
    "too long": (
        {"method": "POST", "url": URL, "json": {"text": "x" * 1025, "product_id": "AB12345678"}},
        422,
        "too_long",
    ),
    "characters": (
        {"method": "POST", "url": URL, "json": {"text": "it's", "product_id": "AB12345678"}},
        422,
        "illegal_characters",
    ),
    "body": ({"method": "POST", "url": URL, "content": b"x" * 20_000, "headers": JSON}, 413, "body_too_large"),
    "type": ({"method": "POST", "url": URL, "content": b"{}"}, 415, "other"),
    "path": ({"method": "POST", "url": "/nowhere"}, 404, "not_found"),
    "method": ({"method": "GET", "url": URL}, 405, "method"),
}


@pytest.mark.parametrize(("request_", "status", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_refusal_leaves_a_row_with_its_reason(
    serve: Any, rows: Any, request_: dict[str, Any], status: int, reason: str
) -> None:
    """What was refused is known as well as what was answered."""
    async with serve() as (client, _app):
        assert (await client.request(**request_)).status_code == status
    found = rows()
    assert (found.outcomes(), found.text("reason")) == (["refused"], [reason])
    assert list(found.table["http_status"]) == [status]
    assert math.isnan(found.table["confidence"][0])


async def test_refusal_leaves_the_field_at_fault(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """A product id in lower case is told apart from a text that the contract forbids, and the value is never kept."""
    async with serve() as (client, _app):
        assert (await client.post(URL, json=good | {"product_id": "ht20240117"})).status_code == 400
        assert (await client.post(URL, json=good | {"text": "it's"})).status_code == 422
    found = rows()
    assert found.text("request/refused_field") == ["product_id", "text"]
    assert "ht20240117" not in found.strings


async def test_filters_cpu_time_is_in_the_row(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """Work in front of the model is told apart from waiting there."""
    async with serve() as (client, _app):
        await client.post(URL, json=good)
    (row,) = rows().table
    assert 0 < row["sentiment.preprocess/cpu_ns"]


async def test_degraded_answer_leaves_its_reason(
    serve: Any, rows: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """A 200 that was not judged by the model is told apart, with the stage it hung in."""
    async with serve(fake_backend, deadline_seconds=0.05) as (client, _app):
        fake_backend.gate.clear()
        await client.post(URL, json=good)
        fake_backend.gate.set()
    found = rows()
    assert (found.outcomes(), found.text("reason"), list(found.table["http_status"])) == (
        ["degraded"],
        ["deadline"],
        [200],
    )
    assert found.text("label") == [""]


async def test_model_error_leaves_its_class(serve: Any, rows: Any, make_backend: Any, good: dict[str, str]) -> None:
    """The row names the exception's class, not its message."""
    async with serve(make_backend(error=RuntimeError("boom"))) as (client, _app):
        await client.post(URL, json=good)
    found = rows()
    assert (found.text("reason"), found.text("error_type")) == (["model_error"], ["RuntimeError"])


async def test_warming_up_leaves_an_error_with_the_phase(
    serve: Any, rows: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """A request that came too early is no refusal of the request."""
    fake_backend.gate.clear()
    async with serve(fake_backend, ready=False) as (client, _app):
        fake_backend.entered.wait(5)
        await client.post(URL, json=good)
        fake_backend.gate.set()
    found = rows()
    assert (found.outcomes(), found.text("reason"), list(found.table["http_status"])) == (
        ["error"],
        ["warming_up"],
        [503],
    )


async def test_late_work_keeps_away_from_the_next_requests_row(
    serve: Any, rows: Any, fake_backend: Any, good: dict[str, str], until: Any
) -> None:
    """Work that goes on after its request was answered writes nothing any more."""
    async with serve(fake_backend, deadline_seconds=0.05, inference_threads=1) as (client, app):
        fake_backend.gate.clear()
        await client.post(URL, json=good)
        fake_backend.gate.set()
        await until(lambda: app.state.worker.executor.pending == 0)
        await client.get("/nowhere")
    found = rows()
    assert found.text("label") == ["", ""]
    assert found.text("model.forward/model_version")[1] == ""


async def test_texts_are_in_no_row(serve: Any, rows: Any) -> None:
    """Neither an accepted nor a refused text is anywhere in the file."""
    marker = "Zebrafinkenschwarm"
    async with serve() as (client, _app):
        for text in (marker, f"{marker}'s", marker * 100):
            await client.post(URL, json={"text": text, "product_id": "AB12345678"})
        await client.post(URL, content=json.dumps({marker: marker}).encode(), headers=JSON)
    found = rows()
    assert len(found.table) == 4
    assert marker.encode() not in found.bytes


async def test_header_names_build_configuration_and_model(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """Rows of different models and settings can be told apart."""
    async with serve() as (client, app):
        await client.post(URL, json=good)
        settings = app.state.worker.settings
    header = rows().ring.header
    assert (header.service, header.config, header.model) == ("sentiment", settings.fingerprint, "fake-1")
    assert header.build


async def test_recorder_can_be_left_out(serve: Any, tmp_path: Path, good: dict[str, str]) -> None:
    """Without a recorder the service answers the same and writes nothing."""
    async with serve(recorder=False) as (client, _app):
        response = await client.post(URL, json=good)
        missing = await client.get("/nowhere")
    assert (response.status_code, missing.status_code) == (200, 404)
    assert not (tmp_path / "rings").exists()


async def test_folder_that_cannot_be_used_costs_rows_and_not_requests(
    serve: Any, tmp_path: Path, good: dict[str, str]
) -> None:
    """The service answers on, and the loss is told on the admin port's metrics."""
    (tmp_path / "rings").write_text("a file where a folder should be")
    async with serve() as (client, app):
        response = await client.post(URL, json=good)
        snapshot = app.state.worker.snapshot()
    assert response.status_code == 200
    assert sum(snapshot.loss.values()) == 1


async def test_rows_of_a_batch_share_its_number_and_tell_who_was_padded_for(
    serve: Any, rows: Any, good: dict[str, str]
) -> None:
    """Three texts in one call: one number, one size, one width; the longest is named, the others tell their padding."""
    texts = ["a", "ab", "abcd"]
    async with serve(scheduler_batching=True, batch_size=3, batch_wait_seconds=10) as (client, _app):
        await asyncio.gather(*(client.post(URL, json=good | {"text": text}) for text in texts))
        await asyncio.gather(*(client.post(URL, json=good | {"text": text}) for text in texts))
    found = rows()
    table = found.table
    assert found.outcomes() == ["ok"] * 6
    numbers = table["batch_id"].tolist()
    assert sorted(numbers.count(number) for number in set(numbers)) == [3, 3]
    assert 0 not in numbers
    assert set(table["model.forward/batch_size"]) == {3}
    assert set(table["sentiment.tokenizer/seq_len"]) == {4}
    told = zip(table["tokens"].tolist(), table["sentiment.tokenizer/padding_ratio"].tolist(), strict=True)
    assert set(told) == {(1, 0.75), (2, 0.5), (4, 0.0)}
    widest = table["sentiment.tokenizer/widest"].tolist()
    assert [bool(mark) for mark in widest] == [tokens == 4 for tokens in table["tokens"]]


async def test_queue_and_its_depth_are_in_the_row(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """Which queue it was, how many waited there already, and a number even for a call of one."""
    told = {"vip_product_ids": ("VI00000001",), "long_text_characters": 20}
    async with serve(**told) as (client, _app):
        await client.post(URL, json=good | {"product_id": "VI00000001"})
        await client.post(URL, json=good | {"text": "good"})
        await client.post(URL, json=good | {"text": "good " * 10})
    found = rows()
    assert found.text("scheduler.dispatch/queue") == ["vip", "normal", "long"]
    assert found.table["scheduler.dispatch/queue_depth"].tolist() == [0, 0, 0]
    assert found.table["batch_id"].tolist() == [1, 2, 3]


async def test_refusal_for_want_of_room_leaves_a_row(serve: Any, rows: Any, good: dict[str, str]) -> None:
    """Why it was refused, and in which queue it would have been."""
    async with serve(knee_rps=1, knee_share=1) as (client, _app):
        statuses = [(await client.post(URL, json=good)).status_code for _ in range(3)]
    found = rows()
    # One at once, and one of those that VIPs leave to the others.
    assert statuses == [200, 200, 429]
    assert found.outcomes() == ["ok", "ok", "refused"]
    assert found.text("reason") == ["", "", "rate_limited"]
    assert found.text("scheduler.dispatch/queue") == ["normal"] * 3


async def test_answer_of_the_cpu_model_has_its_stages_and_why(
    serve: Any, rows: Any, make_backend: Any, good: dict[str, str]
) -> None:
    """A VIP waits for fallback.cpu > vectorizer; the row of a 202 has ended by then and tells the reason alone."""

    class Behind(make_backend):  # type: ignore[misc]  # a class that a fixture returns
        def snapshot(self) -> Calls:
            return Calls("open", 1, {})

    told = {"degraded_answers": {"triton_down": "later"}, "vip_product_ids": ("VI00000001",)}
    async with serve(Behind(), **told) as (client, _app):
        promised = await client.post(URL, json=good)
        await client.post(URL, json=good | {"product_id": "VI00000001"})
    found = rows()
    assert promised.status_code == 202
    assert found.outcomes() == ["degraded", "degraded"]
    assert found.text("reason") == ["triton_down", "triton_down"]
    assert found.table["http_status"].tolist() == [202, 200]
    assert found.text("fallback.cpu/because") == ["", "triton_down"]
    assert found.table["vectorizer/seq_len"].tolist()[1] == len(good["text"])
