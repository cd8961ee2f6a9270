"""Wrong clocks of the testbed: what a process sees is shifted while it runs, and the machine keeps its time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from testbed import clocks
from testbed.nodes.clock import write_zone

TELL = """
import json, sys, threading, time
threading.Thread(target=lambda: [time.time() for _ in iter(int, 1)], daemon=True).start()
for _ in sys.stdin:
    print(json.dumps([time.time(), time.monotonic()]), flush=True)
"""
pytestmark = pytest.mark.skipif(not clocks.SUPPORTED, reason="clocks can be shifted on x86-64 only")


class Teller:
    """A process that tells the time when it is asked, and has a thread that does nothing but read the clock."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def asked(self) -> tuple[float, float]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        wall, steady = json.loads(self.process.stdout.readline())
        return wall, steady


@pytest.fixture
def teller() -> Iterator[Teller]:
    made = Teller()
    with made.process:
        yield made
        made.process.kill()


def test_a_process_sees_the_shifted_time_and_the_same_steady_clock(teller: Teller):
    assert abs(teller.asked()[0] - time.time()) < 60
    for offset in (-3600, 3600, 0):
        clocks.shift(teller.process.pid, offset)
        wall, steady = teller.asked()
        assert abs(wall - time.time() - offset) < 60
        assert abs(steady - time.monotonic()) < 60


def test_a_process_that_has_ended_is_reported(teller: Teller):
    teller.process.kill()
    with pytest.raises(ProcessLookupError):
        clocks.shift(teller.process.pid, 1)


def test_daylight_saving_time_ends_when_it_should(tmp_path: Path):
    ends = datetime(2027, 10, 31, 1, tzinfo=UTC)
    with write_zone(tmp_path / "localtime", 1, ends.timestamp()).open("rb") as file:
        zone = ZoneInfo.from_file(file)
    before, after = (ends - timedelta(seconds=1)).astimezone(zone), ends.astimezone(zone)
    assert (before.isoformat(), after.isoformat()) == ("2027-10-31T02:59:59+02:00", "2027-10-31T02:00:00+01:00")
