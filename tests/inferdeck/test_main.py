"""The door of the console where only the recorder is installed."""

from __future__ import annotations

import subprocess
import sys


def test_without_the_console_s_libraries_one_line_tells_what_to_install() -> None:
    """No traceback: what is missing, the extra that brings it, exit 2."""
    code = "import sys; sys.modules['click'] = None; from inferdeck.__main__ import main; main()"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == (
        "inferdeck: click is missing: the recorder alone is installed; pip install 'inferdeck[console]'\n"
    )
