"""The clock and the local time zone of a node."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from testbed import clocks

SERVICES = ("containerd", "containerd-shim", "kubelet")
"""They write the times of logs, of container statuses and of conditions. Programs in containers see the true time."""
INTERVAL = 0.2
HOUR = 3600
YEAR = 365 * 24 * HOUR


class NodeClock:
    """Shows a wrong time to the services of a node, also to those that start later: each pod has a shim."""

    def __init__(self, children: Callable[[], list[int]]) -> None:
        self.offset = 0
        """Seconds by which the clock is ahead."""
        self._children = children
        self._shifted: dict[int, int] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def set(self, offset: int) -> None:
        """Step the clock. Returns when all services see it."""
        self.offset = offset
        self._apply()
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def _keep(self) -> None:
        while not self._closed.wait(INTERVAL):
            self._apply()

    def _apply(self) -> None:
        with self._lock:
            found = {pid for pid in self._children() if _name(pid) in SERVICES}
            self._shifted = {pid: offset for pid, offset in self._shifted.items() if pid in found}
            for pid in found:
                if self._shifted.get(pid, 0) != self.offset:
                    with suppress(ProcessLookupError):
                        clocks.shift(pid, self.offset)
                        self._shifted[pid] = self.offset


def write_zone(file: Path, hours: int, ends: float | None = None) -> Path:
    """Write a time zone of so many hours, and one more until daylight saving time ends: by default in half a year."""
    moment = round(ends if ends is not None else time.time() + YEAR / 2)
    counts = struct.pack(">6l", 0, 0, 0, 2, 2, 8)
    changes = struct.pack(">llBB", 0, moment, 0, 1)
    summer, winter = struct.pack(">lBB", (hours + 1) * HOUR, 1, 0), struct.pack(">lBB", hours * HOUR, 0, 4)
    file.write_bytes(b"TZif" + bytes(16) + counts + changes + summer + winter + b"SUM\0WIN\0")
    return file


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
