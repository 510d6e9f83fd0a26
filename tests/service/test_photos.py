"""POST /v1/photos: every status in the contract's shape, what is said of photos, and that nothing of them is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from inferdeck.bench.photos import blurred, encoded, exposed, scene
from probes.images.header import PROBLEMS, Problem
from probes.images.quality import REASONS, PhotoQuality, judge_photo
from probes.reader import RingFile, list_rings
from service.photos import TYPES

pytestmark = pytest.mark.anyio
URL = "/v1/photos"
JPEG = {"content-type": "image/jpeg"}
SHARP = encoded(exposed(scene(1, 800, 600)))
BLURRED = encoded(exposed(blurred(scene(1, 800, 600), 0.012)))


def loaded(app: Any) -> bool:
    """Tell whether the route's decoder is there."""
    return endpoint(app)._judge is not None


def endpoint(app: Any) -> Any:
    """Return the route's app."""
    (found,) = (route.endpoint for route in app.routes if route.path == URL)
    return found


async def test_says_how_good_a_photo_is(serve: Any, judge: Any, until: Any) -> None:
    """Sharp, blurred, and what is no photo at all."""
    async with serve() as (client, app):
        await until(lambda: loaded(app))
        sharp = judge.answer(await client.post(URL, content=SHARP, headers=JPEG), URL)
        bad = judge.answer(await client.post(URL, content=BLURRED, headers=JPEG), URL)
        none = judge.answer(await client.post(URL, content=b"", headers={"content-type": "image/png"}), URL)
    assert ("sharp", False, None, 800, 600) == tuple(
        sharp[name] for name in ("verdict", "low_quality", "reason", "width", "height")
    )
    assert ("blurred", True, "blur") == (bad["verdict"], bad["low_quality"], bad["reason"])
    assert bad["sharpness"] < 50 < sharp["sharpness"]
    assert ("indeterminate", "unreadable", "empty", None) == (
        none["verdict"],
        none["reason"],
        none["problem"],
        none["sharpness"],
    )


async def test_leaves_a_row_that_says_so(serve: Any, until: Any, tmp_path: Path) -> None:
    """Device, reason, score and the flag of low quality; of a sharp photo no reason; never the photo."""
    async with serve() as (client, app):
        await until(lambda: loaded(app))
        for photo, device in ((SHARP, "web"), (BLURRED, "mobile")):
            await client.post(URL, content=photo, headers=JPEG | {"x-device-type": device})
    (path,) = list_rings(tmp_path / "rings")
    ring = RingFile(path)
    table, strings = ring.read(0, 100).rows, ring.strings()
    assert [URL, URL] == [strings[number] for number in table["route"]]
    assert ["web", "mobile"] == [strings[number] for number in table["device_type"]]
    assert ["", "blur"] == [strings[number] for number in table["request/quality_reason"]]
    assert ["", "image"] == [strings[number] for number in table["request/quality_modality"]]
    assert [0, 4] == [int(flags) & 4 for flags in table["flags"]]
    assert table["photo.quality/sharpness"][1] < 50 < table["photo.quality/sharpness"][0]
    assert ["sharp", "blurred"] == [strings[number] for number in table["photo.quality/verdict"]]
    assert [480_000, 480_000] == list(table["photo.quality/pixels"])
    assert SHARP[200:260] not in path.read_bytes()


@pytest.mark.parametrize("said", [{}, {"content-type": "text/plain"}, {"content-type": "image/gif"}])
async def test_other_types_are_415(client: httpx.AsyncClient, judge: Any, said: dict[str, str]) -> None:
    """A body that says it is something else is not looked at."""
    response = await client.post(URL, content=SHARP, headers=said)
    assert response.status_code == 415
    assert judge.answer(response, URL)["error"]["field"] == "content-type"


async def test_a_type_that_lies_is_judged_by_its_bytes(serve: Any, judge: Any, until: Any) -> None:
    """Clients mix them up."""
    async with serve() as (client, app):
        await until(lambda: loaded(app))
        found = judge.answer(await client.post(URL, content=SHARP, headers={"content-type": "image/png"}), URL)
    assert found["verdict"] == "sharp"


