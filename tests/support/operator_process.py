"""The operator as a process with a kubeconfig."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OperatorProcess:
    """`pdj operator` with its log in a file; of another version if `source` holds its packages."""

    def __init__(
        self, kubeconfig: Path, log: Path, *options: str, source: Path | None = None, agents: bool = False
    ) -> None:
        self.log = log
        self.agent_port = free_port() if agents else 0
        """On which agents are served; the same after a restart, because pods know it."""
        self._command = [sys.executable, "-m", "paddlejob", "operator", *options]
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        if source is not None:
            self._environment["PYTHONPATH"] = str(source)
        self._process: subprocess.Popen[bytes] | None = None
        self.metrics_port = self.health_port = 0

    def __enter__(self) -> OperatorProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.metrics_port, self.health_port = free_port(), free_port()
        addresses = [
            f"--metrics-bind-address=127.0.0.1:{self.metrics_port}",
            f"--health-probe-bind-address=127.0.0.1:{self.health_port}",
        ]
        if self.agent_port:
            address = f"127.0.0.1:{self.agent_port}"
            addresses += [f"--agent-url=https://{address}", f"--agent-bind-address={address}"]
            addresses += ["--leader-namespace=paddle-system"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *addresses], env=self._environment, stdout=log, stderr=log
            )

    def stop(self) -> int | None:
        """Stop it as a kubelet would; returns its exit code."""
        if self._process is None:
            return None
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def suspend(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def get(self, path: str) -> str:
        port = self.metrics_port if path == "/metrics" else self.health_port
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            text: str = response.read().decode()
            return text

    def until_ready(self, seconds: float = 60) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            assert self.running, self.log.read_text()
            try:
                if self.get("/readyz") == "ok":
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"not ready in {seconds} s:\n{self.log.read_text()}")
