"""Starts the pods of a Job as processes on loopback addresses of their own, as the embedded engine does."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "src" / "paddlejob" / "examples"
START_PADDLE = EXAMPLES / "k8s_train" / "start_paddle.py"
START_SH = EXAMPLES / "k8s_train" / "start.sh"
JOB = "paddle-cluster-job"
# Generous: the machine may be shared, and importing Paddle alone takes seconds.
PATIENCE = 300.0
_networks = itertools.count(os.getpid() * 3)


@dataclass
class Pod:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """As if its node failed: server, trainer and launcher at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Stage:
    """A shared volume and the pods that use it; kills the processes that are left on close."""

    volume: Path
    logs: Path
    trainers: int = 3
    port: int = 7164
    pods: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.move()

    def move(self) -> None:
        """New pods have new addresses."""
        number = next(_networks)
        self.network = f"127.{10 + number // 250 % 50}.{number % 250}"

    @property
    def job(self) -> Path:
        return self.volume / JOB

    @property
    def addresses(self) -> list[str]:
        """Chosen so that text order and numeric order differ."""
        return [f"{self.network}.{9 + index}" for index in range(self.trainers)]

    def environ(self, address: str) -> dict[str, str]:
        """The variables of document 003, and those that the embedded engine sets."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PADDLE", "TRAIN", "JOB_"))}
        return clean | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "JOB_NAME": JOB,
            "JOB_PATH": str(self.volume),
            "JOB_NAMESPACE": "default",
            "TRAIN_CONFIG_DIR": "quick_start",
            "CONF_PADDLE_NIC": "eth0",
            "CONF_PADDLE_PORT": str(self.port),
            "CONF_PADDLE_PORTS_NUM": "2",
            "CONF_PADDLE_PORTS_NUM_SPARSE": "2",
            "CONF_PADDLE_GRADIENT_NUM": str(self.trainers),
            "TRAINER_COUNT": "3",
            "PADDLEJOB_PEERS": ",".join(self.addresses),
            "PADDLEJOB_POD_IP": address,
        }

    def start(self, command: list[str], extra: Mapping[str, str] | None = None) -> list[Pod]:
        return [self.start_one(address, command, extra) for address in self.addresses]

    def start_one(self, address: str, command: list[str], extra: Mapping[str, str] | None = None) -> Pod:
        log = self.logs / f"{len(self.pods)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=self.environ(address) | dict(extra or {}),
                cwd=self.logs,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pods.append(Pod(process, log))
        return self.pods[-1]

    def close(self) -> None:
        for pod in self.pods:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pod.process.pid, signal.SIGKILL)
            pod.process.wait(30)


@contextlib.contextmanager
def stage(directory: Path, trainers: int = 3) -> Iterator[Stage]:
    volume, logs = directory / "volume", directory / "logs"
    for made in (volume, logs):
        made.mkdir(parents=True, exist_ok=True)
    opened = Stage(volume, logs, trainers)
    try:
        yield opened
    finally:
        opened.close()


def wait_until(condition: Callable[[], bool], what: str, pods: list[Pod]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {PATIENCE:.0f} s: {what}\n" + "\n".join(
            p.text for p in pods
        )
        assert all(pod.process.poll() is None for pod in pods), "\n".join(pod.text for pod in pods)
        time.sleep(0.2)


def get_data(on: Stage, parts: int, samples: int, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run the data job's program as the image k8s_data does."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "k8s_data" / "get_data.py")],
        env={**os.environ, "OUT_DIR": str(on.job), "SPLIT_COUNT": str(parts), "SAMPLES": str(samples), **extra},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
