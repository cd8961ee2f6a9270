"""Ports on loopback that stay free while a server is down."""

from __future__ import annotations

import random
import socket

# Below the ephemeral range: a client that keeps dialling a stopped server would otherwise take its port, even connect
# to itself. Above the well-known ones.
_RANGE = range(10000, 20000)


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    while True:
        port = random.choice(_RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
