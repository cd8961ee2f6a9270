"""Who runs a job: a lock that the kernel releases with the process that holds it, and a record of its machine.

Several machines may share a state directory, as in a home directory on NFS. There a lock of one machine may be unknown
to another, or be kept for a machine that is gone. So only the machine in the record judges the lock.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from paddlejob.local.state.files import encode_json, read_if_intact, replace_file
from paddlejob.locks import ProcessLock, is_locked

LOCK, RECORD = "host.lock", "runner.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Host:
    name: str
    machine: str
    """The same after a reboot. Containers and machines of one image may share the machine ID, so it counts with the
    name."""
    boot: str
    """Of the kernel. Containers on one machine have different names, but one kernel, which knows the locks of all."""

    def knows_locks_of(self, other: Host) -> bool:
        """Whether the lock of a job that the other ran can be judged here: by its kernel, or after a reboot."""
        return self.boot == other.boot or self.machine == other.machine


@cache
def this_host() -> Host:
    name = platform.node()
    # The machine ID is not for others to read.
    machine = hashlib.sha256(f"{name} {_text(MACHINE_ID)}".encode()).hexdigest()[:32]
    return Host(name, machine, _text(BOOT_ID) or machine)


def other_host(folder: Path) -> str:
    """The name of another machine that runs the job in this directory, as far as is known; else empty."""
    found = read_if_intact(folder / RECORD)
    try:
        host = Host(**found)
    except TypeError:
        return ""
    return "" if this_host().knows_locks_of(host) else host.name


def runs_here(folder: Path) -> bool:
    """Whether a living process of this machine runs the job."""
    return not other_host(folder) and is_locked(folder / LOCK)


class RunnerLock(ProcessLock):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / LOCK)
        self._folder = folder

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock and, unless it is shared, become the runner; returns False if the job has one."""
        if not super().acquire(shared=shared):
            return False
        if other_host(self._folder) or not (shared or self._record()):
            self.release()
            return False
        return True

    def give_up(self) -> None:
        """Let other processes and machines run the job. If it was deleted, a new one may have its directory."""
        if self.descriptor >= 0:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self.descriptor), (self._folder / LOCK).stat()):
                    (self._folder / RECORD).unlink()
        self.release()

    def _record(self) -> bool:
        """Another machine may do so at the same time: of two that create a file, NFS too lets one succeed."""
        path, content = self._folder / RECORD, encode_json(asdict(this_host()))
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            if other_host(self._folder):
                return False
            replace_file(path, content)
            return True
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return True


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""
