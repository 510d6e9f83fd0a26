"""Lines are followed as files grow; half lines wait, long ones are passed over, and positions go on where they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.stream.files import FileSource
from service.stream.message import Message
from tests.service.stream._queries import raw, write_lines

MOST = 2048


def opened(path: Path, positions: dict[str, int] | None = None) -> FileSource:
    """Return a source that has begun."""
    source = FileSource(path, MOST)
    source.start(positions or {}, 0)
    return source


def read(source: FileSource, most: int = 100) -> list[Message]:
    """Return what is there now."""
    return source.poll(most, 0.0)


def test_lines_come_in_the_order_of_names_and_once(tmp_path: Path) -> None:
    """From the second on only what was added."""
    write_lines(tmp_path / "b.jsonl", [b"3"])
    write_lines(tmp_path / "a.jsonl", [b"1", b"", b"2"])
    (tmp_path / "c.txt").write_bytes(b"no\n")
    source = opened(tmp_path)

    assert [b"1", b"2", b"3"] == [one.value for one in read(source)]
    write_lines(tmp_path / "a.jsonl", [b"4"])
    assert [(b"4", "a.jsonl")] == [(one.value, one.partition) for one in read(source)]
    assert [] == read(source)


def test_a_position_goes_on_behind_its_message(tmp_path: Path) -> None:
    """Whatever of the file was read before."""
    write_lines(tmp_path / "a.jsonl", [b"1", b"22", b"333"])
    first = read(opened(tmp_path), 2)[-1]

    assert [b"333"] == [one.value for one in read(opened(tmp_path, {"a.jsonl": first.position}))]


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    """And holds nobody up meanwhile: its writer may have been killed."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"1\n2")
    source = opened(tmp_path)

    assert [b"1"] == [one.value for one in read(source)]
    assert [] == read(source)
    assert (frozenset(), 0) == (source.backlog().behind, source.backlog().messages)
    write_lines(file, [b"2"])
    assert [b"22"] == [one.value for one in read(source)]


def test_a_line_that_is_too_long_is_told_and_passed_over(tmp_path: Path) -> None:
    """Ten megabytes are not held."""
    write_lines(tmp_path / "a.jsonl", [b"1", b"x" * (10 << 20), b"2"])
    found = read(opened(tmp_path))

    assert [b"1", None, b"2"] == [one.value for one in found]
    assert (10 << 20) + 1 == found[1].size


def test_a_file_that_was_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    """As after a rotation that copies and truncates."""
    file = tmp_path / "a.jsonl"
    write_lines(file, [b"11111", b"22222"])
    source = opened(tmp_path)
    read(source)
    write_lines(file, [b"3"], "wb")

    assert [b"3"] == [one.value for one in read(source)]


def test_removed_files_are_told_once(tmp_path: Path) -> None:
    """So that their positions do not add up for ever."""
    write_lines(tmp_path / "a.jsonl", [b"1"])
    source = opened(tmp_path)
    read(source)
    (tmp_path / "a.jsonl").unlink()

    assert ["a.jsonl"] == list(source.gone())
    assert [] == list(source.gone())


def test_what_waits_is_told_in_messages(tmp_path: Path) -> None:
    """By the size of those that were read: all of them are alike here."""
    write_lines(tmp_path / "a.jsonl", [raw(number) for number in range(1000, 1600)])
    source = opened(tmp_path)
    for _ in range(30):
        read(source, 10)
    backlog = source.backlog()

    assert frozenset({"a.jsonl"}) == backlog.behind
    assert backlog.messages == pytest.approx(300, rel=0.05)


def test_a_line_may_bring_headers(tmp_path: Path) -> None:
    """In an envelope; what only looks like one is a message as it stands."""
    trace = b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01"
    write_lines(
        tmp_path / "a.jsonl",
        [b'{"headers": {"traceparent": "' + trace + b'"}, "value": ' + raw(1) + b"}", b'{"headers": 5}'],
    )
    found = read(opened(tmp_path))

    assert ([("traceparent", trace)], b'{"headers": 5}') == (found[0].headers, found[1].value)
    assert b'"session_id"' in (found[0].value or b"")


def test_one_file_is_a_source_too_and_may_come_later(tmp_path: Path) -> None:
    """Until it is there, the source does not answer."""
    source = opened(tmp_path / "a.jsonl")

    assert ([], False) == (read(source), source.backlog().up)
    write_lines(tmp_path / "a.jsonl", [b"1"])
    assert ([b"1"], True) == ([one.value for one in read(source)], source.backlog().up)
