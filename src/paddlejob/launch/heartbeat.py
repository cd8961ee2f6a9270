"""Heartbeats between the launchers of a group, and the messages that one has succeeded or failed.

Rank 0 receives from all peers and forwards to them. A connection that breaks or stays silent for too long means that
the pod is lost, and its server with it: no trainer can continue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from paddlejob.launch.events import AllSucceeded, PeerLost
from paddlejob.launch.group import Group
from paddlejob.launch.rendezvous import Connection

HEARTBEAT_SECONDS = 5.0
TIMEOUT_SECONDS = 60.0
CLOSE_SECONDS = 5.0


class Heartbeat:
    """Sends and receives on the connections of the rendezvous, and puts what it learns into the event queue."""

    def __init__(self, group: Group, connections: dict[int, Connection], emit: Callable[[Any], None]) -> None:
        self._group = group
        self._connections = connections
        self._emit = emit
        self._lock = threading.Lock()
        self._succeeded: set[int] = set()
        self._closed = threading.Event()
        self._receivers = [
            threading.Thread(target=self._receive, args=each, daemon=True) for each in connections.items()
        ]
        for thread in self._receivers:
            thread.start()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()

    def report_success(self) -> None:
        """This pod's trainer has exited with code 0."""
        if self._group.rank == 0:
            self._record_success(0)
        else:
            self._broadcast("succeeded")

    def report_failure(self, message: str) -> None:
        """Tell the peers that this pod cannot continue, and why."""
        self._broadcast(f"failed {message}")

    def close(self) -> None:
        """Rank 0 first waits until its peers know that all have succeeded: its network ends with the pod."""
        if self._closed.is_set() and self._group.rank == 0:
            for thread in self._receivers:
                thread.join(CLOSE_SECONDS)
        self._closed.set()
        for connection in self._connections.values():
            connection.close()

    def _receive(self, rank: int, connection: Connection) -> None:
        while True:
            kind, _, message = connection.read(TIMEOUT_SECONDS).partition(" ")
            if kind == "succeeded":
                self._record_success(rank)
            elif kind == "all_succeeded":
                self._finish()
            elif kind != "heartbeat":
                self._lose_peer(rank, message or f"trainer {rank} ({self._group.addresses[rank]}) is lost")
                return

    def _record_success(self, rank: int) -> None:
        with self._lock:
            self._succeeded.add(rank)
            all_succeeded = len(self._succeeded) == len(self._group.addresses)
        if all_succeeded:
            self._broadcast("all_succeeded")
            self._finish()

    def _finish(self) -> None:
        self._closed.set()
        self._emit(AllSucceeded())

    def _lose_peer(self, rank: int, message: str) -> None:
        if self._closed.is_set():
            return
        # Forward before emitting: this pod exits as soon as it handles the event.
        if self._group.rank == 0:
            self._broadcast(f"failed {message}", exclude=rank)
        self._emit(PeerLost(message))

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(HEARTBEAT_SECONDS):
            self._broadcast("heartbeat")

    def _broadcast(self, text: str, exclude: int = -1) -> None:
        with self._lock:
            for rank, connection in self._connections.items():
                if rank != exclude:
                    connection.send(text)
