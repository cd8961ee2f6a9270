"""How the pods of a group meet before they start, so that all of them mean the same group.

The first pod listens; the others say hello with what they take the group to be, and wait for its word to go. A pod
that still sees a peer that is about to go meets nobody, looks again, and finds the peer's successor.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from paddlejob.launch.group import Group

WINDOW_SECONDS = 10.0
HELLO_SECONDS = 5.0
LONGEST_LINE = 4096


class NotMet(Exception):
    """The group did not come together; look again at who is there."""


class Line:
    """A connection that carries lines of text."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self._connection.sendall(f"{text[:LONGEST_LINE]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty when the other side is gone or says nothing for so long."""
        try:
            self._connection.settimeout(seconds)
            return self._reader.readline(2 * LONGEST_LINE).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def meet(group: Group, port: int, deadline: float) -> dict[int, Line]:
    """Lines to the others by their rank: the first pod has one to each, the others have one to the first."""
    until = min(deadline, time.monotonic() + WINDOW_SECONDS)
    if len(group.addresses) == 1:
        return {}
    return _gather(group, port, until) if group.rank == 0 else _join(group, port, deadline)


def _gather(group: Group, port: int, until: float) -> dict[int, Line]:
    lines: dict[int, Line] = {}
    try:
        with _listener(group.own, port) as listener:
            while len(lines) < len(group.addresses) - 1:
                listener.settimeout(max(0.01, until - time.monotonic()))
                _greet(Line(listener.accept()[0]), group, lines)
    except OSError as error:
        for line in lines.values():
            line.close()
        missing = [address for rank, address in enumerate(group.addresses) if rank and rank not in lines]
        raise NotMet(f"no word from {', '.join(missing)} at port {port} ({error})") from None
    for line in lines.values():
        line.send("go")
    return lines


def _greet(line: Line, group: Group, lines: dict[int, Line]) -> None:
    words = line.read(HELLO_SECONDS).split()
    if len(words) != 3 or words[:2] != ["hello", group.digest] or not words[2].isdigit():
        line.close()
        return
    rank = int(words[2])
    if rank in lines:
        lines[rank].close()
    lines[rank] = line


def _join(group: Group, port: int, deadline: float) -> dict[int, Line]:
    first = group.addresses[0]
    try:
        connection = socket.create_connection((first, port), timeout=HELLO_SECONDS)
    except OSError as error:
        raise NotMet(f"{first} is not reached at port {port} ({error})") from None
    line = Line(connection)
    line.send(f"hello {group.digest} {group.rank}")
    if line.read(max(0.01, deadline - time.monotonic())) != "go":
        line.close()
        raise NotMet(f"{first} sees other pods than this one does")
    return {0: line}


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener
