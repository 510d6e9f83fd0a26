"""Takes a session out of a bundle that we keep: unpacked, erased, packed anew under the same name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from inferdeck.bundle.container import MANIFEST, pack
from inferdeck.bundle.replay import opened
from inferdeck.erase_files import Words, in_json, in_log

__all__ = ["erase_in_bundle"]


def erase_in_bundle(path: Path, hashes: Collection[int], words: Words) -> int:
    """Erase a session in a bundle, and return in how many places it was.

    Args:
        path: The file; it is left as it is when the session is not in it.
        hashes: Keyed hashes of the session.
        words: Texts by which it is spoken of.

    Raises:
        CannotRun: If it is no bundle that may be used.
        OSError: If it cannot be written.
    """
    from probes.eraser import erase_session

    with opened(path) as (folder, manifest):
        # written anew by `pack`, with the new checksums
        (folder / MANIFEST).unlink()
        count = 0
        for ring in sorted(folder.glob("rings/*.ring")):
            # copies have no owner, so that every row is in reach
            done = erase_session(ring, hashes)
            count += done.rows + done.slots
        count += sum(in_json(one, words) for one in sorted(folder.glob("*.json")))
        count += sum(in_log(one, words) for one in sorted(folder.glob("logs/*")))
        if count:
            pack(folder, path, {key: value for key, value in manifest.items() if key not in {"format", "members"}})
        return count
