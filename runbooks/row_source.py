"""Evidence from the recorder: the rows of all workers, live and last flight, as the arrays that triage reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from exporters.names import OTHER
from exporters.rows import RowTable, load_rows
from runbooks.rows import Blocker, Episode, Floats, Mask, Objects, OpenRequest, RingLife, Rows, bucket_of
from runbooks.source_missing import SourceMissingError

__all__ = ["RowSource", "rows_of"]

# Columns of strings (or small numbers) that tell requests apart.
LABELS: Final = (
    "triton.client/error",
    "client_release",
    "device_type",
    "agent_family",
    "worker",
    "model",
    "config",
    "route",
    "method",
    "model_version",
    "reason",
    "error_type",
    "request/refused_field",
    "request/quality_modality",
    "request/quality_reason",
    "request/pii_kinds",
    "request/pii_mask_format",
    "request/version_role",
    "request/version_failed",
    "request/canary_comparison",
    "photo.quality/verdict",
    "scheduler.dispatch/queue",
)

# Columns that steps compute with. Batch ids count from 1 in each worker: 0 is none.
NUMBERS: Final = (
    "batch_id",
    "triton.client/batch_size",
    "triton.client/seq_len",
    "scheduler.dispatch/queue_wait_ns",
    "sentiment.tokenizer/seq_len",
    "sentiment.tokenizer/padding_ratio",
    "sentiment.tokenizer/unknown_ratio",
    "confidence",
)


class RowSource:
    """A folder of ring files.

    Args:
        ring_dir: The folder; it is only read.
        archive_dir: Folder of the exporter's archive, for times that the rings no longer hold.
        most_archived: Rows of the archive, at most; the latest of the window are taken.
        most_held: Rows of each ring, at most, the latest; all by default.
    """

    name = "ring"

    def __init__(
        self,
        ring_dir: Path,
        archive_dir: Path | None = None,
        most_archived: int = 100_000,
        most_held: int | None = None,
    ) -> None:
        self.ring_dir = ring_dir
        self.archive_dir = archive_dir
        self.most_archived = most_archived
        self.most_held = most_held

    def collect(self, since: float, until: float) -> Rows:
        """Return the requests that ended or were in flight between two times, unix seconds.

        Raises:
            SourceMissingError: If there is no such folder or no ring in it.
        """
        if not self.ring_dir.is_dir() and not (self.archive_dir and self.archive_dir.is_dir()):
            raise SourceMissingError(f"no folder {self.ring_dir}; set INFERDECK_RING_DIR to the service's")
        try:
            table = load_rows(
                self.ring_dir,
                since_ns=int(since * 1e9),
                archive_dir=self.archive_dir,
                archive_until_ns=int(until * 1e9),
                most_archived=self.most_archived,
                most_held=self.most_held,
            )
        except OSError as error:
            raise SourceMissingError(f"{self.ring_dir} cannot be read: {error.strerror}") from error
        if not table.rings and not len(table):
            raise SourceMissingError(f"no ring file in {self.ring_dir}; is the service's recorder attached?")
        return rows_of(table, since, until)


def rows_of(table: RowTable, since: float, until: float) -> Rows:
    """Return a table's requests up to a time, and the life of each ring over all that it holds.

    Args:
        table: Rows from `since` on, later ones included: they are signs of life.
        since: Unix seconds.
        until: Unix seconds; rows that began later are left out.
    """
    if not len(table):
        return _empty(table, since)
    end_ns = table.end_unix_ns
    last_row = {ring: int(end_ns[table["ring"] == ring].max()) for ring in set(table["ring"].tolist())}
    rings = tuple(_life(table, ring, last_row.get(ring, 0)) for ring in table.rings)
    # A row that began before `until` and ended after it was in flight then: triage at that time could not know its end.
    table = table.where(end_ns <= int(until * 1e9))
    ids = (table["trace_hi"].tolist(), table["trace_lo"].tolist())
    return Rows(
        start_s=table["start_unix_ns"].astype(np.float64) / 1e9,
        duration_s=table["duration_ns"].astype(np.float64) / 1e9,
        outcome=table["outcome"].astype(np.int64),
        bucket=bucket_of(table["input_length"].astype(np.int64)),
        session=table["session_hash"].astype(np.uint64),
        trace_id=_objects([f"{high:016x}{low:016x}" for high, low in zip(*ids, strict=True)]),
        ring=table["ring"],
        labels={name: _texts(table, name) for name in LABELS if name in table},
        stages={name: table.stage(name) for name in table.stages},
        parents={name: parent or "" for name, parent in table.parents.items()},
        cpu_s=_cpu(table),
        numbers={name: table.numbers(name) for name in NUMBERS if name in table},
        refused_texts=_refused_texts(table),
        open=tuple(one for one in _open(table) if one.start_s <= until),
        rings=rings,
        known_from_s=since,
    )


def _empty(table: RowTable, since: float) -> Rows:
    nothing = np.zeros(0)
    none = np.zeros(0, dtype=object)
    return Rows(
        nothing,
        nothing.copy(),
        np.zeros(0, dtype=np.int64),
        none,
        np.zeros(0, dtype=np.uint64),
        none.copy(),
        none.copy(),
        open=tuple(_open(table)),
        rings=tuple(_life(table, ring, 0) for ring in table.rings),
        known_from_s=since,
    )


def _open(table: RowTable) -> list[OpenRequest]:
    return [
        OpenRequest(one.ring, one.start_unix_ns / 1e9, one.stage, one.trace_id, one.session_hash, one.alive)
        for one in table.open
    ]


def _life(table: RowTable, ring: str, last_row_ns: int) -> RingLife:
    info, status = table.rings[ring], table.statuses.get(ring) or {}
    started = info.header.started_unix_ns
    age = status.get("loop_tick_age_s")
    return RingLife(
        ring=ring,
        worker=str(info.header.worker),
        alive=info.alive,
        started_s=started / 1e9,
        last_sign_s=max(started, last_row_ns, int(status.get("written_unix_ns") or 0)) / 1e9,
        episodes=_episodes(status),
        blockers=_blockers(status),
        loop_tick_age_s=float(age) if isinstance(age, int | float) else None,
        status=status,
    )


def _episodes(status: Mapping[str, Any]) -> tuple[Episode, ...]:
    found = []
    for one in status.get("blocked") or ():
        try:
            stack = tuple(str(frame) for frame in one["stack"])
            start_s, seconds = one["start_unix_ns"] / 1e9, one["duration_ns"] / 1e9
            told = (_of_ns(one.get(key)) for key in ("cpu_ns", "thread_late_ns", "run_wait_ns"))
            found.append(Episode(start_s, seconds, stack, *told))
        except (KeyError, TypeError):
            continue  # a page of another version: what can be read of it still helps
    return tuple(sorted(found, key=lambda episode: episode.start_s))


def _blockers(status: Mapping[str, Any]) -> tuple[Blocker, ...]:
    found = []
    for one in status.get("blockers") or ():
        try:
            first, last, total = (one[key] / 1e9 for key in ("first_unix_ns", "last_unix_ns", "total_ns"))
            sample = Episode(first, total, tuple(str(frame) for frame in one["stack"]))
            found.append(Blocker(sample, int(one["count"]), total, first, last))
        except (KeyError, TypeError, ValueError):
            continue  # as above
    return tuple(found)


def _of_ns(value: object) -> float | None:
    return value / 1e9 if isinstance(value, int | float) else None


def _cpu(table: RowTable) -> dict[str, Floats]:
    found = {}
    for name in table.stages:
        if f"{name}/cpu_ns" in table:
            ran = ~np.isnan(table.stage(name)[0])
            found[name] = np.where(ran, table.numbers(f"{name}/cpu_ns") / 1e9, np.nan)
    return found


def _refused_texts(table: RowTable) -> dict[str, Mask]:
    # The recorder writes this word for a text that is over the budget of its column; ids in labels end up there.
    masks = {name: np.asarray(values == OTHER) for name, values in table.columns.items() if values.dtype == object}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _texts(table: RowTable, name: str) -> Objects:
    return _objects([str(value) for value in table[name].tolist()])


def _objects(values: list[str]) -> Objects:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
