"""The file: a tar.gz of plain files and a manifest with their checksums, trusted in nothing when it is opened.

Bounded   the limits below, on packed and unpacked bytes, members and names; at most one member is in memory at a time.
Error     a file that is cut, damaged, larger than allowed, or holds anything but plain files of plain names is refused
          before anything of it is used. The checksums tell damage, not forgery: whoever writes a file writes them too.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import secrets
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from inferdeck.errors import CannotRun

__all__ = ["FORMAT", "MANIFEST", "pack", "unpack"]

FORMAT = 1
MANIFEST = "manifest.json"
# fifteen minutes of 100 requests a second are about 80 MB unpacked and 10 MB packed
MOST_PACKED_BYTES = 256 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024
MOST_MEMBERS = 256
MOST_MANIFEST_BYTES = 1024 * 1024
BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1024 * 1024
# no leading dot, no empty part, three parts at most: nothing that could leave the folder or hide in it
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,90}(/[A-Za-z0-9][A-Za-z0-9._-]{0,90}){0,2}")
MEND = "ask for the bundle again, or make it anew with `inferdeck bundle`"


class _RefusedError(Exception):
    """The file is no bundle that may be used; the text says why."""


class _Source(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most so many bytes."""


def pack(folder: Path, target: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Write a bundle of all files below *folder*, whole or not at all, readable by its owner alone.

    Args:
        folder: What goes in.
        target: The file; replaced if it is there.
        manifest: What is said about it; `format` and `members` are added.

    Returns:
        The manifest as written.

    Raises:
        CannotRun: If it would be larger than what can be read back.
        OSError: If it cannot be written.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    members = [
        {"name": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": _digest(path)}
        for path in paths
    ]
    total = sum(int(str(member["bytes"])) for member in members)
    if total > MOST_BYTES - MOST_MANIFEST_BYTES or len(members) >= MOST_MEMBERS:
        raise CannotRun(
            f"the bundle would hold {len(members)} files of {total} bytes", "take a shorter time, such as --since 5m"
        )
    full = {"format": FORMAT, **manifest, "members": members}
    text = json.dumps(full, indent=1, ensure_ascii=False).encode()
    # beside the target: a bundle is there whole or not at all, also when the disk is full half-way
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            # the manifest first, so that whoever opens the file by hand sees at once what it is
            with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT, compresslevel=6) as archive:
                _add(archive, MANIFEST, io.BytesIO(text), len(text))
                for path, member in zip(paths, members, strict=True):
                    with path.open("rb") as source:
                        _add(archive, str(member["name"]), source, int(str(member["bytes"])))
            file.flush()
            os.fsync(file.fileno())
        if temporary.stat().st_size > MOST_PACKED_BYTES:
            raise CannotRun(f"the bundle would be larger than {MOST_PACKED_BYTES} bytes", "take a shorter time")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return full


def unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack a bundle into an empty private folder and return its manifest.

    Args:
        path: The file.
        folder: Where to; nothing of it may be used when this raises.

    Raises:
        CannotRun: If it cannot be read, or is no bundle that may be used.
    """
    try:
        with path.open("rb") as raw:
            if os.fstat(raw.fileno()).st_size > MOST_PACKED_BYTES:
                raise _RefusedError(f"larger than {MOST_PACKED_BYTES} bytes")
            with gzip.GzipFile(fileobj=raw) as stream:
                found = _unpack_members(stream, folder)
        return _checked(found, folder)
    except OSError as error:
        raise CannotRun(f"cannot read the bundle {path}: {error.strerror or error}", MEND) from error
    except (_RefusedError, EOFError, zlib.error, tarfile.TarError, ValueError, RecursionError) as error:
        raise CannotRun(f"{path} is refused: {error}", MEND) from error


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], size: int) -> None:
    info = tarfile.TarInfo(name)
    # no owner, no time: they would tell about the machine, and nothing reads them
    info.size, info.mode = size, 0o600
    archive.addfile(info, source)


def _unpack_members(stream: _Source, folder: Path) -> dict[str, tuple[int, str]]:
    """Write the members and return name -> (bytes, sha256).

    Read by hand, block for block: tarfile itself would follow long-name and extended headers of any size.
    """
    found: dict[str, tuple[int, str]] = {}
    total = 0
    while True:
        head = stream.read(BLOCK)
        if len(head) < BLOCK:
            raise _RefusedError("it is cut")
        if not any(head):
            break
        # checks the header's own sum as well
        info = tarfile.TarInfo.frombuf(head, "utf-8", "strict")
        if info.type not in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            raise _RefusedError(f"{info.name[:80]!r} is no plain file")
        if not NAME.fullmatch(info.name) or info.name in found:
            raise _RefusedError(f"a member is called {info.name[:80]!r}")
        # judged by what the header promises, before a byte of it is unpacked
        total += info.size
        if info.size < 0 or total > MOST_BYTES or len(found) >= MOST_MEMBERS:
            raise _RefusedError(f"it holds more than {MOST_BYTES} bytes or {MOST_MEMBERS} files")
        found[info.name] = (info.size, _write_member(stream, folder / info.name, info.size))
        stream.read(-info.size % BLOCK)
    # to the end, so that gzip's own checksum is judged; a tar ends in zeros, at most a record of them
    rest = stream.read(20 * BLOCK + 1)
    if len(rest) > 20 * BLOCK or any(rest):
        raise _RefusedError("there is something behind its end")
    return found


def _write_member(stream: _Source, target: Path, size: int) -> str:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while size:
            chunk = stream.read(min(size, CHUNK_BYTES))
            if not chunk:
                raise _RefusedError("it is cut")
            digest.update(chunk)
            file.write(chunk)
            size -= len(chunk)
    return digest.hexdigest()


def _checked(found: dict[str, tuple[int, str]], folder: Path) -> dict[str, Any]:
    if MANIFEST not in found or found[MANIFEST][0] > MOST_MANIFEST_BYTES:
        raise _RefusedError("it has no manifest")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _RefusedError(f"its format is not {FORMAT}")
    try:
        listed = {one["name"]: (one["bytes"], one["sha256"]) for one in manifest["members"]}
    except (KeyError, TypeError) as error:
        raise _RefusedError("its manifest has no list of members") from error
    del found[MANIFEST]
    # both ways: what is not listed was checked by nobody, and what lacks may be what matters
    wrong = sorted(name for name in listed.keys() | found.keys() if listed.get(name) != found.get(name))
    if wrong:
        raise _RefusedError(f"what it holds is not what its manifest says: {', '.join(map(str, wrong[:3]))}")
    return manifest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
