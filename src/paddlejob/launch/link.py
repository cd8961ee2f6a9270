"""Keeps the launchers of a group in touch: who has ended well, who is gone.

The first pod hears from all and passes it on. A connection that breaks, or is silent for too long, is a pod that is
gone: its server is gone with it, and without that no trainer can go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from paddlejob.launch.events import AllEnded, PeerLost
from paddlejob.launch.group import Group
from paddlejob.launch.meeting import Line

ALIVE_SECONDS = 5.0
SILENCE_SECONDS = 60.0
GOODBYE_SECONDS = 5.0


class Link:
    def __init__(self, group: Group, lines: dict[int, Line], tell: Callable[[Any], None]) -> None:
        self._group = group
        self._lines = lines
        self._tell = tell
        self._lock = threading.Lock()
        self._ended: set[int] = set()
        self._closed = threading.Event()
        self._listeners = [threading.Thread(target=self._listen, args=each, daemon=True) for each in lines.items()]
        for thread in self._listeners:
            thread.start()
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def ended_well(self) -> None:
        """This pod's trainer has ended with status 0."""
        if self._group.rank == 0:
            self._note_end(0)
        else:
            self._send_all("ended")

    def give_up(self, words: str) -> None:
        """Tell the others that this pod cannot go on, and why."""
        self._send_all(f"lost {words}")

    def close(self) -> None:
        """The first pod stays until the others have heard that all is over: its network goes when it does."""
        if self._closed.is_set() and self._group.rank == 0:
            for thread in self._listeners:
                thread.join(GOODBYE_SECONDS)
        self._closed.set()
        for line in self._lines.values():
            line.close()

    def _listen(self, rank: int, line: Line) -> None:
        while True:
            word, _, rest = line.read(SILENCE_SECONDS).partition(" ")
            if word == "ended":
                self._note_end(rank)
            elif word == "over":
                self._finish()
            elif word != "alive":
                self._lose(rank, rest or f"trainer {rank} ({self._group.addresses[rank]}) is gone")
                return

    def _note_end(self, rank: int) -> None:
        with self._lock:
            self._ended.add(rank)
            all_ended = len(self._ended) == len(self._group.addresses)
        if all_ended:
            self._send_all("over")
            self._finish()

    def _finish(self) -> None:
        self._closed.set()
        self._tell(AllEnded())

    def _lose(self, rank: int, words: str) -> None:
        if self._closed.is_set():
            return
        # Before this pod hears of it: it ends at once.
        if self._group.rank == 0:
            self._send_all(f"lost {words}", but=rank)
        self._tell(PeerLost(words))

    def _keep_alive(self) -> None:
        while not self._closed.wait(ALIVE_SECONDS):
            self._send_all("alive")

    def _send_all(self, text: str, but: int = -1) -> None:
        with self._lock:
            for rank, line in self._lines.items():
                if rank != but:
                    line.send(text)
