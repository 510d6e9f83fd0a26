"""A dead letter tells why and where, and holds neither text nor session; one that cannot be kept is not passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.outgoing import Context
from service.deadletters.letters import read_letters
from service.stream.letters import FolderSink, SinkFailed, document_of
from service.stream.message import LETTER_REASONS, Reason
from service.stream.process import Letter
from tests.service.stream._queries import SESSION, message, raw


def letter(reason: Reason = "schema", value: bytes | None = None) -> Letter:
    """Return a letter of a message that was refused."""
    value = raw(1, device_type="tv", utterance="call 13812345678 now") if value is None else value
    return Letter("ab" * 8, message(value, 42, "7"), reason, "device_type", Context(trace_id=0x1F))


@pytest.mark.parametrize("reason", LETTER_REASONS)
def test_it_tells_why_and_where_and_nobody(reason: Reason) -> None:
    """Whatever the reason; a large message is not looked at."""
    told = document_of(letter(reason))
    text = json.dumps(told)

    assert (reason, "device_type", "7", 42, f"{0x1F:032x}") == (
        told["reason"],
        told["field"],
        told["partition"],
        told["next_position"],
        told["trace_id"],
    )
    assert SESSION not in text
    assert "13812345678" not in text
    assert (None if reason == "too_large" else "aaaa ########### aaa") == told["text"]


def test_letters_are_there_when_they_were_delivered(tmp_path: Path) -> None:
    """Not a moment later: the message counts as done from then on."""
    sink = FolderSink(tmp_path)
    sink.deliver([letter(), letter("not_json", b"{")], ())

    assert ["schema", "not_json"] == [one["reason"] for one in read_letters(tmp_path / "deadletters").letters]
    sink.close()


def test_a_letter_that_cannot_be_written_fails_the_batch(tmp_path: Path) -> None:
    """It would be all that is left of its message."""
    (tmp_path / "deadletters").write_text("in the way")
    sink = FolderSink(tmp_path)
    with pytest.raises(SinkFailed):
        sink.deliver([letter()], ())
    (tmp_path / "deadletters").unlink()
    sink.deliver([letter()], ())

    kept = read_letters(tmp_path / "deadletters")
    assert (1, 1) == (len(kept.letters), kept.lost)
    sink.close()


def test_without_a_folder_none_are_kept() -> None:
    """As where no state folder is set."""
    sink = FolderSink(None)
    sink.deliver([letter()], ())
    sink.close()
