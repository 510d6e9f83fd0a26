"""The chain on the running app: order, masking before the model, marks on the row, breakers, audit, dead letters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from service.breaker import Breaker
from service.deadletters.journal import Journal
from service.deadletters.letters import FOLDER, read_letters
from service.errors import Refusal
from service.filters.audit import AUDIT_FOLDER, Audit
from service.filters.chain import FilterChain, open_chain
from service.filters.link import Link
from service.text.preprocessing import preprocessing_without


class FakeRecord:
    """Keeps what is set on a row."""

    trace_id = "ab" * 16

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.low = False

    def stage(self, _name: str, /, **_attributes: Any) -> AbstractContextManager[Any]:
        """Return itself as the stage."""
        return nullcontext(self)

    def set(self, **attributes: Any) -> None:
        """Keep them."""
        self.values |= attributes

    def refused(self, reason: str) -> None:
        """Keep the reason."""
        self.values["reason"] = reason

    def degraded(self, reason: str) -> None:
        """Keep the reason."""
        self.values["reason"] = reason

    def low_quality(self) -> None:
        """Keep the mark."""
        self.low = True


def body(text: str) -> bytes:
    """Return a document with this text."""
    return json.dumps({"text": text, "product_id": "AB12345678"}).encode()


def chain_in(folder: Path | None, **options: Any) -> FilterChain:
    """Return the chain over a folder."""
    shares: Mapping[str, float] = options.pop("shares", {})
    told = {"mask_format": "1", "text_form": "shape"} | options
    return open_chain(folder, letter_bytes=100_000, audit_bytes=100_000, audit_shares=shares, **told)


def audit_lines(folder: Path) -> list[dict[str, Any]]:
    """Return what was audited."""
    files = sorted((folder / AUDIT_FOLDER).glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_the_model_reads_the_text_cleaned_and_masked(tmp_path: Path) -> None:
    """Full-width digits are folded first; the audit tells kinds and format, and no digit of it is on disk or row."""
    record, chain = FakeRecord(), chain_in(tmp_path)
    text, product = chain.text(body("请打１３８１２３４５６７８　谢谢"), record)
    chain.close()

    assert ("请打########### 谢谢", "AB12345678") == (text, product)
    assert ("phone", "1") == (record.values["pii_kinds"], record.values["pii_mask_format"])
    (entry,) = audit_lines(tmp_path)
    assert ("pii", "masked", {"phone": 1}, "1") == tuple(entry[k] for k in ("link", "action", "kinds", "mask_format"))
    assert "13812345678" not in repr(record.values) + "".join(p.read_text() for p in tmp_path.rglob("*.jsonl"))


def test_a_step_left_out_reaches_the_model(tmp_path: Path) -> None:
    """What serving is told not to fold stays wide."""
    chain = chain_in(tmp_path, preprocessing=preprocessing_without(["fold_width"]))
    assert "Ａ很好" == chain.text(body("  Ａ很好 "), FakeRecord())[0]


def test_a_damaged_text_is_marked_and_judged_all_the_same(tmp_path: Path) -> None:
    """The mark is on the row, with modality and reason."""
    record = FakeRecord()
    text, _ = chain_in(tmp_path).text(body("很好锟斤拷"), record)

    assert "很好" == text
    assert record.low
    assert ("text", "replacement") == (record.values["quality_modality"], record.values["quality_reason"])


def test_an_image_in_base64_is_refused(tmp_path: Path) -> None:
    """422, by the contract's reason for characters that are no text."""
    image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkAAAAAAAAAAAAAAAAAA"
    with pytest.raises(Refusal) as refused:
        chain_in(tmp_path).text(body(image), FakeRecord())

    assert (422, "illegal_characters", "text") == (refused.value.status, refused.value.reason, refused.value.field)


