"""`python -m exporters.gpu`."""

from __future__ import annotations

import sys

from exporters.gpu.app import main

sys.exit(main())
