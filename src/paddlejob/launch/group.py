"""The pods that train together, in the order of their trainer ids."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Collection, Iterable
from typing import NamedTuple

from paddlejob.launch.output import LaunchError, comma_separated


class Group(NamedTuple):
    addresses: tuple[str, ...]
    rank: int
    """This pod's index in the list: its trainer id."""

    @property
    def own(self) -> str:
        return self.addresses[self.rank]

    @property
    def digest(self) -> str:
        """Identifies the group: equal for all pods that see the same addresses."""
        return hashlib.sha256(",".join(self.addresses).encode()).hexdigest()[:16]

    def endpoints(self, port: int) -> list[str]:
        return [f"{format_host(address)}:{port}" for address in self.addresses]


def format_host(address: str) -> str:
    """The address as written in front of a port: IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


def sort_addresses(addresses: Iterable[str]) -> list[str]:
    """Sort numerically: 10.0.0.9 comes before 10.0.0.10, and IPv4 before IPv6."""
    return sorted(addresses, key=lambda text: (ipaddress.ip_address(text).version, int(ipaddress.ip_address(text))))


def build_group(addresses: Iterable[str], own: Collection[str]) -> Group:
    """The group of these addresses, exactly one of which must be in `own`."""
    ordered = sort_addresses(addresses)
    ranks = [rank for rank, address in enumerate(ordered) if address in own]
    if len(ranks) != 1:
        raise LaunchError(
            f"the job's addresses ({comma_separated(ordered)}) do not contain this pod's address "
            f"({comma_separated(sorted(own))}) exactly once; set POD_IP from status.podIP in the Job's env"
        )
    return Group(tuple(ordered), ranks[0])
