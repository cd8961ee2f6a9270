"""The processes of this machine, read from /proc; one that ends meanwhile is left out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def descendants(root: int) -> list[int]:
    """All descendants of a process."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in children.get(pid, [])]
        found += level
    return found


def parents() -> dict[int, int]:
    found = {}
    for process in _processes():
        stat = _read(process / "stat").decode(errors="replace")
        if stat:
            found[int(process.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def environments() -> Iterator[tuple[int, list[bytes]]]:
    """Other processes and their environments, as far as this user may read them."""
    for process in _processes():
        if int(process.name) != os.getpid():
            yield int(process.name), _read(process / "environ").split(b"\0")


def kill_with_variable(variables: set[bytes]) -> None:
    """Kill every process that has one of these NAME=VALUE entries in its environment."""
    for pid, environment in environments():
        if variables & set(environment):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def end_orphans(known: set[int]) -> None:
    """Kill and reap all children of this process but the known ones, and what they started."""
    while True:
        children = [pid for pid, parent in parents().items() if parent == os.getpid() and pid not in known]
        if not children:
            return
        for child in children:
            for pid in (child, *descendants(child)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def memory_below(roots: Iterable[int]) -> dict[int, int]:
    """By the root of each process tree: the bytes of memory of its processes, shared memory once, without files."""
    known = parents()
    used = dict.fromkeys(roots, 0)
    for pid in known:
        root = pid
        while root and root not in used:
            root = known.get(root, 0)
        if root:
            used[root] += _own_memory(pid)
    return used


def out_of_memory_kills() -> int:
    """How many processes the kernel has killed for lack of memory since boot."""
    for line in _read(Path("/proc/vmstat")).splitlines():
        if line.startswith(b"oom_kill "):
            return int(line.split()[1])
    return 0


def _own_memory(pid: int) -> int:
    status = _sizes(Path("/proc", str(pid), "status"))
    shared = status.get(b"RssShmem", 0)
    if shared:
        # A page that several processes map counts in parts; reading this is slow, so only where it matters.
        shared = _sizes(Path("/proc", str(pid), "smaps_rollup")).get(b"Pss_Shmem", shared)
    return status.get(b"RssAnon", 0) + shared


def _sizes(path: Path) -> dict[bytes, int]:
    """Lines such as `RssAnon:  1024 kB`, in bytes."""
    found = {}
    for line in _read(path).splitlines():
        name, _, value = line.partition(b":")
        if value.endswith(b" kB"):
            found[name] = int(value[:-3]) * 1024
    return found


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
