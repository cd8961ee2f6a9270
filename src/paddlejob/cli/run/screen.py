"""What shows jobs while they run, and goes on when something cannot be drawn: that must not end a training."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from paddlejob.targets.views import JobView


class Screen(Protocol):
    def show(self, views: list[JobView]) -> None: ...

    def say(self, message: str) -> None: ...

    def close(self) -> None: ...


class LastingScreen:
    """A screen; plain lines once it has failed, and nothing once those have failed too."""

    def __init__(self, screen: Screen) -> None:
        self._screen: Screen | None = screen
        self._failed = False

    def show(self, views: list[JobView]) -> None:
        self._draw(lambda screen: screen.show(views))

    def say(self, message: str) -> None:
        self._draw(lambda screen: screen.say(message))

    def close(self) -> None:
        if self._screen:
            with suppress(Exception):
                self._screen.close()

    def _draw(self, draw: Callable[[Screen], None]) -> None:
        if self._screen:
            try:
                draw(self._screen)
            except Exception as error:
                self._degrade(error)
                self._draw(draw)

    def _degrade(self, error: Exception) -> None:
        from paddlejob.cli.run.plain import PlainScreen

        self.close()
        self._screen = None if self._failed else PlainScreen()
        if not self._failed:
            reason = f"this is a bug in pdj ({type(error).__name__}: {error})"
            with suppress(OSError, ValueError):
                print(f"pdj: the view failed, the jobs keep running: {reason}", file=sys.stderr, flush=True)
        self._failed = True
