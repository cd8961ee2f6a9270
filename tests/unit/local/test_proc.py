"""The processes of this machine, as /proc lists them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes files of a /proc of a test's own; names have __ instead of /."""
    monkeypatch.setattr(proc, "PROC", str(tmp_path))

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name.removeprefix("p").replace("__", "/").replace("thread_self", "thread-self")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_the_kernels_count_of_processes_killed_for_lack_of_memory(fake: Callable[..., None]):
    assert proc.out_of_memory_kills() == 0
    fake(vmstat="oom_kill_other 9\noom_kill 7\nnr_free 3\n")
    assert proc.out_of_memory_kills() == 7


def test_only_the_trees_whose_memory_is_counted_are_read_where_the_kernel_lists_children(fake: Callable[..., None]):
    """Also children of other threads. Shared memory counts once, in parts, as far as the kernel tells."""
    fake(thread_self__children="", p7__task__7__children="8 ", p7__task__70__children="9", p9__task__9__children="10 ")
    fake(p7__status="RssAnon:\t 100 kB\nRssFile:\t 900 kB\nRssShmem:\t 40 kB\n", p7__smaps_rollup="Pss_Shmem: 10 kB\n")
    fake(p8__status="RssAnon:\t 1 kB\nRssShmem:\t 40 kB\n", p9__status="RssAnon: 2 kB\n", p10__status="RssAnon: 4 kB\n")
    assert memory_below([7]) == {7: (110 + 41 + 2 + 4) * 1024}
    assert memory_below([7, 9]) == {7: (110 + 41) * 1024, 9: 6 * 1024}


def test_where_the_kernel_does_not_list_children_they_are_found_by_their_parents(fake: Callable[..., None]):
    fake(p7__stat="7 (a) b) S 1 7", p8__stat="8 (c) S 7 8", p9__stat="9 (d) S 1 9", p7__status="RssAnon: 1 kB\n")
    fake(p8__status="RssAnon: 2 kB\n", p9__status="RssAnon: 4 kB\n")
    assert memory_below([7, 0]) == {7: 3 * 1024}, "0 is a container that is being started"
    assert sorted(descendants(1)) == [7, 8, 9]
