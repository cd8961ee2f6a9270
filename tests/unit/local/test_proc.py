"""The processes of this machine, as /proc lists them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local.sandbox import proc
from paddlejob.local.sandbox.proc import descendants, environments, kill_with_variable, memory_below, parents

ALLOCATE = "x = b'x' * (64 << 20); print(len(x), flush=True); input()"


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A shell and its child, which uses 64 MiB."""
    command = ["bash", "-c", f'{sys.executable} -c "{ALLOCATE}"; true']
    environment = {**os.environ, "OF_A_TEST": str(os.getpid())}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        (child,) = descendants(shell.pid)
        yield shell.pid, child
        for pid in (child, shell.pid):
            if Path("/proc", str(pid)).exists():
                os.kill(pid, 9)


def test_the_family_of_a_process(family: tuple[int, int]):
    shell, child = family
    assert parents()[child] == shell
    assert parents()[shell] == os.getpid()
    assert {shell, child} <= set(descendants(os.getpid()))
    assert descendants(child) == []


def test_memory_is_counted_for_the_root_of_each_tree(family: tuple[int, int]):
    shell, child = family
    used = memory_below([shell])
    assert 64 << 20 < used[shell] < 200 << 20
    both = memory_below([shell, child])
    assert both[shell] < 32 << 20 < both[child], "each process counts once, for the nearest root"
    assert memory_below([1 << 30]) == {1 << 30: 0}


def test_processes_are_found_and_killed_by_a_variable(family: tuple[int, int]):
    mark = f"OF_A_TEST={os.getpid()}".encode()
    assert {pid for pid, variables in environments() if mark in variables} == set(family)
    kill_with_variable({b"OF_A_TEST=another"})
    assert all(Path("/proc", str(pid)).exists() for pid in family)
    kill_with_variable({mark, b"UNRELATED=1"})
    assert os.waitpid(family[0], 0)[1] == 9


def test_the_kernels_count_of_processes_killed_for_lack_of_memory(monkeypatch: pytest.MonkeyPatch):
    assert proc.out_of_memory_kills() >= 0
    monkeypatch.setattr(proc, "_read", lambda path: b"oom_kill_other 9\noom_kill 7\nnr_free 3\n")
    assert proc.out_of_memory_kills() == 7
    monkeypatch.setattr(proc, "_read", lambda path: b"")
    assert proc.out_of_memory_kills() == 0


def test_shared_memory_counts_once(monkeypatch: pytest.MonkeyPatch):
    files = {
        "/proc/7/status": b"Name:\tx\nRssAnon:\t 100 kB\nRssFile:\t 900 kB\nRssShmem:\t 40 kB\n",
        "/proc/7/smaps_rollup": b"Pss_Shmem:\t 10 kB\n",
        "/proc/8/status": b"RssAnon:\t 1 kB\n",
    }
    monkeypatch.setattr(proc, "_read", lambda path: files.get(str(path), b""))
    assert proc._own_memory(7) == 110 * 1024
    assert proc._own_memory(8) == 1024
    del files["/proc/7/smaps_rollup"]
    assert proc._own_memory(7) == 140 * 1024
