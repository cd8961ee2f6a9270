"""Containers of a user without privileges: in a user namespace they have mounts of their own too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paddlejob
from paddlejob.local.runtime.processes import START
from paddlejob.local.sandbox.proc import environments

NOBODY = 65534
PYTHON = "/usr/bin/python3"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user may enter, with a copy of the program."""
    if os.geteuid() != 0 or not Path(PYTHON).exists():
        pytest.skip("needs root to become another user, and a Python that every user may run")
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        here.chmod(0o755)
        shutil.copytree(Path(paddlejob.__file__).parent / "local", here / "src" / "paddlejob" / "local")
        shutil.copy(paddlejob.__file__, here / "src" / "paddlejob")
        for made in ("stage", "data", "logs", "memory"):
            (here / made).mkdir()
            os.chown(here / made, NOBODY, NOBODY)
        (here / "locked").mkdir()
        yield here


def ask(folder: Path, *requests: dict[str, Any], seconds: float = 30) -> list[dict[str, Any]]:
    """The reports of a supervisor of that user, until a container has gone."""
    command = [PYTHON, "-I", "-S", "-c", START, str(folder / "src")]
    supervisor = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[]
    )
    assert supervisor.stdin and supervisor.stdout
    for request in requests:
        supervisor.stdin.write(json.dumps(request) + "\n")
    supervisor.stdin.flush()
    reports = []
    for line in supervisor.stdout:
        reports.append(json.loads(line))
        if "gone" in reports[-1] or ("started" in reports[-1] and "stay" in reports[-1]["id"]):
            break
    supervisor.stdin.close()
    supervisor.wait(timeout=seconds)
    supervisor.stdout.close()
    return reports


def spec(folder: Path, name: str, script: str) -> dict[str, Any]:
    memory, data = str(folder / "memory"), str(folder / "data")
    return {
        "id": name,
        "argv": ["sh", "-c", script],
        "env": {"PATH": "/usr/bin:/bin", "PADDLEJOB_TEST": str(folder)},
        "cwd": "/nas",
        "log": str(folder / "logs" / name),
        "stage": str(folder / "stage"),
        "mounts": [
            {"target": "/nas", "source": data},
            {"target": str(folder / "locked" / "absent"), "source": data},
            {"target": "/dev/shm", "source": memory, "memory": memory, "size": 1 << 20},
        ],
    }


def test_volumes_are_mounted_and_the_user_stays_who_he_is(folder: Path):
    first, *reports = ask(
        folder, spec(folder, "one", f"id -u; echo 42 > /nas/written; ls /dev/shm {folder}/locked/absent; echo $$")
    )
    if not first["isolated"]:
        pytest.skip(f"user namespaces are not permitted here: {first['why']}")
    assert {"id": "one", "ended": 0, "oom": False} in reports
    assert (folder / "logs" / "one").read_text().split() == [
        str(NOBODY),
        *("/dev/shm:", f"{folder}/locked/absent:", "written"),
        "2",
    ]
    assert (folder / "data" / "written").read_text() == "42\n"
    assert not Path("/nas").exists()
    assert not (folder / "locked" / "absent").exists(), "the user may not write there"


def test_nothing_outlives_the_supervisor(folder: Path):
    ask(folder, spec(folder, "stay", "setsid sleep 300 & sleep 300"))
    mark = f"PADDLEJOB_TEST={folder}".encode()
    assert [pid for pid, environment in environments() if mark in environment] == []
