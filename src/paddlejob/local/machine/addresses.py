"""Addresses of pods in 127.0.0.0/8, so that every pod can use the same ports.

A block of 256 is leased by binding an abstract socket of that name. Such names belong to the network namespace, as
the addresses do, so two users never share a block; and the kernel ends the lease with the process.
"""

from __future__ import annotations

import itertools
import random
import socket
from collections.abc import Iterator

from paddlejob.errors import NotPossible

FIRST_BLOCK, LAST_BLOCK = (64 << 8), (127 << 8) | 255
PER_BLOCK = 254


class Addresses:
    """Addresses are handed out in turn, so that one that was just given back is not reused at once."""

    def __init__(self) -> None:
        self._leases: list[socket.socket] = []
        self._used: set[str] = set()
        self._free: list[Iterator[str]] = []

    def take(self) -> str:
        for block in self._free:
            for address in itertools.islice(block, PER_BLOCK):
                if address not in self._used:
                    self._used.add(address)
                    return address
        self._free.append(self._lease())
        return self.take()

    def give_back(self, address: str) -> None:
        self._used.discard(address)

    def close(self) -> None:
        for lease in self._leases:
            lease.close()

    def _lease(self) -> Iterator[str]:
        count = LAST_BLOCK - FIRST_BLOCK
        begin = random.randrange(count)
        for offset in range(count):
            block = FIRST_BLOCK + (begin + offset) % count
            prefix = f"127.{block >> 8}.{block & 255}"
            lease = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                lease.bind(f"\0paddlejob-{prefix}")
            except OSError:
                lease.close()
                continue
            self._leases.append(lease)
            return itertools.cycle(f"{prefix}.{host}" for host in range(1, PER_BLOCK + 1))
        raise NotPossible("no loopback addresses are left; end some jobs (`pdj list` shows them)")
