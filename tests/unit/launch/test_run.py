"""A pod's server and trainer: what happens on each event, and the status that the pod ends with."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch.events import AllEnded, PeerLost, Signalled
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.processes import Command
from paddlejob.launch.run import Pair, stay_together
from paddlejob.launch.settings import read_settings
from paddlejob.launch.words import LaunchError
from tests.unit.launch.documents import ENVIRON

SERVES = "import time; time.sleep(600)"
COUNTS_SIGNALS = """
import os, pathlib, signal, sys, time
def note(number, frame):
    with open("signals", "a") as file:
        print(number, file=file)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, note)
pathlib.Path("ready").touch()
while not pathlib.Path("may-end").exists():
    time.sleep(0.02)
print("saved")
"""


class Pod:
    """One pod of a job that has only this one: nobody else to lose, all that is done is real."""

    def __init__(self, directory: Path, trainer: str, server: str = SERVES) -> None:
        self.directory = directory
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.status: int | None = None
        settings = read_settings(dict(ENVIRON, JOB_PATH=str(directory)), [])
        group = Group(("10.0.0.9",), 0)
        link = Link(group, {}, self.events.put)
        commands = [Command([sys.executable, "-c", script], {}) for script in (server, trainer)]
        self._pair = Pair(settings, group, link, self.events)
        self._thread = threading.Thread(target=self._run, args=commands, daemon=True)
        self._thread.start()

    def _run(self, server: Command, trainer: Command) -> None:
        self.status = self._pair.run(server, trainer, self.directory)

    def end(self) -> int | None:
        self._thread.join(60)
        return self.status

    def wait_for(self, name: str, lines: int = 0) -> None:
        for _ in range(3000):
            path = self.directory / name
            if path.exists() and len(path.read_text().splitlines()) >= lines:
                return
            assert self._thread.is_alive(), self.status
            time.sleep(0.02)
        raise AssertionError(f"no {name}")


@pytest.mark.parametrize(
    ("trainer", "status"),
    [
        ("pass", 0),
        ("import sys; sys.exit(42)", 42),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 11)", 139),
    ],
)
def test_the_pod_ends_as_its_trainer_does(trainer: str, status: int, tmp_path: Path):
    assert Pod(tmp_path, trainer).end() == status


@pytest.mark.parametrize(("status", "told"), [(3, 3), (0, 1)])
def test_a_server_that_ends_first_is_a_failure_even_where_it_thinks_all_is_well(status: int, told: int, tmp_path: Path):
    assert Pod(tmp_path, SERVES, server=f"import sys; sys.exit({status})").end() == told


def test_a_peer_that_is_lost_ends_the_pod_with_a_status_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    pod = Pod(tmp_path, SERVES)
    pod.events.put(PeerLost("trainer 2 (10.0.0.11) is gone"))
    assert pod.end() == 75
    assert "trainer 2 (10.0.0.11) is gone: training cannot go on without it" in capfd.readouterr().out


def test_a_trainer_that_is_told_to_stop_is_told_once_and_gets_the_time_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To write what it has learned. Kubernetes ends the pod when its grace period is over, not the launcher."""
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.1)
    pod = Pod(tmp_path, COUNTS_SIGNALS)
    pod.wait_for("ready")
    pod.events.put(Signalled(signal.SIGTERM))
    pod.wait_for("signals", lines=1)
    pod.events.put(PeerLost("the others end because this one does"))
    time.sleep(0.5)
    assert pod.status is None
    (tmp_path / "may-end").touch()
    assert pod.end() == 143
    assert (tmp_path / "signals").read_text() == "15\n"
    assert (tmp_path / "paddle-cluster-job/output/node_0/train.log").read_text() == "saved\n"


def test_who_asks_twice_is_not_kept_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.1)
    pod = Pod(tmp_path, COUNTS_SIGNALS)
    pod.wait_for("ready")
    for _ in range(2):
        pod.events.put(Signalled(signal.SIGINT))
    assert pod.end() == 130


def test_a_signal_that_is_no_end_is_passed_on_and_training_goes_on(tmp_path: Path):
    pod = Pod(tmp_path, COUNTS_SIGNALS, server=COUNTS_SIGNALS.replace("ready", "serves").replace("signals", "server"))
    pod.wait_for("ready")
    pod.wait_for("serves")
    pod.events.put(Signalled(signal.SIGUSR1))
    pod.wait_for("signals", lines=1)
    pod.wait_for("server", lines=1)
    assert pod.status is None
    assert (tmp_path / "signals").read_text() == (tmp_path / "server").read_text() == "10\n"
    (tmp_path / "may-end").touch()
    assert pod.end() is not None


def test_before_training_only_a_lost_peer_is_a_reason_to_stop():
    events: SimpleQueue[Any] = SimpleQueue()
    stay_together(events)
    events.put(AllEnded())
    stay_together(events)
    events.put(PeerLost("trainer 1 is gone"))
    with pytest.raises(LaunchError, match="trainer 1 is gone: training cannot go on") as told:
        stay_together(events)
    assert told.value.status == 75
