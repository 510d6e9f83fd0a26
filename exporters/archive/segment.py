"""One sealed segment of the archive: a zip file of numpy arrays, which `numpy.load` opens as well.

`session_hash.npy`, `trace_lo.npy`   stored as they are, one number a row: what a look-up scans, 16 bytes a row.
`block-0000.npy`, ...                deflated; up to 1,024 rows of one ring file by bytes: the first row, for each of
                                     its bytes whether other rows differ there, then each byte that differs, of all
                                     rows side by side. The two columns above are 0 here.
`meta.json`                          per ring file: header, columns, texts, sequence numbers; per block: times, faults.

Zip and numpy, not Parquet: the archive has to be on by default, and pyarrow is 170 MB installed, more than all else
that this package needs. Services declare columns of their own, which a block holds without a schema being translated.
The figures of both are in CONTRIBUTING.md.

Cost      about 2 us of CPU to write a row, in a third of its bytes; a hit inflates its block of 1,024 rows (1 ms).
Bounded   a segment is encoded in memory: by the rows that the archiver hands over (`archive_rows`).
Error     every member has a CRC; damage costs the segment and is told.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.archive.blocks import INDEXED, BlockInfo, Part, part_of, unpack

__all__ = [
    "PART_SUFFIX",
    "READ_ERRORS",
    "SUFFIX",
    "VERSION",
    "Segment",
    "SegmentDamagedError",
    "list_segments",
    "times_of",
]

Rows = npt.NDArray[Any]

SUFFIX: Final = ".npz"
PART_SUFFIX: Final = ".part"
VERSION: Final = 1
# A member beyond this is not ours: 1,024 rows of the largest size (65,536 bytes) are 64 MiB.
MAX_MEMBER_BYTES: Final = 128 << 20
_PLAIN_INDEX: Final = re.compile(rb"\x93NUMPY\x01\x00..\{'descr': '<u8', 'fortran_order': False, [^\n]*\n", re.DOTALL)
# A zip's local header: magic, flags, method, CRC-32, packed size, lengths of name and extra field (APPNOTE 4.3.7).
_LOCAL: Final = struct.Struct("<4s2xHH4xII4xHH")
_SIZES_FOLLOW: Final = 8
_NAME: Final = re.compile(r"(\d{19})-(\d{19})-[0-9a-f]{8}" + re.escape(SUFFIX))


class SegmentDamagedError(Exception):
    """A segment cannot be read; the message names it and says why."""


# What reading one can raise; vanished ones (retention) raise OSError.
READ_ERRORS: Final = (SegmentDamagedError, OSError)


def list_segments(folder: Path) -> list[Path]:
    """Return the sealed segments of a folder, oldest first; empty if there is no such folder.

    Raises:
        OSError: If the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return [folder / name for name in sorted(entry.name for entry in entries) if _NAME.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def times_of(path: Path) -> tuple[int, int]:
    """Return the start of a segment's first request and the end of its last, ns since 1970, from its name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path.name} is no segment's name")
    return int(match[1]), int(match[2])


class Segment:
    """A sealed segment opened for reading.

    Args:
        path: The file.

    Raises:
        SegmentDamagedError: If it is none, or damaged.
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._meta: dict[str, Any] | None = None
        self._index: dict[str, Rows] = {}
        self._file = path.open("rb")
        self._opened: zipfile.ZipFile | None = None

    def __enter__(self) -> Segment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def _zip(self) -> zipfile.ZipFile:
        """The file as a zip; its directory takes 0.5 ms to be read, and a look-up that finds nothing does without."""
        if self._opened is None:
            try:
                self._opened = zipfile.ZipFile(self._file)
            except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
                raise SegmentDamagedError(f"{self.path.name}: {error}") from error
        return self._opened

    def positions(self, column: str, wanted: Sequence[int]) -> list[int]:
        """Return where in the segment rows have one of the wanted numbers.

        Args:
            column: `session_hash` or `trace_lo`.
            wanted: The numbers, a few.
        """
        values = self._indexed(column)
        hits = np.zeros(len(values), dtype=bool)
        for number in wanted:
            hits |= values == np.uint64(number)
        found: list[int] = np.flatnonzero(hits).tolist()
        return found

    def blocks(self) -> list[BlockInfo]:
        """Return what is known of each block."""
        return [self._parsed(lambda fields: BlockInfo(*map(int, fields)), entry) for entry in self._described("blocks")]

    def ranges(self) -> dict[str, int]:
        """Return up to which sequence number each ring file is archived with this segment, by the file's name."""
        return {
            str(part["ring"]): self._parsed(lambda part: int(part["next_seq"]), part)
            for part in self._described("parts")
        }

    def read(self, block: int) -> Part:
        """Return the rows of a block, as they were in their ring file.

        Args:
            block: Its index in `blocks`.
        """
        info = self.blocks()[block]
        part = self._parsed(lambda parts: part_of(parts[info.part]), self._described("parts"))
        packed = self._array(f"block-{block:04d}")
        rows: Rows = self._parsed(lambda packed: unpack(packed, info.rows, part.rows.dtype), packed)
        for column in INDEXED:
            rows[column] = self._indexed(column)[info.at : info.at + info.rows]
        return Part(part.ring, part.header, part.strings, rows, part.next_seq)

    def parts(self) -> Iterator[Part]:
        """Yield all blocks, in order."""
        for block in range(len(self.blocks())):
            yield self.read(block)

    def _indexed(self, column: str) -> Rows:
        """Return one of the two columns that are stored apart."""
        if column not in self._index:
            raw = self._stored(f"{column}.npy") or self._bytes(f"{column}.npy")
            # numpy parses a header by Python's own compiler: most of the time of a look-up over a hundred segments.
            plain = _PLAIN_INDEX.match(raw)
            self._index[column] = np.frombuffer(raw, "<u8", offset=plain.end()) if plain else self._array(column)
        return self._index[column]

    def _described(self, key: str) -> list[Any]:
        """Return one list of meta.json."""
        if self._meta is None:
            meta = self._parsed(json.loads, self._bytes("meta.json"))
            if not isinstance(meta, dict) or meta.get("version") != VERSION:
                raise SegmentDamagedError(f"{self.path.name}: not of version {VERSION}")
            self._meta = meta
        found = self._meta.get(key)
        if not isinstance(found, list):
            raise SegmentDamagedError(f"{self.path.name}: meta.json has no {key}")
        return found

    def _parsed(self, parse: Callable[[Any], Any], raw: Any) -> Any:
        """Return what *parse* makes of *raw*, its errors as damage."""
        try:
            return parse(raw)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SegmentDamagedError(f"{self.path.name}: {error!r}") from error

    def _array(self, member: str) -> Rows:
        """Return an array of the file."""
        raw = io.BytesIO(self._bytes(f"{member}.npy"))
        array: Rows = self._parsed(lambda file: np.lib.format.read_array(file, allow_pickle=False), raw)
        return array

    def _stored(self, member: str) -> bytes | None:
        """Return one of the members that stand first and as they are; None where anything is not as we write it."""
        at = 0
        for _ in INDEXED:
            head = os.pread(self._file.fileno(), _LOCAL.size + len(member), at)
            if len(head) < _LOCAL.size:
                return None
            magic, flags, method, crc, size, name_size, extra_size = _LOCAL.unpack_from(head)
            if magic != b"PK\3\4" or flags & _SIZES_FOLLOW or method != zipfile.ZIP_STORED or size > MAX_MEMBER_BYTES:
                return None
            start = at + _LOCAL.size + name_size + extra_size
            if head[_LOCAL.size : _LOCAL.size + name_size] == member.encode():
                body = os.pread(self._file.fileno(), size, start)
                return body if len(body) == size and zlib.crc32(body) == crc else None
            at = start + size
        return None

    def _bytes(self, member: str) -> bytes:
        """Return a member, checked against its CRC."""
        try:
            if self._zip.getinfo(member).file_size > MAX_MEMBER_BYTES:
                raise SegmentDamagedError(f"{self.path.name}: {member} is too large to be one of ours")
            return self._zip.read(member)
        # RuntimeError: a flipped bit that claims encryption.
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, RuntimeError) as error:
            raise SegmentDamagedError(f"{self.path.name}: {member}: {error}") from error
