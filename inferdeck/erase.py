"""`erase`: takes a session out of everything that we keep, and says what was reached, what was not, and what cannot be.

The measurements of its requests stay: a row without an id counts in every figure and tells about nobody.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from exporters.answer import STREAM_ROWS
from inferdeck.erase_files import Words, in_json, in_log, words_of
from inferdeck.errors import CannotRun
from inferdeck.look_up import ring_folder
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings

__all__ = ["Subject", "erase", "run_erase"]

BEYOND_REACH = (
    "spans that were sent to an OTLP target (Jaeger or another) bear session.id: erase them there",
    "backups of these folders, bundles that were handed on, and evidence that `drill --out` put elsewhere",
    "messages in the topics or files that a stream of user queries reads: erase them there",
    "living processes remember a bounded number of recent ids in memory; a restart forgets them",
)
BY_HASH_ALONE = "evidence of drills, whose rows were hashed with keys of their own: give the session id itself"
EVIDENCE = "evidence of a drill"
BY_FIELD_ALONE = (
    "texts of files, if one of them holds this id: it is short or reads like a common word, and was looked for by its "
    "hashes and in session fields alone"
)
MOST_ID_BYTES = 64 * 1024


@dataclass(frozen=True)
class Subject:
    """Whose traces are erased.

    Attributes:
        session_id: As it came in the header or was generated; None when only the hash is known.
        hashes: Keyed hashes that rows may bear.
    """

    session_id: str | None
    hashes: tuple[int, ...]

    @property
    def raw(self) -> bytes:
        """The id as rows hold it; b"" when they hold only its hash."""
        from probes.incoming import valid_session

        raw = (self.session_id or "").encode("utf-8", "surrogateescape")
        return raw if valid_session(raw) else b""

    @property
    def words(self) -> Words:
        """What kept files speak of it by: the id, the short digest of reports, and the hashes."""
        marks = [f"{number:016x}" for number in self.hashes]
        if self.session_id:
            # as runbooks/redaction.py writes it into reports
            digest = hashlib.sha256(self.session_id.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            marks.append(f"sha256:{digest}")
        return words_of(self.session_id, marks)


@dataclass
class Erasure:
    """What came of it.

    Attributes:
        places: Where something was erased: place, path, and how much.
        unreached: What may still hold it: place, path, reason.
        looked_at: Files that were looked through.
    """

    places: list[dict[str, Any]] = field(default_factory=list)
    unreached: list[dict[str, str]] = field(default_factory=list)
    looked_at: int = 0

    def done(self, place: str, path: Path, count: int) -> None:
        """Note what was erased in a file."""
        if count:
            self.places.append({"place": place, "path": str(path), "count": count})

    def missed(self, place: str, path: Path, reason: str) -> None:
        """Note what could not be reached."""
        self.unreached.append({"place": place, "path": str(path), "reason": reason})


def subject_of(session_id: str | None, keyed_hash: str | None, ring_dir: Path, archive: Path) -> Subject:
    """Return whose traces are meant.

    Args:
        session_id: As it came in the header or was generated.
        keyed_hash: 16 hexadecimal digits, as rows and bundles show it.
        ring_dir: Folder of ring files, for its key.
        archive: Folder of the archive, for the keys of earlier starts.

    Raises:
        CannotRun: If neither or both are given, or the hash is none.
    """
    from exporters.archive.keys import hashes_of

    if (session_id is None) == (keyed_hash is None):
        raise CannotRun("whose traces?", "give a SESSION_ID (or - to read it from stdin), or --hash HASH")
    if keyed_hash is not None:
        if not re.fullmatch(r"[0-9a-fA-F]{16}", keyed_hash):
            raise CannotRun("a hash is 16 hexadecimal digits", "take it from a bundle, or give the session id itself")
        return Subject(None, (int(keyed_hash, 16),))
    assert session_id is not None  # noqa: S101  # one of the two, as above
    if not session_id or len(session_id) > MOST_ID_BYTES:
        raise CannotRun(f"a session id has 1 to {MOST_ID_BYTES} characters", "give the id as the client sent it")
    return Subject(session_id, tuple(hashes_of(session_id, ring_dir, archive)))


def run_erase(settings: StackSettings, session_id: str | None, keyed_hash: str | None) -> Outcome:
    """Erase a session from what the stack of these settings keeps.

    Args:
        settings: Folders.
        session_id: As it came in the header or was generated.
        keyed_hash: Its keyed hash instead.
    """
    ring_dir, state_dir = ring_folder(settings), settings.state_path
    subject = subject_of(session_id, keyed_hash, ring_dir, state_dir / "archive")
    erasure = erase(subject, ring_dir, state_dir)
    payload = {
        "hashes": [f"{number:016x}" for number in subject.hashes],
        "looked_at": erasure.looked_at,
        "places": erasure.places,
        "unreached": erasure.unreached,
        "beyond_reach": [*BEYOND_REACH, *_left_by_what_is_known(subject)],
    }
    return Outcome(payload, int(bool(erasure.unreached)), lambda console: _show(console, payload))


def _left_by_what_is_known(subject: Subject) -> list[str]:
    if subject.session_id is None:
        return [BY_HASH_ALONE]
    return [] if subject.session_id in subject.words.tokens else [BY_FIELD_ALONE]


def erase(subject: Subject, ring_dir: Path, state_dir: Path) -> Erasure:
    """Erase a session from rows, archive, evidence, bundles, reports and logs; doing so twice does no harm.

    Args:
        subject: Whose traces.
        ring_dir: Folder of ring files.
        state_dir: State folder.
    """
    erasure = Erasure()
    _closed_folders(ring_dir, state_dir, erasure)
    # rows before the archive: what the exporter seals from then on is masked already
    for path in sorted(ring_dir.glob("*.ring")):
        _ring(subject, path, "rows", erasure)
    of_stream = in_stream(subject, ring_dir / STREAM_ROWS)
    for path in sorted((ring_dir / STREAM_ROWS).glob("*.ring")):
        _ring(of_stream, path, "rows of the stream", erasure)
    _archive(subject, state_dir / "archive", "archive", erasure)
    archives = sorted(path for path in state_dir.glob("drills/**/archive") if path.is_dir())
    there = in_evidence(subject, archives)
    for path in sorted(state_dir.glob("drills/**/*.ring")):
        _ring(there, path, EVIDENCE, erasure)
    for path in archives:
        _archive(there, path, EVIDENCE, erasure)
    _bundles(subject, state_dir / "bundles", erasure)
    for place, path in _texts(state_dir):
        erasure.looked_at += 1
        words = there.words if place == EVIDENCE else subject.words
        try:
            change = in_log if path.suffix not in {".json", ".incident"} else in_json
            erasure.done(place, path, change(path, words))
        except FileNotFoundError:
            continue  # rotated or pruned meanwhile
        except (OSError, ValueError) as error:
            erasure.missed(place, path, f"{type(error).__name__}: {error}")
    return erasure


def in_stream(subject: Subject, folder: Path) -> Subject:
    """Return the same subject as the rows of the stream of queries know it, which have a key of their own.

    Args:
        subject: Whose traces.
        folder: Folder of those rows.
    """
    from exporters.archive.keys import hashes_of

    if subject.session_id is None:
        return subject
    more = hashes_of(subject.session_id, folder, None)
    return replace(subject, hashes=tuple(dict.fromkeys((*subject.hashes, *more))))


def in_evidence(subject: Subject, archives: Sequence[Path]) -> Subject:
    """Return the same subject as drills' evidence knows it: each drill hashed with a key of its own.

    Args:
        subject: Whose traces.
        archives: The drills' archives, beside whose segments the keys lie; of a drill without one only the id is known.
    """
    from exporters.archive.keys import hashes_of

    if subject.session_id is None:
        return subject
    session = subject.session_id
    more = [number for archive in archives for number in hashes_of(session, archive, archive)]
    return replace(subject, hashes=tuple(dict.fromkeys((*subject.hashes, *more))))


def _closed_folders(ring_dir: Path, state_dir: Path, erasure: Erasure) -> None:
    """Note the folders that cannot be listed: a search for files would pass over them in silence."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            erasure.missed("folder", Path(error.filename), error.strerror or str(error))

    for folder in (
        ring_dir,
        ring_dir / STREAM_ROWS,
        *(state_dir / name for name in ("", "reports", "triage", "logs", "bundles")),
    ):
        try:
            with os.scandir(folder) as entries:
                next(entries, None)
        except OSError as error:
            note(error)
    # evidence lies folders deep
    for _ in os.walk(state_dir / "drills", onerror=note):
        pass


