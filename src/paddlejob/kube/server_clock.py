"""The time by the API server's clock, as far as the dates of its responses tell."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

NOTABLE_SKEW = 5.0
CONFIRMED = 30.0
"""Seconds for which every response must say so before a step of the clock is believed.

Behind one address there may be several servers, of which one has a wrong clock: an hour ends jobs by their deadlines.
"""

log = logging.getLogger(__name__)


def steady_clock() -> float:
    """Seconds that also pass while this process, or the whole machine, is suspended."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class ServerClock:
    """Goes on by a clock that nobody can set. Before the first response, the time is that of this machine."""

    def __init__(self, steady: Callable[[], float] = steady_clock) -> None:
        self._steady = steady
        self._offset = time.time() - steady()
        self._known = False
        self._doubted: float | None = None
        """Since when responses contradict what is known."""

    def now(self) -> float:
        return self._steady() + self._offset

    def compare(self, begun: float, date: str) -> None:
        """Take the Date header of a response to a request that was sent at `begun` by the steady clock."""
        if (written := _parsed(date)) is None:
            return
        # It has whole seconds and was written at some time between request and response.
        least, most = written - self._steady(), written + 1.0 - begun
        offset = max(min(self._offset, most), least)
        notable = abs(offset - self._offset) > NOTABLE_SKEW
        if notable and self._known and not self._is_confirmed():
            return
        self._offset, self._known, self._doubted = offset, True, None
        if notable:
            ahead = time.time() - self.now()
            log.warning("the clock of this machine is %+.0f s off the API server's; using the server's", ahead)

    def _is_confirmed(self) -> bool:
        if self._doubted is None:
            self._doubted = self._steady()
        return self._steady() - self._doubted >= CONFIRMED


def _parsed(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
