"""`python -m exporters`."""

from __future__ import annotations

import sys

from exporters.app import main

sys.exit(main())
