"""A way to Triton that takes 80 ms: the service reaches it by a relay on this machine that holds each answer back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

SLUG = "triton_slow_network"
BACKEND = "triton"
DELAY_SECONDS = 0.08
DRAWN = {"DELAY_SECONDS": (0.07, 0.15)}


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the service out with another way to Triton, one that is slow.

    Args:
        stack: The drill's handle on the stack.
    """
    with relay(stack.triton_url, DELAY_SECONDS) as port:
        stack.reach_triton_by(port)
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll it out with the same relay, which holds nothing back.

    Args:
        stack: The drill's handle on the stack.
    """
    with relay(stack.triton_url, 0.0) as port:
        stack.reach_triton_by(port)
        yield


@contextmanager
def relay(url: str, delay_seconds: float) -> Iterator[int]:
    """Pass bytes on between a port of our own and *url*, answers after a delay; yields the port."""
    parts = urlsplit(url)
    place = (parts.hostname or "127.0.0.1", parts.port or 80)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        accepting = threading.Thread(target=_accept, args=(listening, place, delay_seconds), daemon=True)
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            # closing alone would leave it in accept()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            accepting.join(timeout=5)


def _accept(listening: socket.socket, place: tuple[str, int], delay_seconds: float) -> None:
    while True:
        try:
            client, _ = listening.accept()
            server = socket.create_connection(place, timeout=5)
        except OSError:
            return
        server.settimeout(None)
        threading.Thread(target=_carry, args=(client, server, delay_seconds), daemon=True).start()


def _carry(client: socket.socket, server: socket.socket, delay_seconds: float) -> None:
    with client, server:
        back = threading.Thread(target=_pass_on, args=(server, client, delay_seconds), daemon=True)
        back.start()
        _pass_on(client, server, 0.0)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket, delay_seconds: float) -> None:
    with suppress(OSError):
        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := source.recv(65536):
            time.sleep(delay_seconds)
            target.sendall(data)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
