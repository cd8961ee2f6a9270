"""Ports on loopback that stay free while a server is down."""

from __future__ import annotations

import random
import socket

# Below the ephemeral range: a client that keeps connecting to a stopped server could otherwise be assigned the server's
# port and connect to itself. Above the well-known ports.
_RANGE = range(10000, 20000)


def free_port() -> int:
    """Return an unused port on 127.0.0.1."""
    while True:
        port = random.choice(_RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
