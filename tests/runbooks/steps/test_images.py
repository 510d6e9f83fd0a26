"""Blurred photos are told by share, rise and client, from rows or from Prometheus alone; texts are left out."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Window
from runbooks.rows import Rows
from runbooks.sources import Sources
from runbooks.steps import images, quality

T0 = 1_780_000_000.0


def photos(rows: Rows, blurred: float, device: str = "", before: float = 0.0, photos_before: bool = True) -> Rows:
    """Return the rows with every second one a photo, blurred from T0 on, of one kind of device or of all."""
    rng = random.Random(4)
    verdicts, modality, reasons = [], [], []
    for number, (at, one) in enumerate(zip(rows.start_s.tolist(), rows.labels["device_type"].tolist(), strict=True)):
        share = (blurred if device in {"", one} else 0.0) if at >= T0 else before
        photo = number % 2 == 0 and (photos_before or at >= T0)
        verdict = ("blurred" if rng.random() < share else "sharp") if photo else ""
        verdicts.append(verdict)
        modality.append("image" if verdict == "blurred" else "")
        reasons.append("blur" if verdict == "blurred" else "")
    found = {"photo.quality/verdict": verdicts, "request/quality_modality": modality, "request/quality_reason": reasons}
    return replace(rows, labels={**rows.labels, **{name: np.array(one, object) for name, one in found.items()}})


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Rows:
        """Return them."""
        del since, until
        return self.rows


def ask(rows: Rows, alert: str | None = "BlurredImages") -> dict[str, Any]:
    """Triage rows alone."""
    return triage(Sources(None, FakeRows(rows)), alert=alert, at=T0 + 60.0, clock=lambda: T0 + 61.0)


@pytest.fixture
def devices(requests: Callable[..., Rows]) -> Callable[[], Rows]:
    """Return rows of three kinds of device."""

    def make() -> Rows:
        rows = requests()
        kinds = np.array([("mobile", "web", "app")[n // 2 % 3] for n in range(len(rows))], object)
        return replace(rows, labels={**rows.labels, "device_type": kinds})

    return make


@pytest.mark.parametrize(
    "options",
    [{"blurred": 0.6}, {"blurred": 1.0, "device": "mobile"}, {"blurred": 1.0, "device": "app", "photos_before": False}],
    ids=["everybody", "one kind", "no photos before"],
)
def test_blurred_photos_are_named(devices: Callable[[], Rows], options: dict[str, Any]) -> None:
    """Whoever sends them, with photos before or none."""
    found = ask(photos(devices(), **options))

    assert "blurred_images" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize("options", [{"blurred": 0.0}, {"blurred": 0.05}, {"blurred": 0.4, "before": 0.4}])
def test_as_many_as_ever_are_not(devices: Callable[[], Rows], options: dict[str, Any]) -> None:
    """A few are the day's; a service whose photos always are so has no failure."""
    assert ask(photos(devices(), **options))["verdict"]["slug"] is None


def test_blurred_photos_are_no_damaged_texts(devices: Callable[[], Rows], evidence: Callable[..., Evidence]) -> None:
    """The page of texts looks at texts alone, also when nobody says which alert it was."""
    rows = photos(devices(), 0.9)

    assert 0.0 == quality.low_share(evidence(rows)).value
    assert "low_quality_text" != ask(rows, None)["verdict"]["slug"]


def test_the_device_is_named_and_the_others_are_sharp(
    devices: Callable[[], Rows], evidence: Callable[..., Evidence]
) -> None:
    """And the photos are as many as ever."""
    known = evidence(photos(devices(), 0.9, "mobile"))

    assert float(images.one_client(known).value or 0) > 0.8
    assert "device_type = mobile" in images.one_client(known).detail
    assert "kind mobile" in images.blurred_share(known).detail
    assert 0.0 == images.others_blurred(known).value
    assert images.count_rise(known).value == pytest.approx(1.0, abs=0.3)


def test_prometheus_alone_tells_share_and_rise(evidence: Callable[..., Evidence], growing: Callable[..., Any]) -> None:
    """From the histogram, by kind of device."""
    series = {
        signals.SHARPNESS_BUCKET: tuple(
            growing({"device_type": device, "le": bound}, *rates)
            for device, bound, rates in (
                ("mobile", "50.0", (0.0, 2.0)),
                ("mobile", "+Inf", (4.0, 4.0)),
                ("web", "50.0", (0.0, 0.0)),
                ("web", "+Inf", (4.0, 4.0)),
            )
        )
    }
    known = evidence(None, series)

    assert images.blurred_share(known).value == pytest.approx(0.5, rel=0.05)
    assert "mobile" in images.blurred_share(known).detail
    assert float(images.blurred_rise(known).value or 0) > 3
    assert images.count_rise(known).value == pytest.approx(1.0, rel=0.1)
    assert "prometheus" == images.blurred_share(known).source


@pytest.mark.parametrize("name", images.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(images, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"images.{name}" == found.step
