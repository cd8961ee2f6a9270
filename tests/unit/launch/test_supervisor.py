"""A pod's server and trainer: what happens on each event, and the exit code of the pod."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch.events import AllSucceeded, PeerLost, SignalReceived
from paddlejob.launch.group import Group
from paddlejob.launch.heartbeat import Heartbeat
from paddlejob.launch.output import LaunchError
from paddlejob.launch.processes import Command
from paddlejob.launch.settings import read_settings
from paddlejob.launch.supervisor import Supervisor, check_peers
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
    """The only pod of a job, with real processes."""

    def __init__(self, directory: Path, trainer: str, server: str = SERVES) -> None:
        self.directory = directory
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.exit_code: int | None = None
        settings = read_settings(dict(ENVIRON, JOB_PATH=str(directory)), [])
        group = Group(("10.0.0.9",), 0)
        heartbeat = Heartbeat(group, {}, self.events.put)
        commands = [Command([sys.executable, "-c", script], {}) for script in (server, trainer)]
        self._supervisor = Supervisor(settings, group, heartbeat, self.events)
        self._thread = threading.Thread(target=self._run, args=commands, daemon=True)
        self._thread.start()

    def _run(self, server: Command, trainer: Command) -> None:
        self.exit_code = self._supervisor.run(server, trainer, self.directory)

    def end(self) -> int | None:
        self._thread.join(60)
        return self.exit_code

    def wait_for(self, name: str, lines: int = 0) -> None:
        for _ in range(3000):
            path = self.directory / name
            if path.exists() and len(path.read_text().splitlines()) >= lines:
                return
            assert self._thread.is_alive(), self.exit_code
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
def test_the_pod_exits_with_the_code_of_its_trainer(trainer: str, status: int, tmp_path: Path):
    assert Pod(tmp_path, trainer).end() == status


@pytest.mark.parametrize(("server", "pod"), [(3, 3), (0, 1)])
def test_a_server_that_exits_first_is_a_failure_even_with_code_0(server: int, pod: int, tmp_path: Path):
    assert Pod(tmp_path, SERVES, server=f"import sys; sys.exit({server})").end() == pod


def test_a_lost_peer_ends_the_pod_with_exit_code_75(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    pod = Pod(tmp_path, SERVES)
    pod.events.put(PeerLost("trainer 2 (10.0.0.11) is lost"))
    assert pod.end() == 75
    assert "trainer 2 (10.0.0.11) is lost; training cannot continue without it" in capfd.readouterr().out


def test_a_trainer_is_signalled_once_and_gets_the_time_it_needs_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To save its parameters. Kubernetes kills the pod after its grace period; the launcher does not."""
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.1)
    pod = Pod(tmp_path, COUNTS_SIGNALS)
    pod.wait_for("ready")
    pod.events.put(SignalReceived(signal.SIGTERM))
    pod.wait_for("signals", lines=1)
    pod.events.put(PeerLost("the others end because this one does"))
    time.sleep(0.5)
    assert pod.exit_code is None
    (tmp_path / "may-end").touch()
    assert pod.end() == 143
    assert (tmp_path / "signals").read_text() == "15\n"
    assert (tmp_path / "paddle-cluster-job/output/node_0/train.log").read_text() == "saved\n"


def test_a_second_signal_stops_the_pod_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.1)
    pod = Pod(tmp_path, COUNTS_SIGNALS)
    pod.wait_for("ready")
    for _ in range(2):
        pod.events.put(SignalReceived(signal.SIGINT))
    assert pod.end() == 130


def test_other_signals_are_forwarded_and_training_continues(tmp_path: Path):
    pod = Pod(tmp_path, COUNTS_SIGNALS, server=COUNTS_SIGNALS.replace("ready", "serves").replace("signals", "server"))
    pod.wait_for("ready")
    pod.wait_for("serves")
    pod.events.put(SignalReceived(signal.SIGUSR1))
    pod.wait_for("signals", lines=1)
    pod.wait_for("server", lines=1)
    assert pod.exit_code is None
    assert (tmp_path / "signals").read_text() == (tmp_path / "server").read_text() == "10\n"
    (tmp_path / "may-end").touch()
    assert pod.end() is not None


def test_before_training_only_a_lost_peer_is_an_error():
    events: SimpleQueue[Any] = SimpleQueue()
    check_peers(events)
    events.put(AllSucceeded())
    check_peers(events)
    events.put(PeerLost("trainer 1 is lost"))
    with pytest.raises(LaunchError, match="trainer 1 is lost; training cannot continue") as error:
        check_peers(events)
    assert error.value.exit_code == 75
