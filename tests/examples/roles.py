"""Starts the processes of a job directly, each with the environment that a cluster would set.

Every process has a loopback address of its own, and all use the same port, as pods do.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "src" / "paddlejob" / "examples"
# Generous: the machine may be shared, and importing Paddle alone takes seconds.
PATIENCE = 300.0
MARK = "PADDLEJOB_EXAMPLE_RUN"
_networks = itertools.count(os.getpid() * 7)


@dataclass
class Pod:
    """One process of a job and the file with everything it printed."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self, timeout: float = PATIENCE) -> int:
        return self.process.wait(timeout)

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def metrics(self) -> dict[str, float]:
        """The numbers in the line that starts with `final`."""
        (line,) = re.findall(r"^(?:worker 0 of \d+: )?final (.*)$", self.text, re.MULTILINE)
        return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line)}


@dataclass
class Stage:
    """Starts processes, and kills those that are left on close."""

    logs: Path
    program: list[str]
    extra: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    network: str = ""
    run: str = ""
    pods: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = next(_networks)
        self.network = f"127.{20 + number // 250 % 200}.{number % 250}"
        self.port = _free_port()
        self.run = uuid.uuid4().hex
        self.logs.mkdir(parents=True, exist_ok=True)

    def endpoints(self, first: int, count: int) -> list[str]:
        return [f"{self.network}.{first + index}:{self.port}" for index in range(count)]

    def start(self, name: str, env: Mapping[str, str]) -> Pod:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PADDLE", "TRAINING"))}
        whole = inherited | {"OMP_NUM_THREADS": "1", MARK: self.run} | dict(self.extra) | dict(env)
        log = self.logs / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *self.program],
                env=whole,
                cwd=self.logs,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pod = Pod(name, process, log)
        self.pods.append(pod)
        return pod

    def left_over(self) -> list[int]:
        """The running processes that this stage started, found by a variable in their environment."""
        mark = f"{MARK}={self.run}".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in environ.read_bytes():
                    found.append(int(environ.parent.name))
        return found

    def close(self) -> None:
        for pid in self.left_over():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pod in self.pods:
            pod.process.wait(30)


@contextlib.contextmanager
def stage(logs: Path, *program: str | Path, **extra: str) -> Iterator[Stage]:
    opened = Stage(logs, [os.fspath(argument) for argument in program], extra)
    try:
        yield opened
    finally:
        opened.close()


def start_ps_job(on: Stage, servers: int = 2, workers: int = 2, gloo: bool = True) -> tuple[list[Pod], list[Pod]]:
    """Servers and workers, with gloo on for the workers unless `withGloo` is 0."""
    server_list, worker_list = on.endpoints(1, servers), on.endpoints(101, workers)
    common = _servers(on, server_list, gloo) | _workers(on, worker_list)
    return (
        [on.start(f"ps-{index}", common | _pod(on, end, index, "PSERVER")) for index, end in enumerate(server_list)],
        [
            on.start(f"worker-{index}", common | _pod(on, end, index, "TRAINER"))
            for index, end in enumerate(worker_list)
        ],
    )


def join_ps_job(on: Stage, name: str, index: int, servers: int, workers: int, **extra: str) -> Pod:
    """A worker that starts while others train, or where another has trained; without gloo."""
    worker_list = on.endpoints(101, workers)
    common = _servers(on, on.endpoints(1, servers), gloo=False) | _workers(on, worker_list)
    return on.start(name, common | _pod(on, worker_list[index], index, "TRAINER") | {"PADDLEJOB_JOINS": "1"} | extra)


def _servers(on: Stage, endpoints: list[str], gloo: bool) -> dict[str, str]:
    found = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints), "SYS_JOB_ID": on.run}
    if not gloo:
        return found
    return found | {
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": "3",
        "PADDLE_GLOO_HTTP_ENDPOINT": f"{on.network}.1:{on.port + 18}",
    }


def start_collective_job(on: Stage, workers: int = 2, own: Sequence[Mapping[str, str]] = ()) -> list[Pod]:
    """Workers with `own` variables, if they differ."""
    worker_list = on.endpoints(101, workers)
    return [
        on.start(
            f"worker-{index}",
            _workers(on, worker_list)
            | _pod(on, end, index, "TRAINER")
            | {"PADDLE_CURRENT_ENDPOINT": end}
            | dict(own[index] if own else {}),
        )
        for index, end in enumerate(worker_list)
    ]


def _workers(on: Stage, endpoints: list[str]) -> dict[str, str]:
    return {
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_TRAINERS": ",".join(endpoint.rsplit(":", 1)[0] for endpoint in endpoints),
        "PADDLE_TRAINERS_NUM": str(len(endpoints)),
        "PADDLE_PORT": str(on.port),
        "TRAINER_PORTS_NUM": "1",
    }


def _pod(on: Stage, endpoint: str, index: int, role: str) -> dict[str, str]:
    return {
        "POD_IP": endpoint.rsplit(":", 1)[0],
        "PADDLE_TRAINER_ID": str(index),
        "TRAINING_ROLE": role,
        "PADDLE_TRAINING_ROLE": role,
    }


def _free_port() -> int:
    """A port that is free on every address, and the one 18 above it, which gloo uses."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("", 0))
            port: int = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("", port + 18))
                return port


def stopped_in(pods: list[Pod]) -> float:
    """Terminate each process, and return how long the last one took."""
    began = time.monotonic()
    for pod in pods:
        pod.process.terminate()
    for pod in pods:
        pod.wait(60)
    return time.monotonic() - began
