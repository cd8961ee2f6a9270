"""A guard against connections to other machines, based on Python's audit events, which see every attempt.

An attempt is refused and recorded, so that it fails the test even if a library swallows the error.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ATTEMPTS: list[str] = []
_guards = 0

_ADDRESS_IS = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_HOST_IS = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


@contextmanager
def guarded() -> Iterator[list[str]]:
    """Refuse connections beyond loopback. Yields the attempts."""
    global _guards
    ATTEMPTS.clear()
    _guards += 1
    try:
        yield ATTEMPTS
    finally:
        _guards -= 1


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _guards:
        return
    if event in _ADDRESS_IS:
        address = arguments[_ADDRESS_IS[event]]
        host = address[0] if isinstance(address, tuple) else None  # a path is a socket of this machine
    elif event in _HOST_IS:
        host = arguments[_HOST_IS[event]]
    else:
        return
    if not _is_here(host):
        ATTEMPTS.append(f"{event} {host}")
        raise OSError(f"a test tried to leave this machine: {event} {host}")


def _is_here(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False


sys.addaudithook(_watch)
