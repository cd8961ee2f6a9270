"""The pods that train together, in the order of their trainer ids."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Collection, Iterable
from typing import NamedTuple

from paddlejob.launch.words import LaunchError, listed


class Group(NamedTuple):
    addresses: tuple[str, ...]
    rank: int
    """This pod's place in the list: its trainer id."""

    @property
    def own(self) -> str:
        return self.addresses[self.rank]

    @property
    def digest(self) -> str:
        """The same for all who see the same group."""
        return hashlib.sha256(",".join(self.addresses).encode()).hexdigest()[:16]

    def endpoints(self, port: int) -> list[str]:
        return [f"{host(address)}:{port}" for address in self.addresses]


def host(address: str) -> str:
    """An address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def by_number(addresses: Iterable[str]) -> list[str]:
    """Sorted as numbers: 10.0.0.9 comes before 10.0.0.10, and IPv4 before IPv6."""
    return sorted(addresses, key=lambda text: (ipaddress.ip_address(text).version, int(ipaddress.ip_address(text))))


def group_of(addresses: Iterable[str], own: Collection[str]) -> Group:
    """The group in which this pod is the one with an address out of `own`."""
    ordered = by_number(addresses)
    mine = [rank for rank, address in enumerate(ordered) if address in own]
    if len(mine) != 1:
        raise LaunchError(
            f"none of this pod's addresses ({listed(sorted(own))}) stands once among the job's ({listed(ordered)}); "
            "set POD_IP from the field status.podIP in the Job's env"
        )
    return Group(tuple(ordered), mine[0])
