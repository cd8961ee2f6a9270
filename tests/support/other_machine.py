"""A second machine on this one: a host name and a kernel of its own, as far as programs can tell, and its own locks.

Its locks are its `own`, as on NFS without a lock daemon, where every lock is free; or `none`, as on file systems
without locks; or the `same`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

BOOT_ID = "/proc/sys/kernel/random/boot_id"
FLOCK = {"x86_64": 73, "aarch64": 32}.get(platform.machine(), -1)
ANSWERS = {"own": 0, "none": errno.ENOSYS}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE, ERRNO, ALLOW = 22, 38, 2, 0x00050000, 0x7FFF0000
ROOT = Path(__file__).parents[2]


def other_machine(name: str, locks: str = "own") -> list[str]:
    """What to put before a command so that it runs on that machine."""
    namespaces = ["unshare", "-m", "-u"] if os.geteuid() == 0 else ["unshare", "-r", "-m", "-u"]
    usable = shutil.which("unshare") and subprocess.run([*namespaces, "true"], capture_output=True, check=False)
    if FLOCK < 0 or not usable or usable.returncode:
        pytest.skip("needs namespaces and seccomp")
    inside = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.other_machine import main; main()"
    return [*namespaces, sys.executable, "-c", inside, name, locks, "--"]


def main() -> None:
    name, locks, _, *command = sys.argv[1:]
    socket.sethostname(name)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{uuid.uuid5(uuid.NAMESPACE_DNS, name)}\n")
        file.flush()
        subprocess.run(["mount", "--bind", file.name, BOOT_ID], check=True)
    if locks in ANSWERS:
        _answer_flock(ANSWERS[locks])
    os.execvp(command[0], command)


def _answer_flock(number: int) -> None:
    """The kernel returns this error instead of doing anything; 0 is success."""
    statements = [(0x20, 0, 0, 0), (0x15, 0, 1, FLOCK), (0x06, 0, 0, ERRNO | number), (0x06, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in statements))
    program = struct.pack("@HP", len(statements), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER_MODE, program, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")
