"""Runs the console as `python -m inferdeck`."""

from inferdeck.cli import main

if __name__ == "__main__":
    main()
