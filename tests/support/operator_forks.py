"""Operators that start in a moment, to be killed hundreds of times.

A process that has imported everything forks one operator after another. Each is a process of its own, so SIGKILL ends
it as it would end any other.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path


class OperatorForks:
    """`with OperatorForks(kubeconfig, log) as operators:` starts none; `start` and `kill` do what they say."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self.log = log
        self._command = [sys.executable, "-m", "tests.support.operator_forks", str(kubeconfig)]
        self._parent: subprocess.Popen[str] | None = None
        self._pid = 0
        self._begun = 0
        """How long the log was when the operator was started."""

    def __enter__(self) -> OperatorForks:
        with self.log.open("ab") as log:
            pipe = subprocess.PIPE
            self._parent = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._parent is not None
        self.kill()
        self._parent.kill()
        self._parent.wait()

    def start(self) -> None:
        self._begun = self.log.stat().st_size
        self._pid = int(self._ask("start"))

    async def is_working(self) -> bool:
        """Whether it has read the cluster and reconciles jobs."""
        return b"watching all namespaces" in self.log.read_bytes()[self._begun :]

    def kill(self) -> None:
        """Returns when it is gone."""
        if self._pid:
            self._ask(f"kill {self._pid}")
        self._pid = 0

    def _ask(self, request: str) -> str:
        parent = self._parent
        assert parent is not None and parent.stdin is not None and parent.stdout is not None
        parent.stdin.write(f"{request}\n")
        parent.stdin.flush()
        answer = parent.stdout.readline()
        assert answer, f"it ended:\n{self.log.read_text()[-2000:]}"
        return answer


def _serve(kubeconfig: str) -> None:
    from paddlejob.operator.log_format import set_up_logs

    set_up_logs("text")
    import paddlejob.operator.main  # noqa: F401

    running: set[int] = set()
    for line in sys.stdin:
        request, _, pid = line.strip().partition(" ")
        if request == "kill":
            _kill(int(pid))
            running.discard(int(pid))
            print("killed", flush=True)
        else:
            forked = _fork(kubeconfig)
            running.add(forked)
            print(forked, flush=True)
    # The tests have ended, however they did.
    for left in running:
        _kill(left)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _fork(kubeconfig: str) -> int:
    from paddlejob.kube.access import find_access
    from paddlejob.operator.main import Options, run

    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(run(find_access(kubeconfig), Options(metrics="0", probes="0", read_logs=False)))
        finally:
            os._exit(1)
    return pid


if __name__ == "__main__":
    _serve(sys.argv[1])