async def test_a_large_body_is_413_and_a_slow_one_408(serve: Any, judge: Any, until: Any) -> None:
    """Bounds are the photos' own; a text of this size is refused as ever."""

    async def slow() -> AsyncIterator[bytes]:
        yield b"\xff\xd8"
        await asyncio.sleep(30)

    async with serve(photo_limit_bytes=20_000, receive_timeout_seconds=0.1) as (client, app):
        await until(lambda: loaded(app))
        large = await client.post(URL, content=bytes(20_001), headers=JPEG)
        late = await client.post(URL, content=slow(), headers=JPEG)
        again = await client.post(URL, content=bytes(20_000), headers=JPEG)
        text = await client.post("/v1/sentiment", content=bytes(19_000), headers={"content-type": "application/json"})
    assert (413, 408, 200, 413) == (large.status_code, late.status_code, again.status_code, text.status_code)
    assert judge.answer(large, URL)["error"]["reason"] == "body_too_large"
    assert judge.answer(late, URL)["error"]["field"] == "body"


async def test_a_photo_of_too_many_pixels_is_not_decoded(serve: Any, judge: Any, until: Any) -> None:
    """The setting bounds what a decoder may be asked for."""
    async with serve(photo_pixels=100_000) as (client, app):
        await until(lambda: loaded(app))
        found = judge.answer(await client.post(URL, content=SHARP, headers=JPEG), URL)
    assert ("size", "too_many_pixels") == (found["reason"], found["problem"])


async def test_one_more_than_there_is_room_for_is_429(serve: Any, judge: Any, until: Any, good: Any) -> None:
    """Texts are judged meanwhile, and the place of a caller that leaves is free once its photo is done with."""
    gate, entered = threading.Event(), threading.Event()

    def held(data: bytes, pixels: int) -> PhotoQuality:
        entered.set()
        gate.wait(30)
        return judge_photo(data, pixels)

    async with serve(photo_places=1) as (client, app):
        await until(lambda: loaded(app))
        endpoint(app)._judge = held
        first = asyncio.create_task(client.post(URL, content=SHARP, headers=JPEG))
        await until(entered.is_set)
        full = await client.post(URL, content=SHARP, headers=JPEG)
        assert (await client.post("/v1/sentiment", json=good)).status_code == 200
        first.cancel()
        await asyncio.sleep(0)
        still = await client.post(URL, content=SHARP, headers=JPEG)
        gate.set()
        await until(lambda: endpoint(app)._inside == 0)
        after = await client.post(URL, content=SHARP, headers=JPEG)
    assert (429, 429, 200) == (full.status_code, still.status_code, after.status_code)
    assert judge.answer(full, URL)["error"]["reason"] == "queue_full"


async def test_a_decoder_that_fails_is_500(serve: Any, judge: Any, until: Any) -> None:
    """And the next photo is judged."""

    def broken(_data: bytes, _pixels: int) -> PhotoQuality:
        raise MemoryError

    async with serve() as (_client, app):
        await until(lambda: loaded(app))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
            endpoint(app)._judge = broken
            failed = await client.post(URL, content=SHARP, headers=JPEG)
            endpoint(app)._judge = judge_photo
            assert (await client.post(URL, content=SHARP, headers=JPEG)).status_code == 200
    assert failed.status_code == 500
    judge.answer(failed, URL)


async def test_without_a_decoder_it_is_503(serve: Any, judge: Any, until: Any) -> None:
    """Texts are judged all the same."""
    async with serve() as (client, app):
        await until(lambda: loaded(app))
        endpoint(app)._loaded(None, ImportError("No module named 'cv2'"))
        response = await client.post(URL, content=SHARP, headers=JPEG)
    assert response.status_code == 503
    judge.answer(response, URL)


async def test_another_method_is_405(client: httpx.AsyncClient, judge: Any) -> None:
    """In the contract's shape."""
    response = await client.get(URL)
    assert response.status_code == 405
    judge.answer(response, URL)


def test_the_contract_has_the_probes_words(contract: dict[str, Any]) -> None:
    """Types, verdicts, reasons and problems are written once in code; statuses are those provoked here."""
    operation = contract["paths"][URL]["post"]
    answer = contract["components"]["schemas"]["PhotoAnswer"]["properties"]
    assert tuple(operation["requestBody"]["content"]) == TYPES
    assert tuple(answer["reason"]["enum"]) == (*REASONS, None)
    assert tuple(answer["problem"]["enum"]) == (*PROBLEMS, None)
    assert get_args(Problem) == PROBLEMS
    assert set(operation["responses"]) == {"200", "405", "408", "413", "415", "429", "500", "503"}


def test_the_examples_fit_their_schema(contract: dict[str, Any], judge: Any) -> None:
    """Examples are what people copy."""
    examples = contract["paths"][URL]["post"]["responses"]["200"]["content"]["application/json"]["examples"]
    assert len(examples) == 3
    for example in examples.values():
        judge.validate("PhotoAnswer", example["value"])
