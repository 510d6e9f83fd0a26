"""Dead letters are listed newest first, shown, and purged; each result fits its schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from inferdeck.dead_letters import letters_folder, list_letters, purge_letters, show_letter
from inferdeck.errors import CannotRun
from inferdeck.result import Outcome, Stopwatch
from inferdeck.schema import validate
from inferdeck.settings import StackSettings, load_settings
from service.deadletters.letters import Failure, letter_of


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackSettings:
    """Return settings of a state folder with two letters, a note of losses and a torn line."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    settings = load_settings()
    folder = letters_folder(settings)
    folder.mkdir(parents=True)
    body = json.dumps({"text": "it's\n\x1b[31m", "product_id": "AB12345678"}).encode()
    failures = (
        Failure("schema", 422, "illegal_characters", "text", "ab" * 16, body),
        Failure("protocol", 415, "schema", "content-type", "", b"x"),
    )
    letters = [letter_of(one, "shape", "1") | {"at": f"2026-01-01T00:00:0{n}Z"} for n, one in enumerate(failures)]
    lines = [json.dumps(one) for one in [*letters, {"lost": 4}]]
    (folder / "letters-1-x.jsonl").write_text("\n".join(lines) + '\n{"format":1,')
    return settings


def shown(outcome: Outcome) -> str:
    """Return what a person sees."""
    console = Console(record=True, width=200)
    assert outcome.show is not None
    outcome.show(console)
    return console.export_text()


def test_the_newest_are_listed_first_with_what_is_missing(settings: StackSettings) -> None:
    """What a text holds does not reach the terminal as a command."""
    outcome = list_letters(settings, 20)

    assert [415, 422] == [one["status"] for one in outcome.payload["letters"]]
    assert (2, 4, 1) == tuple(outcome.payload[name] for name in ("kept", "lost", "unreadable"))
    assert {"illegal_characters": 1, "schema": 1} == outcome.payload["by_reason"]
    assert "aa'a··[00a" in shown(outcome)
    assert "\x1b" not in shown(outcome)
    validate("deadletters", Stopwatch().stamp(outcome.payload))
    assert 1 == len(list_letters(settings, 1).payload["letters"])


def test_one_is_shown_by_the_beginning_of_its_id(settings: StackSettings) -> None:
    """One that is not there, or not the only one, is a clear error."""
    letter = list_letters(settings, 20).payload["letters"][1]
    outcome = show_letter(settings, letter["id"][:10])

    assert letter == outcome.payload["letter"]
    assert "illegal_characters" in shown(outcome)
    assert "\x1b" not in shown(outcome)
    validate("deadletters", Stopwatch().stamp(outcome.payload))
    with pytest.raises(CannotRun, match="no dead letter begins with 'zz'"):
        show_letter(settings, "zz")
    with pytest.raises(CannotRun, match="2 dead letters begin"):
        show_letter(settings, "")


def test_a_purge_removes_all(settings: StackSettings) -> None:
    """And says how much; a second one finds nothing."""
    outcome = purge_letters(settings)

    assert outcome.payload["purged_bytes"] > 0
    assert "removed" in shown(outcome)
    validate("deadletters", Stopwatch().stamp(outcome.payload))
    assert 0 == list_letters(settings, 20).payload["kept"]
    assert 0 == purge_letters(settings).payload["purged_bytes"]
