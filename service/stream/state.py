"""What the stream remembers, in RocksDB: windows, counts, seen messages, and how far each part of the source is read.

All that a batch changes is one atomic write, the positions in it: whoever is killed at any point goes on from a state
in which each message is counted wholly or not at all, whatever the source believes was read.

Kept      w<minute> a window; s<minute><identity> a message that it counts; p<partition> a position; t totals.
Bounded   seen messages live as long as their window can be corrected (some 20 bytes each); windows for a day. RocksDB
          itself holds 32 MiB of unwritten changes and a cache of 16 MiB at most.
Absent    damage of any kind: the folder is put aside (one such is kept), a fresh one begins, and that is said.
"""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import shutil
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch

from service.stream.windows import Damaged, Window

__all__ = ["Changes", "State", "StateFailed", "Totals", "open_state"]

_MINUTE: Final = struct.Struct(">I")
_FORMAT: Final = 1
_BUFFER_BYTES: Final = 16 << 20
_CACHE_BYTES: Final = 16 << 20
# By this process, and by another one.
_TAKEN: Final = ("lock hold by", "while lock file", "no locks available")
# What a damaged state says besides its own word: parts are missing, or are not what they were said to be.
_DAMAGE: Final = ("corruption", "checksum", "no such file", "does not exist", "mismatch", "invalid argument")


class StateFailed(Exception):  # noqa: N818 - says what happened
    """The state cannot be written or read now.

    Args:
        reason: full, damaged, taken or other.
        detail: In RocksDB's words.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


@dataclass(slots=True)
class Totals:
    """Counts since the state began, and the marks of time; stored with the windows, so that no kill counts twice.

    Attributes:
        counts: By name and label; words of our code, hence bounded.
        marks: Latest event time of each part of the source.
        horizon_ns: Windows that ended before are closed for good.
        rebuilds: How often a damaged state was begun anew.
    """

    counts: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    horizon_ns: int = 0
    rebuilds: int = 0

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + number

    def copy(self) -> Totals:
        """Return totals that may be changed without these."""
        return Totals(dict(self.counts), dict(self.marks), self.horizon_ns, self.rebuilds)


@dataclass(slots=True)
class Changes:
    """What one batch changes.

    Attributes:
        windows: Windows as they are then.
        seen: Keys of messages that are counted now.
        totals: All totals as they are then.
        positions: Where each part of the source is read on from.
        gone: Parts of the source that are no longer there.
        closed: Windows up to which seen messages are forgotten; None for none.
        dropped: Windows that are no longer kept.
    """

    windows: Mapping[int, Window]
    seen: Iterable[bytes]
    totals: Totals
    positions: Mapping[str, int]
    gone: Sequence[str] = ()
    closed: int | None = None
    dropped: Sequence[int] = ()


class State:
    """An open state; one process at a time may have it.

    Args:
        path: RocksDB's folder.

    Raises:
        StateFailed: If it cannot be opened: damaged, taken by another process, no room.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        fresh = not path.is_dir() or not any(path.iterdir())
        self._db = _open(path)
        try:
            self._load(fresh=fresh)
        except StateFailed:
            self._db.close()
            raise
        except Exception as error:  # RocksDB's own class of errors is Exception itself
            self._db.close()
            raise _failed(error) from error

    def _load(self, *, fresh: bool) -> None:
        stored = self._db.get(b"m")
        if stored is None:
            if not fresh:
                # a shortened manifest: RocksDB opens what it still tells of, which may be nothing
                raise StateFailed("damaged", "there is a state, and nothing in it")
            stored = json.dumps({"format": _FORMAT, "key": secrets.token_hex(16)}).encode()
            self._db.put(b"m", stored)
        try:
            about = json.loads(stored)
            if about["format"] != _FORMAT:
                raise StateFailed("damaged", f"a state of format {about['format']}")
            self.key = bytes.fromhex(about["key"])
            raw = json.loads(self._db.get(b"t") or b"{}")
            self.totals = Totals(**raw)
            self.windows = {}
            self.positions = {}
            for key, value in self._within(b"w", b"x"):
                minute = _MINUTE.unpack(key[1:])[0]
                self.windows[minute] = Window.unpack(minute, value)
            for key, value in self._within(b"p", b"q"):
                self.positions[key[1:].decode()] = int(value)
        except (Damaged, KeyError, TypeError, ValueError, struct.error) as error:
            raise StateFailed("damaged", str(error)) from error

    def _within(self, begin: bytes, end: bytes) -> Iterable[tuple[bytes, bytes]]:
        key: Any
        for key, value in self._db.items(from_key=begin):
            if key >= end:
                return
            yield key, value

    def seen_key(self, minute: int, identity: bytes) -> bytes:
        """Return the key under which a counted message is remembered."""
        return b"s" + _MINUTE.pack(minute) + identity

    def known(self, keys: Sequence[bytes]) -> list[bool]:
        """Return of each key whether its message is counted already.

        Raises:
            StateFailed: If it cannot be read.
        """
        if not keys:
            return []
        try:
            found: Any = self._db.get(list(keys))
        except Exception as error:
            raise _failed(error) from error
        return [one is not None for one in found]

    def commit(self, changes: Changes) -> None:
        """Write a batch's changes, all or none.

        Raises:
            StateFailed: If they were not written; the state is as before, and may have to be opened anew.
        """
        batch = WriteBatch(raw_mode=True)
        if changes.closed is not None:
            batch.delete_range(b"s" + _MINUTE.pack(0), b"s" + _MINUTE.pack(changes.closed + 1))
        for key in changes.seen:
            batch.put(key, b"")
        for minute, window in changes.windows.items():
            batch.put(b"w" + _MINUTE.pack(minute), window.pack())
        for minute in changes.dropped:
            batch.delete(b"w" + _MINUTE.pack(minute))
        for partition, position in changes.positions.items():
            batch.put(b"p" + partition.encode(), str(position).encode())
        for partition in changes.gone:
            batch.delete(b"p" + partition.encode())
        totals = changes.totals
        stored = {
            "counts": totals.counts,
            "marks": totals.marks,
            "horizon_ns": totals.horizon_ns,
            "rebuilds": totals.rebuilds,
        }
        batch.put(b"t", json.dumps(stored).encode())
        try:
            self._db.write(batch)
        except Exception as error:
            raise _failed(error) from error
        self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        self.windows.update(changes.windows)
        for minute in changes.dropped:
            self.windows.pop(minute, None)
        self.positions.update(changes.positions)
        for partition in changes.gone:
            self.positions.pop(partition, None)
        self.totals = changes.totals

    def close(self) -> None:
        """Close it; what was committed is on disk."""
        with contextlib.suppress(Exception):
            self._db.close()


