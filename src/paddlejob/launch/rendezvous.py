"""The rendezvous: the pods of a group connect before they start, so that all of them agree on its members.

The pod of rank 0 listens. Each peer sends `hello DIGEST RANK` and waits for `start`. A pod whose list still contains
a terminating peer fails the rendezvous, discovers again and finds the replacement.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from paddlejob.launch.group import Group

RENDEZVOUS_SECONDS = 10.0
CONNECT_SECONDS = 5.0
HELLO_SECONDS = 1.0
MAX_LINE_LENGTH = 4096


class RendezvousFailed(Exception):
    """The group is not complete; discover its pods again."""


class Connection:
    """A TCP connection that carries lines of text."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(CONNECT_SECONDS)
        self.socket = sock
        self._reader = sock.makefile("r", encoding="utf-8", errors="replace", newline="\n")

    def send(self, text: str) -> None:
        with suppress(OSError):
            self.socket.sendall(f"{text[:MAX_LINE_LENGTH]}\n".encode())

    def read(self, seconds: float | None) -> str:
        """The next line; empty after a disconnect or a timeout."""
        try:
            self.socket.settimeout(seconds)
            return self._reader.readline(2 * MAX_LINE_LENGTH).rstrip("\n")
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Listener:
    """Rank 0's side of the rendezvous: accepts connections and keeps those of the group's peers, by rank."""

    def __init__(self, group: Group, sock: socket.socket) -> None:
        self.peers: dict[int, Connection] = {}
        self._group = group
        self._socket = sock
        sock.listen(128)
        sock.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)

    @property
    def missing(self) -> list[str]:
        ranks = range(1, len(self._group.addresses))
        return [self._group.addresses[rank] for rank in ranks if rank not in self.peers]

    def wait(self, until: float) -> bool:
        """True once all peers are connected and none has disconnected in the meantime."""
        while True:
            complete = not self.missing
            ready = self._selector.select(0 if complete else max(0.0, until - time.monotonic()))
            if not ready and (complete or time.monotonic() >= until):
                return complete
            for key, _ in ready:
                if key.data:
                    self._receive(key.data)
                else:
                    self._accept()

    def close(self) -> None:
        """Close the connections that do not belong to the group."""
        for key in list(self._selector.get_map().values()):
            if key.data and key.data not in self.peers.values():
                key.data.close()
        self._selector.close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection = Connection(self._socket.accept()[0])
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _receive(self, connection: Connection) -> None:
        """A new connection sends a hello message. A known peer sends nothing more: readable means disconnected."""
        known = [rank for rank, peer in self.peers.items() if peer is connection]
        rank = 0 if known else self._parse_hello(connection.read(HELLO_SECONDS))
        for stale in known or [rank]:
            if stale in self.peers:
                self._drop(self.peers.pop(stale))
        if rank:
            self.peers[rank] = connection
        elif not known:
            self._drop(connection)

    def _parse_hello(self, hello: str) -> int:
        """The rank of a peer that sees the same group; 0, this pod's own rank, for any other message."""
        fields = hello.split()
        if len(fields) != 3 or fields[:2] != ["hello", self._group.digest] or not fields[2].isdecimal():
            return 0
        return int(fields[2]) if int(fields[2]) < len(self._group.addresses) else 0

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.close()


def rendezvous(group: Group, port: int, deadline: float) -> dict[int, Connection]:
    """Connections by rank: rank 0 has one to each peer, every other pod has one to rank 0."""
    if len(group.addresses) == 1:
        return {}
    until = min(deadline, time.monotonic() + RENDEZVOUS_SECONDS)
    return _accept_peers(group, port, until) if group.rank == 0 else _connect(group, port, until)


def require_free_ports(address: str, ports: Iterable[int]) -> None:
    """Raise if a server could not bind its port, which would end the whole group."""
    used = [str(port) for port in ports if _is_in_use(address, port)]
    if used:
        raise RendezvousFailed(
            f"port {', '.join(used)} of this pod ({address}) is in use by another process; stop that process or set "
            "CONF_PADDLE_PORT to another port"
        )


def _accept_peers(group: Group, port: int, until: float) -> dict[int, Connection]:
    try:
        sock = _bind(group.own, port)
    except OSError as error:
        raise RendezvousFailed(f"cannot listen on {group.own}, port {port} ({error.strerror or error})") from None
    with sock:
        listener = Listener(group, sock)
        try:
            complete = listener.wait(until)
        finally:
            listener.close()
    for connection in listener.peers.values():
        if complete:
            connection.send("start")
        else:
            connection.close()
    if not complete:
        missing = ", ".join(listener.missing)
        raise RendezvousFailed(f"no connection from {missing} on port {port}, which must be open between the pods")
    return listener.peers


def _connect(group: Group, port: int, until: float) -> dict[int, Connection]:
    first = group.addresses[0]
    try:
        sock = socket.create_connection((first, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise RendezvousFailed(
            f"cannot connect to {first} on port {port}, which must be open between the pods ({error.strerror or error})"
        ) from None
    connection = Connection(sock)
    connection.send(f"hello {group.digest} {group.rank}")
    # Longer than rank 0 waits: this pod must not give up just before rank 0 sends `start`.
    if connection.read(max(0.0, until - time.monotonic()) + CONNECT_SECONDS) != "start":
        connection.close()
        raise RendezvousFailed(f"{first} sees a different group, or is still waiting for other pods")
    return {0: connection}


def _bind(address: str, port: int) -> socket.socket:
    family, _, _, _, sockaddr = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(sockaddr)
    except OSError:
        sock.close()
        raise
    return sock


def _is_in_use(address: str, port: int) -> bool:
    try:
        _bind(address, port).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False
