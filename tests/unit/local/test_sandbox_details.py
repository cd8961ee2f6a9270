"""What a program in a container finds open, and what a supervisor says about one that cannot start."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from paddlejob.local.sandbox import kernel
from paddlejob.local.sandbox.supervisor import SWITCH
from tests.support.processes import is_alive
from tests.support.tiny_jobs import until
from tests.unit.local.test_sandbox import Box, bind, box, isolated

__all__ = ["box", "isolated"]


TRUE, LOADER = Path("/bin/true").read_bytes(), b"/lib64/ld-linux-x86-64.so.2"
FILES = """
import os, sys
print(repr(sys.stdin.read()), end=" ")
for number in range(100):
    if os.path.exists(f"/proc/self/fd/{number}"):
        print(number, os.readlink(f"/proc/self/fd/{number}"), end=" ")
"""


async def test_a_program_reads_nothing_and_has_no_other_file_open(box: Box):
    log = box.log("a")
    assert await box.output(["python3", "-c", FILES]) == [f"'' 0 /dev/null 1 {log} 2 {log} "]


async def test_a_program_leads_a_session_of_its_own(box: Box):
    (line,) = await box.output(["python3", "-c", "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"])
    assert line == "True"


async def test_a_request_may_be_longer_than_what_is_read_at_once(box: Box):
    environment = {"PATH": os.environ["PATH"]} | {f"LONG_{number}": "x" * 100_000 for number in range(12)}
    assert await box.output("echo ${#LONG_0} ${#LONG_11}", env=environment) == ["100000 100000"]


async def test_a_script_whose_interpreter_is_missing_says_so(box: Box):
    script = box.root / "train"
    script.write_text("#! /no/such/python -u\n")
    script.chmod(0o755)
    for number, path in enumerate((str(script), "train")):
        box.start([path], f"c{number}", env={"PATH": f"/usr/bin:{box.root}"})
        await box.gone(f"c{number}")
        message = f"{path}: needs /no/such/python, which does not exist"
        assert box.reports[f"c{number}"] == [{"failed": message}, {"gone": True}]


async def test_a_program_of_another_system_says_that_its_loader_is_missing(box: Box):
    program = box.root / "foreign"
    if LOADER not in TRUE:
        pytest.skip("needs a program with the loader of x86-64")
    program.write_bytes(TRUE.replace(LOADER, LOADER.replace(b"linux", b"other")))
    program.chmod(0o755)
    box.start([str(program)])
    await box.gone()
    assert box.value("a", "failed") == f"{program}: needs the loader of another system, which does not exist"


async def test_a_command_is_searched_in_the_path_of_the_program(box: Box):
    (box.root / "mine").write_text("#!/bin/sh\necho found $1\n")
    (box.root / "mine").chmod(0o755)
    assert await box.output(["mine", "it"], env={"PATH": f"/usr/bin:{box.root}"}) == ["found it"]
    box.start(["mine"], "b", env={"PATH": "/usr/bin"})
    await box.gone("b")
    assert box.value("b", "failed") == "mine: no such command"


async def test_a_container_that_is_not_there_is_neither_terminated_nor_killed(box: Box):
    box.start("echo up; sleep 300")
    await box.prints("up")
    box.processes.terminate("another")
    box.processes.kill("another")
    assert await box.output("echo alive", "b") == ["alive"]
    assert box.value("a", "ended") is None


async def test_what_a_killed_first_process_leaves_running_ends_with_its_container(box: Box):
    box.start("setsid sleep 300 & echo up; sleep 300")
    await box.prints("up")
    pid, below = await box.grown(2)
    os.kill(pid, signal.SIGKILL)
    await box.gone()
    await until(lambda: not any(map(is_alive, below)))


async def test_a_first_process_that_was_killed_leaves_other_containers_alone(box: Box):
    box.start("echo up; sleep 300", "other")
    await box.prints("up", "other")
    box.start("sleep 300")
    pid, other = await box.started(), await box.started("other")
    os.kill(pid, signal.SIGKILL)
    await box.gone()
    assert is_alive(other)
    assert box.value("other", "ended") is None


async def test_a_volume_in_memory_can_be_written_by_every_user_and_is_not_seen_outside(isolated: Box, tmp_path: Path):
    memory = tmp_path / "memory"
    memory.mkdir()
    mounted = bind("/dev/shm", memory, memory=str(memory))
    script = "stat -c %a /dev/shm; stat -f -c %T /dev/shm; echo kept > /dev/shm/file"
    assert await isolated.output(script, mounts=[mounted]) == ["1777", "tmpfs"]
    assert list(memory.iterdir()) == []


async def test_the_proc_of_a_container_is_mounted_as_container_engines_do(isolated: Box):
    (flags,) = await isolated.output("grep ' /proc proc' /proc/mounts | tail -1 | cut -d' ' -f4")
    assert {"rw", "nosuid", "nodev", "noexec"} <= set(flags.split(","))


def test_the_numbers_of_flags_are_those_of_the_headers_of_the_kernel(tmp_path: Path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    flags = {name: value for name, value in vars(kernel).items() if name.startswith(("CLONE_", "MS_", "MNT_", "PR_"))}
    assert len(flags) > 15
    lines = "".join(f'printf("{name} %lld\\n", (long long){name});' for name in flags)
    headers = "#define _GNU_SOURCE\n" + "".join(
        f"#include <{one}>\n" for one in ("sched.h", "stdio.h", "sys/mount.h", "sys/prctl.h")
    )
    (tmp_path / "flags.c").write_text(f"{headers}int main(void) {{ {lines} return 0; }}\n")
    subprocess.run([compiler, "-o", tmp_path / "flags", tmp_path / "flags.c"], check=True)
    done = subprocess.run([tmp_path / "flags"], capture_output=True, text=True, check=True)
    assert {name: int(value) for name, value in map(str.split, done.stdout.splitlines())} == flags


def test_a_system_call_that_fails_says_what_was_tried(tmp_path: Path):
    with pytest.raises(OSError, match=f"umount {tmp_path}") as caught:
        kernel.detach(str(tmp_path))
    assert caught.value.errno in (errno.EINVAL, errno.EPERM)
    with pytest.raises(OSError, match=f"mount none at {tmp_path}/absent"):
        kernel.mount("none", str(tmp_path / "absent"), "tmpfs")
    with pytest.raises(OSError, match="setns"):
        kernel.setns(-1, kernel.CLONE_NEWPID)
    with pytest.raises(OSError, match="prctl"):
        kernel.die_with_parent(-1)


def test_the_switch_is_a_promise_to_users():
    assert SWITCH == "PADDLEJOB_NAMESPACES"
