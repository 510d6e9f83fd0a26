"""Exit 0 when the page at the address answers 200: the health check of images that hold Python and no curl.

It runs every few seconds in every container, so it is a socket and no HTTP client, which costs more to import.
"""

import socket
import sys

MOST_SECONDS = 2.0
address = sys.argv[1]
host, _, path = address.removeprefix("http://").partition("/")
name, _, port = host.partition(":")
try:
    with socket.create_connection((name, int(port)), timeout=MOST_SECONDS) as connection:
        connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        status = connection.recv(64).split(b" ", 2)[1:2]
except (OSError, ValueError) as error:
    sys.exit(f"{address}: {error}")
sys.exit(None if status == [b"200"] else f"{address}: answers {b''.join(status).decode(errors='replace')}")
