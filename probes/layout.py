"""The byte layout of a ring file: what writer and reader must agree on, and nothing else.

docs/row-format.md tells the same for people. Every number is little endian; every section starts on a page of its own.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Final

__all__ = [
    "COMMIT",
    "ENTRY",
    "FORMAT_VERSION",
    "FRAME",
    "HEADER_BYTES",
    "MAGIC",
    "MAX_REVISIONS",
    "MAX_STAGES",
    "OPEN_SLOT",
    "OPEN_SLOT_BYTES",
    "OPEN_STATE_BUSY",
    "OPEN_STATE_FREE",
    "SCHEMA_BYTES",
    "STATUS",
    "STATUS_BYTES",
    "STRING_BYTES",
    "STRING_ENTRIES",
    "Layout",
    "NotARing",
    "RingError",
    "UnknownVersion",
    "decode_header",
    "encode_entry",
    "encode_header",
    "plan_layout",
]

MAGIC: Final = b"inferdk\n"
FORMAT_VERSION: Final = 1

PAGE: Final = 4096
HEADER_BYTES: Final = PAGE
# 32 blocked episodes with 12 frames of about 80 characters are 32 KiB of JSON: one page of 16 KiB would lose half.
STATUS_BYTES: Final = 16 * PAGE
SCHEMA_BYTES: Final = 32 * PAGE
STRING_ENTRIES: Final = 4096
STRING_BYTES: Final = 64
MAX_REVISIONS: Final = 64
MAX_STAGES: Final = 255  # the stage of an open slot is one byte, so that entering a stage is one store
OPEN_SLOT_BYTES: Final = 128

OPEN_STATE_FREE: Final = 0
OPEN_STATE_BUSY: Final = 1

HEAD: Final = struct.Struct("<8sHHII")  # magic, version, reserved, JSON length, CRC of the JSON
STATUS: Final = struct.Struct("<QII")  # sequence, JSON length, CRC of the JSON
ENTRY: Final = struct.Struct("<II")  # JSON length (written last), CRC of the JSON
COMMIT: Final = struct.Struct("<Q")  # sequence number + 1; 0 = never written
FRAME: Final = struct.Struct("<QIHH")  # commit word, CRC of the body, revision, body length
# state, stage, reserved, ticket, trace high, trace low, span, parent span, start, session hash, session; string ids of
# method, client release, device type and agent family
OPEN_SLOT: Final = struct.Struct("<BB6xQQQQQQQ32sIIII")


class RingError(Exception):
    """A ring file cannot be used."""


class NotARing(RingError):  # noqa: N818  named for what the file is
    """The file is no ring file, or a damaged or truncated one."""


class UnknownVersion(RingError):  # noqa: N818  as above
    """The file was written by a version of this format that this reader does not know."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the sections of one file are; all in bytes from its start.

    Attributes:
        row_bytes: Bytes of one row with its frame of 16 bytes.
        ring_rows: Rows in the ring.
        open_slots: Requests in flight that can be told apart; one scratch slot follows them.
        status: Start of the status page.
        schema: Start of the journal of schema revisions.
        strings: Start of the string table.
        open: Start of the table of open slots.
        hashes: Start of the column of session hashes.
        ring: Start of the rows.
        total: Size of the file.
    """

    row_bytes: int
    ring_rows: int
    open_slots: int
    status: int
    schema: int
    strings: int
    open: int
    hashes: int
    ring: int
    total: int


def plan_layout(row_bytes: int, ring_rows: int, open_slots: int) -> Layout:
    """Return the layout for these sizes.

    Args:
        row_bytes: Bytes of one row with its frame; a multiple of 8, 512 to 65,536.
        ring_rows: Rows in the ring; 16 to 16,777,216.
        open_slots: Open slots; 1 to 65,536.

    Raises:
        ValueError: If a size is out of its range: the commit words must stay aligned and the file bounded.
    """
    if row_bytes % 8 or not 512 <= row_bytes <= 65536:
        raise ValueError(f"row_bytes must be a multiple of 8 from 512 to 65536, not {row_bytes}")
    if not 16 <= ring_rows <= 1 << 24:
        raise ValueError(f"ring_rows must be from 16 to 16777216, not {ring_rows}")
    if not 1 <= open_slots <= 1 << 16:
        raise ValueError(f"open_slots must be from 1 to 65536, not {open_slots}")
    status = HEADER_BYTES
    schema = status + STATUS_BYTES
    strings = schema + SCHEMA_BYTES
    open_at = strings + STRING_ENTRIES * STRING_BYTES
    hashes = open_at + _pages((open_slots + 1) * OPEN_SLOT_BYTES)
    ring = hashes + _pages(ring_rows * 8)
    return Layout(
        row_bytes, ring_rows, open_slots, status, schema, strings, open_at, hashes, ring, ring + ring_rows * row_bytes
    )


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def encode_header(meta: dict[str, Any], layout: Layout) -> bytes:
    """Return the header page: magic, version and the JSON of *meta* and *layout* under a CRC.

    Args:
        meta: Flat JSON values: service, host, pid, fingerprints, clock anchors.
        layout: The sections of the file.

    Raises:
        ValueError: If the JSON does not fit the page.
    """
    body = json.dumps({**meta, "layout": asdict(layout)}, separators=(",", ":")).encode()
    if len(body) > HEADER_BYTES - HEAD.size:
        raise ValueError(f"header of {len(body)} bytes does not fit its page of {HEADER_BYTES}")
    return HEAD.pack(MAGIC, FORMAT_VERSION, 0, len(body), zlib.crc32(body)) + body


def decode_header(page: bytes, file_size: int, name: str) -> tuple[dict[str, Any], Layout]:
    """Return the meta data and the layout that a header page holds.

    Args:
        page: The first ``HEADER_BYTES`` of the file, or fewer if it is shorter.
        file_size: Size of the file in bytes, against which the layout is checked.
        name: What to call the file in an error.

    Raises:
        NotARing: If the magic, the CRC, the JSON or the layout is wrong, or the file is shorter than its layout.
        UnknownVersion: If the version is not ``FORMAT_VERSION``.
    """
    if len(page) < HEAD.size:
        raise NotARing(f"{name}: {len(page)} bytes are too few for a ring file")
    magic, version, _, length, crc = HEAD.unpack_from(page)
    if magic != MAGIC:
        raise NotARing(f"{name}: not a ring file (its magic is wrong)")
    if version != FORMAT_VERSION:
        raise UnknownVersion(f"{name}: format version {version}; this reader knows {FORMAT_VERSION} only")
    body = page[HEAD.size : HEAD.size + length]
    if len(body) != length or zlib.crc32(body) != crc:
        raise NotARing(f"{name}: the header is damaged")
    try:
        meta = json.loads(body)
        stored = meta.pop("layout")
        layout = plan_layout(stored["row_bytes"], stored["ring_rows"], stored["open_slots"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotARing(f"{name}: the header is damaged ({error})") from error
    if asdict(layout) != stored:
        raise NotARing(f"{name}: the header's sections contradict its sizes")
    if file_size < layout.total:
        raise NotARing(f"{name}: truncated, {file_size} bytes of {layout.total}")
    return meta, layout


def encode_entry(value: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return head and body of one journal entry; the writer stores the body first.

    Args:
        value: What the entry says, as JSON values.
    """
    body = json.dumps(value, separators=(",", ":")).encode()
    return ENTRY.pack(len(body), zlib.crc32(body)), body
