"""Wrong clocks for single processes. The clock of the machine is never changed.

Time namespaces do not shift CLOCK_REALTIME, and a preloaded library does not reach programs in Go. But all programs
read the time by calling code that the kernel maps into each process, the vDSO, and it can be replaced while they run.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlejob.errors import NotPossible

SUPPORTED = platform.machine() == "x86_64"
FUNCTION = "__vdso_clock_gettime"
BEFORE = bytes.fromhex("b8e4000000 0f05 85ff 7507 488106")
"""mov eax, 228 (clock_gettime); syscall; test edi, edi (CLOCK_REALTIME is 0); jne to `ret`; add qword [rsi], ..."""
RETURN = b"\xc3"
PATIENCE = 10.0


def shift(pid: int, seconds: int) -> None:
    """Let a process see a time that many seconds after the true one. Raises ProcessLookupError if it has ended."""
    if not SUPPORTED:
        raise NotPossible("clocks of processes can be shifted on x86-64 only")
    deadline = time.monotonic() + PATIENCE
    while not _replaced(pid, BEFORE + struct.pack("<i", seconds) + RETURN):
        if time.monotonic() > deadline:
            raise NotPossible(f"process {pid} was reading the clock each time it was stopped")


def _replaced(pid: int, code: bytes) -> bool:
    """Replace the function, unless a thread is inside the vDSO at this moment."""
    begin, end = _vdso(pid)
    with _stopped(pid):
        if any(begin <= address < end for address in _addresses(pid)):
            return False
        try:
            with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
                memory.seek(begin + _offset())
                memory.write(code)
        except PermissionError as error:
            raise NotPossible(f"the memory of process {pid} cannot be written; run it as root") from error
    return True


def _vdso(pid: int | str) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    for line in lines:
        if line.endswith("[vdso]"):
            begin, end = line.split()[0].split("-")
            return int(begin, 16), int(end, 16)
    # A zombie has no memory.
    raise ProcessLookupError(pid)


def _offset() -> int:
    """Where the function is; the code is the same in all processes."""
    here = ctypes.cast(getattr(ctypes.CDLL("linux-vdso.so.1"), FUNCTION), ctypes.c_void_p).value
    return (here or 0) - _vdso("self")[0]


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    if _states(pid) <= {"T"}:
        yield
        return
    os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + PATIENCE
        while _states(pid) - {"T", "Z"} and time.monotonic() < deadline:
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    return {text.rpartition(")")[2].split()[0] for text in _of_threads(pid, "stat")}


def _addresses(pid: int) -> list[int]:
    """The next instruction of each thread of a stopped process."""
    return [int(text.split()[-1], 16) for text in _of_threads(pid, "syscall") if text.split()[-1].startswith("0x")]


def _of_threads(pid: int, file: str) -> list[str]:
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            found.append((thread / file).read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
