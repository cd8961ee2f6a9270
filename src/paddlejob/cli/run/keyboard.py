"""Single keys from a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import Any, Self


class Keyboard:
    """Reads keys while it is open. Without a terminal, or in the background, there are none."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        try:
            descriptor = sys.stdin.fileno() if sys.stdin else -1
            if descriptor < 0 or os.tcgetpgrp(descriptor) != os.getpgrp():
                return self
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            self._descriptor = descriptor
        except (OSError, ValueError, termios.error):
            self._descriptor = -1
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The next key, or an empty string if none is pressed in time."""
        if self._descriptor < 0:
            time.sleep(seconds)
            return ""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return ""
        pressed = os.read(self._descriptor, 1)
        if not pressed:
            self._descriptor = -1
        return pressed.decode(errors="replace")
