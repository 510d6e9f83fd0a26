"""Reports on disk: one JSON file each, private, replaced as a whole, bounded in number, without personal data."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from probes.private_file import write_private
from runbooks.redaction import redact

__all__ = ["MOST_REPORTS", "MOST_UNWRITTEN", "ReportStore", "StoreError"]

# A report is about 20 kB: 200 of them are 4 MB, some weeks of incidents.
MOST_REPORTS: Final = 200
# Those that a full disk refused: 400 kB of memory.
MOST_UNWRITTEN: Final = 20
_ID: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


class StoreError(OSError):
    """Reports cannot be kept; the text names the folder and the mend."""


class ReportStore:
    """The folder of reports.

    Args:
        folder: Where they are kept; made (0700) when absent.
        most: How many are kept; the oldest go first.

    A report that cannot be written is shown from memory until the process ends: a full disk is an incident of its own,
    and whoever is called for it must find its report.
    """

    def __init__(self, folder: Path, most: int = MOST_REPORTS) -> None:
        self.folder = folder
        self._most = most
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._amending = threading.Lock()

    def save(self, result: Mapping[str, Any], moment: datetime | None = None) -> dict[str, Any]:
        """Keep a result and return it with its `report` path filled in.

        Args:
            result: What triage returned; session ids and texts that look like secrets are taken out.
            moment: When; now when absent.

        Raises:
            StoreError: If the folder or the file cannot be written; the report is then in memory alone.
        """
        name = f"{(moment or datetime.now(UTC)).strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(4)}"
        path = self.folder / f"{name}.json"
        kept = redact(dict(result)) | {"id": name, "report": str(path)}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = json.dumps(kept, indent=1, ensure_ascii=False, default=str)
            # Half a surrogate pair in a label must not cost the report.
            write_private(path, text.encode("utf-8", "replace"), flush=True)
        except OSError as error:
            # No path: there is no file.
            self._unwritten[name] = kept | {"report": None}
            for oldest in list(self._unwritten)[:-MOST_UNWRITTEN]:
                del self._unwritten[oldest]
            raise StoreError(f"report not kept in {self.folder}: {error.strerror}; set INFERDECK_STATE_DIR") from error
        # The report is kept by now: a folder that cannot be listed undoes nothing.
        with contextlib.suppress(OSError):
            self._prune()
        return dict(result) | {"id": name, "report": str(path)}

    def amend(self, report_id: str, change: Callable[[dict[str, Any]], object]) -> bool:
        """Change a kept report and return whether it could be; what is kept stays as it was otherwise.

        Args:
            report_id: Its id.
            change: Given the report; changes it in place.
        """
        with self._amending:
            if report_id in self._unwritten:
                change(self._unwritten[report_id])
                return True
            report = self.load(report_id)
            if report is None:
                return False
            change(report)
            text = json.dumps(report, indent=1, ensure_ascii=False, default=str)
            try:
                write_private(self.folder / f"{report_id}.json", text.encode("utf-8", "replace"))
            except OSError:
                return False
            return True

    def ids(self) -> list[str]:
        """Return the ids of all reports, newest first."""
        return sorted({*self._written(), *self._unwritten}, reverse=True)

    def _written(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        return [path.stem for path in self.folder.glob("*.json") if _ID.fullmatch(path.stem)]

    def load(self, report_id: str) -> dict[str, Any] | None:
        """Return a report, or None when there is none of that id (or it is damaged)."""
        if not _ID.fullmatch(report_id):
            return None
        if report_id in self._unwritten:
            return dict(self._unwritten[report_id])
        try:
            report = json.loads((self.folder / f"{report_id}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return report if isinstance(report, dict) else None

    def overview(self, count: int = 50) -> list[dict[str, Any]]:
        """Return the newest reports in short: id, alert, verdict, when."""
        found = []
        for report_id in self.ids()[:count]:
            report = self.load(report_id)
            if report is not None:
                keys = ("id", "alert", "abstained", "verdict", "window", "started", "trigger")
                found.append({key: report.get(key) for key in keys})
        return found

    def _prune(self) -> None:
        for report_id in sorted(self._written(), reverse=True)[self._most :]:
            with contextlib.suppress(OSError):
                (self.folder / f"{report_id}.json").unlink()
