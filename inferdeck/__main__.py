"""Runs the console, as `inferdeck` and as `python -m inferdeck`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the console; say what to install where the recorder was installed alone."""
    try:
        from inferdeck.cli import main as console
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"inferdeck: {error.name} is missing: the recorder alone is installed; pip install 'inferdeck[console]'\n"
        )
        sys.exit(2)
    console()


if __name__ == "__main__":
    main()