def open_state(path: Path, damage: str | None = None) -> tuple[State, str | None]:
    """Return the state in a folder, begun anew when it is damaged, and what was wrong then.

    Args:
        path: RocksDB's folder; made when it is not there.
        damage: What was found while it was read: opening alone does not look at everything.

    Raises:
        StateFailed: If it cannot be opened for another reason: another process has it, no room.
    """
    if damage is None:
        try:
            return State(path), None
        except StateFailed as error:
            if error.reason != "damaged":
                raise
            damage = str(error)
    aside = path.with_name(f"{path.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    state = State(path)
    state.totals.rebuilds += 1
    return state, damage


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_paranoid_checks(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    table = BlockBasedOptions()
    table.set_block_cache(Cache(_CACHE_BYTES))
    # most looks are for messages that are new
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    return options


def _open(path: Path) -> Rdict:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Rdict(str(path), options=_options())
    except OSError as error:
        raise StateFailed("full" if error.errno == errno.ENOSPC else "other", str(error)) from error
    except Exception as error:
        raise _failed(error) from error


def _failed(error: Exception) -> StateFailed:
    """Return what RocksDB's words mean."""
    told = " ".join(str(error).split())[:300]
    low = told.lower()
    if "no space" in low or "spacelimit" in low:
        return StateFailed("full", told)
    if any(word in low for word in _TAKEN):
        return StateFailed("taken", told)
    if any(word in low for word in _DAMAGE):
        return StateFailed("damaged", told)
    return StateFailed("other", told)
