"""The clock of the engine: the time of day when it was started, and the time that has passed since, asleep or not.

Delays and deadlines are written as times of day. If somebody sets the clock of the machine back, a restart that waits
for ten seconds would otherwise wait for as much longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def steady_clock() -> Callable[[], float]:
    offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return lambda: offset + time.clock_gettime(time.CLOCK_BOOTTIME)
