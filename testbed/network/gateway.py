"""Ports on loopback that lead into a network namespace."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.network import forward
from testbed.process import Process


class Gateway:
    """Listens on a free port of 127.0.0.1 for each of `targets`, each HOST:PORT inside the namespace."""

    def __init__(self, enter: Sequence[str], targets: Sequence[str], log: Path) -> None:
        self._sockets = [_listening() for _ in targets]
        self.ports: list[int] = [one.getsockname()[1] for one in self._sockets]
        descriptors = [one.fileno() for one in self._sockets]
        pairs = [f"{number}={target}" for number, target in zip(descriptors, targets, strict=True)]
        command = [*enter, sys.executable, "-I", forward.__file__, *pairs]
        self.process = Process(command, log, name="gateway", keep_open=descriptors)

    def start(self) -> None:
        self.process.start()

    def close(self) -> None:
        self.process.kill()
        for one in self._sockets:
            one.close()


def _listening() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener
