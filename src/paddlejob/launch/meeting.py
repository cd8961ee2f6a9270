"""How the pods of a group meet before they start, so that all of them mean the same group.

The first pod listens; the others say hello with what they take the group to be, and wait for its word to go. A pod
that still sees a peer that is about to go meets nobody, looks again, and finds the peer's successor.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from paddlejob.launch.group import Group

WINDOW_SECONDS = 10.0
CONNECT_SECONDS = 5.0
HELLO_SECONDS = 1.0
LONGEST_LINE = 4096


class NotMet(Exception):
    """The group did not come together; look again at who is there."""


class Line:
    """A connection that carries lines of text."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(CONNECT_SECONDS)
        self.connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self.connection.sendall(f"{text[:LONGEST_LINE]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty when the other side is gone or says nothing for so long."""
        try:
            self.connection.settimeout(seconds)
            return self._reader.readline(2 * LONGEST_LINE).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Door:
    """The first pod's side of the meeting: who has come, and who of them belongs to the group."""

    def __init__(self, group: Group, listener: socket.socket) -> None:
        self.lines: dict[int, Line] = {}
        self._group = group
        self._listener = listener
        listener.listen(128)
        listener.setblocking(False)
        self._ears = selectors.DefaultSelector()
        self._ears.register(listener, selectors.EVENT_READ)

    @property
    def missing(self) -> list[str]:
        ranks = range(1, len(self._group.addresses))
        return [self._group.addresses[rank] for rank in ranks if rank not in self.lines]

    def wait(self, until: float) -> bool:
        """True when all have come, and none of them has gone again meanwhile."""
        while True:
            complete = not self.missing
            heard = self._ears.select(0 if complete else max(0.0, until - time.monotonic()))
            if not heard and (complete or time.monotonic() >= until):
                return complete
            for key, _ in heard:
                if key.data:
                    self._hear(key.data)
                else:
                    self._open()

    def close(self) -> None:
        """Send away all who are not of the group."""
        for key in list(self._ears.get_map().values()):
            if key.data and key.data not in self.lines.values():
                key.data.close()
        self._ears.close()

    def _open(self) -> None:
        with suppress(OSError):
            line = Line(self._listener.accept()[0])
            self._ears.register(line.connection, selectors.EVENT_READ, line)

    def _hear(self, line: Line) -> None:
        """One who has come says hello. One who has said so already says nothing more: he is gone."""
        known = [rank for rank, one in self.lines.items() if one is line]
        rank = 0 if known else self._greeted(line.read(HELLO_SECONDS))
        for again in known or [rank]:
            if again in self.lines:
                self._drop(self.lines.pop(again))
        if rank:
            self.lines[rank] = line
        elif not known:
            self._drop(line)

    def _greeted(self, hello: str) -> int:
        """The rank of one who sees the same group; 0, which is this pod's own, for all others."""
        words = hello.split()
        if len(words) != 3 or words[:2] != ["hello", self._group.digest] or not words[2].isdecimal():
            return 0
        return int(words[2]) if int(words[2]) < len(self._group.addresses) else 0

    def _drop(self, line: Line) -> None:
        self._ears.unregister(line.connection)
        line.close()


def meet(group: Group, port: int, deadline: float) -> dict[int, Line]:
    """Lines to the others by their rank: the first pod has one to each, the others have one to the first."""
    if len(group.addresses) == 1:
        return {}
    until = min(deadline, time.monotonic() + WINDOW_SECONDS)
    return _gather(group, port, until) if group.rank == 0 else _join(group, port, until)


def refuse_taken_ports(address: str, ports: Iterable[int]) -> None:
    """A server that cannot have its port would take the whole group down with it."""
    taken = [str(port) for port in ports if _is_taken(address, port)]
    if taken:
        raise NotMet(
            f"port {', '.join(taken)} of this pod ({address}) is taken by another process; end that, or set "
            "CONF_PADDLE_PORT to another number"
        )


def _gather(group: Group, port: int, until: float) -> dict[int, Line]:
    try:
        listener = _bound(group.own, port)
    except OSError as error:
        raise NotMet(f"this pod cannot listen at {group.own}, port {port} ({error.strerror or error})") from None
    with listener:
        door = Door(group, listener)
        try:
            complete = door.wait(until)
        finally:
            door.close()
    for line in door.lines.values():
        if complete:
            line.send("go")
        else:
            line.close()
    if not complete:
        raise NotMet(f"no word from {', '.join(door.missing)} at port {port}, which must be open between the pods")
    return door.lines


def _join(group: Group, port: int, until: float) -> dict[int, Line]:
    first = group.addresses[0]
    try:
        connection = socket.create_connection((first, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise NotMet(
            f"{first} is not reached at port {port}, which must be open between the pods ({error.strerror or error})"
        ) from None
    line = Line(connection)
    line.send(f"hello {group.digest} {group.rank}")
    # Longer than the first pod can take: it must not be let go when this one has just left.
    if line.read(max(0.0, until - time.monotonic()) + CONNECT_SECONDS) != "go":
        line.close()
        raise NotMet(f"{first} sees other pods than this one does, or waits for some as well")
    return {0: line}


def _bound(address: str, port: int) -> socket.socket:
    family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
    except OSError:
        made.close()
        raise
    return made


def _is_taken(address: str, port: int) -> bool:
    try:
        _bound(address, port).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False