def _texts(state_dir: Path) -> Iterator[tuple[str, Path]]:
    yield from (("report", path) for path in sorted(state_dir.glob("reports/*.json")))
    yield from (("waiting incident", path) for path in sorted(state_dir.glob("triage/*")) if path.is_file())
    yield from (("log", path) for path in sorted(state_dir.glob("logs/*")) if path.is_file())
    for kind in ("*.json", "*.incident", "*.log*"):
        yield from ((EVIDENCE, path) for path in sorted(state_dir.glob(f"drills/**/{kind}")) if path.is_file())


def _ring(subject: Subject, path: Path, place: str, erasure: Erasure) -> None:
    from probes.eraser import erase_session
    from probes.reader import RingError

    erasure.looked_at += 1
    try:
        done = erase_session(path, subject.hashes, subject.raw)
    except FileNotFoundError:
        return  # drained and removed meanwhile
    except (RingError, OSError) as error:
        erasure.missed(place, path, f"{type(error).__name__}: {error}")
        return
    erasure.done(place, path, done.rows + done.slots)
    # each with its mend: whoever is asked to forget a person must know when it is done
    for count, why in (
        (done.in_flight, "requests in flight; run it again when they have ended"),
        (done.waiting, "rows that the service overwrites next; run it again after some requests"),
        (done.elsewhere, "places in texts of the program's own (labels); they go with the file: restart the service"),
    ):
        if count:
            erasure.missed(place, path, f"{count} {why}")


def _archive(subject: Subject, folder: Path, place: str, erasure: Erasure) -> None:
    from exporters.archive.erase import ArchiveBusyError, erase_hashes

    if not folder.is_dir():
        return
    erasure.looked_at += 1
    try:
        # the hashes are those of all keys that the archive was ever written with
        done = erase_hashes(folder, subject.hashes)
    except (ArchiveBusyError, OSError) as error:
        erasure.missed(place, folder, str(error))
        return
    erasure.done(place, folder, done.rows)
    for name, why in done.unreadable.items():
        erasure.missed(place, folder / name, why)


def _bundles(subject: Subject, folder: Path, erasure: Erasure) -> None:
    from inferdeck.bundle.forget import erase_in_bundle

    for path in sorted(folder.glob("*.tar.gz")):
        erasure.looked_at += 1
        try:
            erasure.done("bundle", path, erase_in_bundle(path, subject.hashes, subject.words))
        except (CannotRun, OSError) as error:
            erasure.missed("bundle", path, str(error))


def _show(console: Console, payload: dict[str, Any]) -> None:
    for one in payload["places"]:
        console.print(f"erased   {one['place']}: {one['count']} in {one['path']}", markup=False)
    for one in payload["unreached"]:
        console.print(f"LEFT     {one['place']}: {one['path']}: {one['reason']}", markup=False, style="bold red")
    for one in payload["beyond_reach"]:
        console.print(f"not ours {one}", markup=False, style="dim")
    left = f"; {len(payload['unreached'])} could not be reached" if payload["unreached"] else ""
    console.print(f"{len(payload['places'])} places erased, {payload['looked_at']} looked at{left}", style="bold")
