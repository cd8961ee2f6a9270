"""A GPU is locked for the whole machine, whoever asks, and the kernel releases it with its process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import paddlejob
from paddlejob.local.machine.gpu_locks import GpuLock, is_free, lock_gpus, share_gpus
from paddlejob.local.machine.gpus import Gpu
from tests.support.fake_gpus import fake_gpus

SOURCE = Path(paddlejob.__file__).parents[1]
NOBODY = 65534
PYTHON = "/usr/bin/python3"
HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.gpus import Gpu
locks = lock_gpus([Gpu(uuid, "") for uuid in sys.argv[3:]], int(sys.argv[2]))
print(*[lock.gpu.uuid for lock in locks], flush=True)
sys.stdin.read()
"""

COMPETE = """
import os, pathlib, random, sys
sys.path.insert(0, sys.argv[1])
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.gpus import Gpu
got = 0
for _ in range(300):
    locks = lock_gpus([Gpu(uuid, "") for uuid in sys.argv[3:]], random.randint(1, 3))
    got += bool(locks)
    files = [pathlib.Path(sys.argv[2], lock.gpu.uuid) for lock in locks]
    for file in files:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    for file in files:
        file.unlink()
    for lock in locks:
        lock.release()
print(got)
"""


@contextmanager
def other_process(
    gpus: tuple[Gpu, ...], count: int, python: str = sys.executable, source: Path = SOURCE, **options: Any
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    command = [python, "-I", "-S", "-c", HOLD, str(source), str(count), *(gpu.uuid for gpu in gpus)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.kill()


def release(locks: list[GpuLock]) -> None:
    for lock in locks:
        lock.release()


def test_another_process_gets_other_gpus_and_none_if_too_few_are_left():
    gpus = fake_gpus(3)
    with other_process(gpus, 2) as (_, held):
        assert held == [gpus[0].uuid, gpus[1].uuid]
        assert [is_free(gpu) for gpu in gpus] == [False, False, True]
        assert lock_gpus(gpus, 2) == []
        assert is_free(gpus[2]), "what does not suffice is not kept"
        ours = lock_gpus(gpus, 1)
        assert [lock.gpu for lock in ours] == [gpus[2]]
        release(ours)


def test_the_gpus_of_a_killed_process_are_free():
    gpus = fake_gpus(1)
    with other_process(gpus, 1) as (process, held):
        assert held
        process.kill()
        process.wait()
        assert is_free(gpus[0])


def test_another_user_does_not_get_a_gpu_that_is_held():
    if os.geteuid() != 0 or not Path(PYTHON).exists():
        pytest.skip("needs root to become another user, and a Python that every user may run")
    gpus = fake_gpus(2)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        machine = Path(name, "paddlejob", "local", "machine")
        machine.mkdir(parents=True)
        for module in ("gpus.py", "gpu_locks.py"):
            shutil.copy(SOURCE / "paddlejob" / "local" / "machine" / module, machine)
        ours = lock_gpus(gpus, 1)
        other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        with other_process(gpus, 1, PYTHON, Path(name), **other) as (_, held):
            assert held == [gpus[1].uuid]
            assert not is_free(gpus[1])
            assert lock_gpus(gpus[1:], 1) == []
        release(ours)


def test_gpus_are_locked_as_a_whole_or_not_at_all():
    gpus = fake_gpus(3)
    held = lock_gpus(gpus[1:2], 1)
    assert lock_gpus(gpus, 3) == []
    assert [is_free(gpu) for gpu in gpus] == [True, False, True], "nothing stays locked"
    both = lock_gpus(gpus, 2)
    assert [lock.gpu for lock in both] == [gpus[0], gpus[2]]
    assert not any(lock.shared for lock in both)
    release(held + both)
    assert all(map(is_free, gpus))
    assert lock_gpus(gpus, 0) == []


def test_a_job_that_shares_takes_free_gpus_first_and_no_more_than_it_needs():
    gpus = fake_gpus(3)
    held = lock_gpus(gpus[:1], 1)
    one = share_gpus(gpus, 1)
    assert [(lock.gpu, lock.shared) for lock in one] == [(gpus[1], False)]
    assert is_free(gpus[2])
    three = share_gpus(gpus, 3)
    assert {(lock.gpu, lock.shared) for lock in three} == {(gpus[0], True), (gpus[1], True), (gpus[2], False)}
    release(held)
    assert not is_free(gpus[0]), "it is still shared"
    assert lock_gpus(gpus[:1], 1) == []
    release(one + three)
    assert all(map(is_free, gpus))


def test_a_gpu_is_shared_by_eight_jobs_at_most_and_the_ninth_takes_none():
    gpus = fake_gpus(2)
    held = lock_gpus(gpus[:1], 1)
    sharing = [share_gpus(gpus[:1], 1) for _ in range(8)]
    assert all(len(locks) == 1 and locks[0].shared for locks in sharing)
    assert share_gpus(gpus[:1], 1) == []
    assert share_gpus(gpus, 2) == []
    assert is_free(gpus[1]), "nothing stays locked"
    for locks in (held, *sharing):
        release(locks)


def test_the_gpu_that_the_fewest_jobs_share_is_shared_next():
    gpus = fake_gpus(2)
    held = lock_gpus(gpus, 2)
    first = share_gpus(gpus[:1], 1)
    second = share_gpus(gpus, 1)
    assert second[0].gpu == gpus[1]
    assert share_gpus(gpus, 3) == [], "there are only two"
    for locks in (held, first, second):
        release(locks)


def test_processes_that_compete_never_hold_one_gpu_at_the_same_time(tmp_path: Path):
    """While a process holds a GPU, it owns a file of that name, which a second holder could not create."""
    gpus = fake_gpus(3)
    command = [sys.executable, "-I", "-S", "-c", COMPETE, str(SOURCE), str(tmp_path), *(gpu.uuid for gpu in gpus)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen([*command], stdout=pipe, stderr=subprocess.STDOUT, text=True) for _ in range(6)]
    ends = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, ends
    assert sum(map(int, ends)) > 0, "some process got its GPUs"
    assert all(is_free(gpu) for gpu in gpus)
