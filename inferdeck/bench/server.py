"""One variant as a process: `python -m inferdeck.bench.server`; settings come by environment, the port goes to stdout.

`INFERDECK_BENCH_CORE` pins it, before any thread exists, to one core. The first line on stdout is `{"port": N}`.
"""

from __future__ import annotations

import json
import os
import socket
import sys

__all__ = ["main"]


def main() -> int:
    """Serve the app on a free port of 127.0.0.1 until SIGTERM."""
    core = os.environ.get("INFERDECK_BENCH_CORE")
    if core is not None:
        os.sched_setaffinity(0, {int(core)})
    import uvicorn

    from inferdeck.bench.app import create_app

    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(
        create_app(), loop="uvloop", http="httptools", access_log=False, log_level="error", workers=1
    )
    sys.stdout.write(json.dumps({"port": listener.getsockname()[1]}) + "\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
