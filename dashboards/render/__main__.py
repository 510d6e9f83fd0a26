"""`python -m dashboards.render --prometheus URL --out FOLDER`: a picture of each dashboard's data."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dashboards.catalogue import BOARDS
from dashboards.files import ROOT
from dashboards.live import choices_of
from dashboards.macros import Moment
from dashboards.prometheus_http import Prometheus, QueryError

__all__ = ["main"]

_POINTS = 240


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: Without the program's name; those of the process by default.

    Returns:
        0 done, 1 when Prometheus does not answer, 2 when matplotlib is missing.
    """
    parser = argparse.ArgumentParser("python -m dashboards.render", description="Draw the dashboards' data.")
    parser.add_argument("--prometheus", required=True, metavar="URL", help="for example http://127.0.0.1:19090")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img", help="folder of the pictures")
    parser.add_argument("--minutes", type=float, default=15.0, help="how much time is shown (default: 15)")
    parser.add_argument("--until", type=float, default=None, metavar="SECONDS", help="since 1970 (default: now)")
    parser.add_argument("--scrape", type=float, default=5.0, metavar="SECONDS", help="between two scrapes (default: 5)")
    parser.add_argument("--title", default="", help="what was going on, for the picture's head")
    parser.add_argument("--board", action="append", choices=[board.name for board in BOARDS], help="default: all")
    options = parser.parse_args(arguments)
    try:
        from dashboards.render.picture import draw
    except ImportError as error:
        sys.stderr.write(f"dashboards: {error}: pip install '.[dashboards]'\n")
        return 2
    end = time.time() if options.until is None else options.until
    start = end - options.minutes * 60
    step = max(options.scrape, (end - start) // _POINTS)
    prometheus = Prometheus(options.prometheus)
    for board in BOARDS:
        if options.board and board.name not in options.board:
            continue
        document = json.loads((ROOT / f"dashboards/generated/{board.uid}.json").read_text(encoding="utf-8"))
        if not any(panel.queries and panel.source == "prometheus" for panel in board.panels):
            sys.stdout.write(f"{board.uid}: asks Jaeger alone, not drawn\n")
            continue
        path = options.out / f"{board.uid}.png"
        moment = Moment(start, end, step, options.scrape, choices_of(board))
        try:
            filled, total = draw(document, prometheus, moment, path, options.title)
        except QueryError as error:
            sys.stderr.write(f"dashboards: {error}\n")
            return 1
        sys.stdout.write(f"{path}: {filled} of {total} panels with data, {path.stat().st_size / 1000:.0f} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
