"""`python -m service.stream`: user queries in, windows per minute out, until TERM; settings are INFERDECK_STREAM_*."""

from __future__ import annotations

import sys

from service.stream.app import main

if __name__ == "__main__":
    sys.exit(main())
