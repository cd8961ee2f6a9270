"""The command `pdj` in a state directory of its own, and a search for processes that it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from paddlejob.api.types import Status
from paddlejob.local.sandbox.proc import environments
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support import called_pdj
from tests.support.called_pdj import Called

START = [sys.executable, "-c", "from paddlejob.cli.main import main; main()"]
PATIENCE = 60.0


def _signals(ignored: Iterable[signal.Signals]) -> None:
    """As in an interactive shell, whatever this process inherited: a background job or `nohup` ignores some."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


class Pdj:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.store = JobStore(self.state)
        self.environment = {**os.environ, "PADDLEJOB_STATE": str(self.state), "COLUMNS": "200"}
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str = "job", *, command: list[str] | None = None, **options: Any) -> str:
        """A job file in which every role runs one command; `worker_command` and `ps_command` override it."""
        own = {role: options.pop(f"{role}_command", None) or command for role in ("ps", "worker", "heter")}
        container = options.pop("container", {})
        pod = options.pop("pod", {})
        spec: dict[str, Any] = {}
        for role, count in (("ps", options.pop("ps", 0)), ("worker", options.pop("workers", 1))):
            if count:
                one = {
                    "name": "paddle",
                    "image": "program",
                    **({"command": own[role]} if own[role] else {}),
                    **container,
                }
                spec[role] = {"replicas": count, "template": {"spec": {"containers": [one], **pod}}}
        document = {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {**spec, **options},
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, allow_unicode=True))
        return str(path)

    def __call__(self, *arguments: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*START, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
            preexec_fn=partial(_signals, ()),
        )

    def here(self, *arguments: str) -> Called:
        """In this process, for a command that starts nothing."""
        return called_pdj.pdj(*arguments, folder=self.folder, PADDLEJOB_STATE=str(self.state), COLUMNS="200")

    def start(self, *arguments: str, ignoring: Iterable[signal.Signals] = ()) -> subprocess.Popen[str]:
        """In the background; it ignores these signals from the start, as under `nohup`."""
        started = subprocess.Popen(
            [*START, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=partial(_signals, tuple(ignoring)),
        )
        self._started.append(started)
        return started

    def folder_of(self, name: str) -> JobFolder:
        return self.store.folder(("default", name))

    def status(self, name: str) -> Status:
        job = self.folder_of(name).job()
        return job.status if job else Status()

    def until(self, name: str, **expected: Any) -> Status:
        """Wait for fields of the status."""

        def seen() -> bool:
            status = self.status(name)
            return all(getattr(status, field) == value for field, value in expected.items())

        wait(seen, lambda: f"{expected}, but it is {self.status(name)}")
        return self.status(name)

    def log(self, name: str, pod: str, attempt: int = 1) -> str:
        path = self.folder_of(name).log(attempt, f"{name}-{pod}")
        return path.read_text(errors="replace") if path.exists() else ""

    def processes(self) -> list[int]:
        """All living processes that were started with this state directory."""
        mark = f"PADDLEJOB_STATE={self.state}".encode()
        return [pid for pid, environment in environments() if mark in environment]

    def until_nothing_lives(self) -> None:
        wait(lambda: not self.processes(), lambda: f"no process: {self.processes()} live")

    def close(self) -> None:
        """End what a test has left running."""
        for started in self._started:
            if started.poll() is None:
                started.kill()
            started.communicate()
        for folder in list(self.store.folders()):
            if folder.has_runner:
                self("delete", folder.key[1], "-n", folder.key[0])
        ends = time.monotonic() + 60
        while self.processes() and time.monotonic() < ends:
            time.sleep(0.05)


def wait(until: Callable[[], bool], what: Callable[[], str], patience: float = PATIENCE) -> None:
    ends = time.monotonic() + patience
    while not until():
        assert time.monotonic() < ends, f"waited {patience:.0f} s for {what()}"
        time.sleep(0.05)


def send(process: subprocess.Popen[str], number: signal.Signals) -> None:
    os.kill(process.pid, number)
