"""`python -m dashboards [--check]`: write the generated files, or compare them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards.files import ROOT, differences, write

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: Without the program's name; those of the process by default.

    Returns:
        0 done or current, 1 when a comparison found a difference, 2 when a board or the catalogue is wrong.
    """
    parser = argparse.ArgumentParser("python -m dashboards", description="Write what follows from dashboards/boards.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail with a diff when a file is old")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: the one this program is in)")
    options = parser.parse_args(arguments)
    try:
        if not options.check:
            changed = write(options.root)
            sys.stdout.write("".join(f"wrote {name}\n" for name in changed) or "all current\n")
            return 0
        diff = differences(options.root)
    except ValueError as error:
        sys.stderr.write(f"dashboards: {error}\n")
        return 2
    if diff:
        sys.stdout.write(diff)
        sys.stderr.write("dashboards: generated files are not current: run `python -m dashboards` and commit\n")
    return int(bool(diff))


if __name__ == "__main__":
    sys.exit(main())
