"""`python -m service.postprocess SOCKET`: the postprocessing app on a Unix socket that only this user may use."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from service.postprocess.app import create_app

__all__ = ["listen", "main"]

_BACKLOG = 256


class CannotListen(Exception):  # noqa: N818 - reads as what it says
    """One line on why there is no socket."""


def listen(path: Path) -> socket.socket:
    """Return a socket that listens at *path*, mode 0600; one that a killed process left behind is replaced.

    Raises:
        CannotListen: If something else is there, somebody answers there already, or the folder cannot be used.
    """
    try:
        if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
            raise CannotListen(f"{path} is there and is no socket; name another place")
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise CannotListen(f"somebody answers at {path} already; stop that process or name another place")
        path.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX)
        # The mode of a socket is that of its creation: set before anybody can connect.
        before = os.umask(0o177)
        try:
            bound.bind(str(path))
        finally:
            os.umask(before)
        bound.listen(_BACKLOG)
    except OSError as error:
        raise CannotListen(f"cannot listen at {path}: {error.strerror or error}") from error
    return bound


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM; the socket's file is taken away at the end.

    Returns:
        The exit status: 0 after a clean stop, 2 if it could not listen.
    """
    parser = argparse.ArgumentParser(
        prog="python -m service.postprocess",
        description="Postprocess logits behind a Unix socket.",
        epilog="example: python -m service.postprocess /run/inferdeck/postprocess.sock, "
        "and INFERDECK_SERVICE_POSTPROCESS_SOCKET=/run/inferdeck/postprocess.sock for the service",
    )
    parser.add_argument("socket", type=Path, help="where to listen")
    path: Path = parser.parse_args(arguments).socket
    try:
        bound = listen(path)
    except CannotListen as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's one line of error
        return 2
    # The server raises the signal that ended it once more, and the default would end us before the file is taken away.
    signal.signal(signal.SIGTERM, lambda *_: None)
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", access_log=False, lifespan="off"))
    try:
        server.run(sockets=[bound])
    finally:
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
