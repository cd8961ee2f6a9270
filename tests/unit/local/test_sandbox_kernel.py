"""System calls of the sandbox: their flags, and what an error says."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from paddlejob.local.sandbox import kernel


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
