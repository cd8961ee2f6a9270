"""A block of ports for each job.

An address of its own is not enough for a pod: Paddle binds some of its ports on all addresses (gloo's rendezvous, the
store of a collective job), so two jobs on one machine must not use the same ports. A block is leased by binding an
abstract socket of its name; blocks in which another program listens are skipped.
"""

from __future__ import annotations

import errno
import socket

from paddlejob import contract
from paddlejob.errors import NotPossible


class PortBlock:
    def __init__(self) -> None:
        self.first = 0
        self._lease = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for first in range(contract.PORT, contract.HOST_PORT_FIRST, contract.PORTS_PER_POD):
            if self._take(first):
                self.first = first
                return
        self.close()
        raise NotPossible("no block of ports is free for the job; end some jobs (`pdj list` shows them)")

    def close(self) -> None:
        self._lease.close()

    def _take(self, first: int) -> bool:
        if not all(is_free(port) for port in range(first, first + contract.PORTS_PER_POD)):
            return False
        try:
            self._lease.bind(f"\0paddlejob-ports-{first}")
        except OSError:
            return False
        return True


def is_free(port: int) -> bool:
    """Whether no program listens on the port, on any address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
