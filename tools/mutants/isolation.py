"""Namespaces for the tests of one mutant: it may kill, mount or write what the product never would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from paddlejob.local.sandbox import kernel
from paddlejob.local.sandbox.supervisor import SWITCH, probe


def is_available() -> bool:
    return os.geteuid() == 0 and os.environ.get(SWITCH) != "0" and probe()[0]


def enter(writable: Path) -> None:
    """Continue in PID and mount namespaces of this process's own, where only one directory can be written."""
    kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
    _continue_in_child()
    kernel.die_with_parent(signal.SIGKILL)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    kernel.mount(str(writable), str(writable), flags=kernel.MS_BIND)
    kernel.mount("none", "/", flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY)
    # Signals behave differently in process 1, so the tests run in another.
    _continue_in_child()


def _continue_in_child() -> None:
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 255)
