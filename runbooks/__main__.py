"""`python -m runbooks` runs the triage service."""

from runbooks.app import main

if __name__ == "__main__":
    raise SystemExit(main())