def test_what_fails_the_contract_is_kept_and_its_damage_marked(tmp_path: Path) -> None:
    """A dead letter with the trace's id; the row tells that it was handed over, and the quality."""
    record, chain = FakeRecord(), chain_in(tmp_path)
    sent = body("很\ufffd好 <br>")
    with pytest.raises(Refusal) as refused:
        chain.text(sent, record)
    chain.refused(refused.value, sent, record)
    chain.close()

    (letter,) = read_letters(tmp_path / FOLDER).letters
    assert ("schema", "illegal_characters", "text", record.trace_id) == tuple(
        letter[name] for name in ("link", "reason", "field", "trace_id")
    )
    assert "字\ufffd字 <aa>" == letter["text"]
    assert ("handed_over", "replacement") == (record.values["dead_letter"], record.values["quality_reason"])
    assert ["refused", "marked"] == [entry["action"] for entry in audit_lines(tmp_path)]


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_for_want_of_room_is_no_dead_letter(tmp_path: Path, status: int) -> None:
    """It says nothing about the request."""
    record, chain = FakeRecord(), chain_in(tmp_path)
    chain.refused(Refusal(status, "other", "later"), b"", record)
    chain.close()

    assert {} == record.values
    assert [] == list(tmp_path.iterdir())


def test_without_a_folder_nothing_is_written_and_all_works() -> None:
    """The chain judges and masks as always."""
    record, chain = FakeRecord(), chain_in(None)
    chain.refused(Refusal(400, "schema", "no"), b"x", record)
    assert {} == record.values
    assert "###########" == chain.text(body("13812345678"), record)[0]
    chain.close()


def broken(_given: str) -> str:
    """A step that does not work; its message quotes what it was given."""
    raise ValueError("13812345678")


def test_a_required_link_that_fails_answers_503_and_opens(caplog: pytest.LogCaptureFixture) -> None:
    """After failures in a row it is not tried; when the pause is over one request tries, and it closes again."""
    now = [0.0]
    link = Link("pii", Audit(None, {}), required=True, breaker=Breaker(2, 10.0, clock=lambda: now[0]))
    record = FakeRecord()
    calls: list[str] = []

    def works(given: str) -> str:
        calls.append(given)
        return given

    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            link.run(broken, "a", record, None)
        assert (503, "1") == (refused.value.status, refused.value.headers["retry-after"])
    assert "pii" == record.values["filter_failed"]
    assert "13812345678" not in caplog.text
    with pytest.raises(Refusal):
        link.run(works, "b", record, None)
    assert [] == calls
    now[0] = 11.0
    assert "c" == link.run(works, "c", record, None)
    assert ("closed", ["c"]) == (link.breaker.state, calls)


def test_a_link_that_is_not_required_is_left_out() -> None:
    """The request goes on, and its row says so."""
    record = FakeRecord()
    link = Link("quality", Audit(None, {}), required=False)

    assert "" == link.run(broken, "a", record, "")
    assert {"filter_failed": "quality"} == record.values


def test_a_refusal_is_no_failure_of_its_link() -> None:
    """However many bad requests come, the breaker stays closed."""
    link = Link("schema", Audit(None, {}), required=True, breaker=Breaker(1))

    def refuse(_given: str) -> str:
        raise Refusal(400, "schema", "no")

    for _ in range(5):
        with pytest.raises(Refusal) as refused:
            link.run(refuse, "a", FakeRecord(), None)
        assert 400 == refused.value.status
    assert "closed" == link.breaker.state


@pytest.mark.parametrize(("share", "expected"), [(1.0, 100), (0.25, 25), (0.0, 0)])
def test_each_link_has_a_share_of_its_own_that_is_audited(tmp_path: Path, share: float, expected: int) -> None:
    """Another link's share is another's."""
    journal = Journal(tmp_path / AUDIT_FOLDER, "audit", places=300)
    audit = Audit(journal, {"pii": share, "quality": 1.0})
    for _ in range(100):
        audit.note("pii", FakeRecord(), "masked", {})
    audit.note("quality", FakeRecord(), "marked", {})
    audit.close()

    assert expected == sum(entry["link"] == "pii" for entry in audit_lines(tmp_path))
    assert 1 == sum(entry["link"] == "quality" for entry in audit_lines(tmp_path))
