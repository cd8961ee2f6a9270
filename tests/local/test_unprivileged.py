"""Containers of a user without any rights: in a user namespace they have mounts of their own all the same."""

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
from paddlejob.local.machine.proc import environments
from paddlejob.local.runtime.processes import START

NOBODY = 65534
PYTHON = "/usr/bin/python3"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may enter, with a copy of the program."""
    if os.geteuid() != 0 or not Path(PYTHON).exists():
        pytest.skip("needs root to become someone else, and a Python that everybody may run")
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        here.chmod(0o755)
        shutil.copytree(Path(paddlejob.__file__).parent / "local", here / "src" / "paddlejob" / "local")
        shutil.copy(paddlejob.__file__, here / "src" / "paddlejob")
        for made in ("stage", "data", "logs"):
            (here / made).mkdir()
            os.chown(here / made, NOBODY, NOBODY)
        yield here


def ask(place: Path, *requests: dict[str, Any], seconds: float = 30) -> list[dict[str, Any]]:
    """What a nursery of that user reports, until a container has gone."""
    command = [PYTHON, "-I", "-S", "-c", START, str(place / "src")]
    nursery = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[]
    )
    assert nursery.stdin and nursery.stdout
    for request in requests:
        nursery.stdin.write(json.dumps(request) + "\n")
    nursery.stdin.flush()
    reports = []
    for line in nursery.stdout:
        reports.append(json.loads(line))
        if "gone" in reports[-1] or ("started" in reports[-1] and "stay" in reports[-1]["id"]):
            break
    nursery.stdin.close()
    nursery.wait(timeout=seconds)
    nursery.stdout.close()
    return reports


def launch(place: Path, name: str, script: str) -> dict[str, Any]:
    return {
        "id": name,
        "argv": ["sh", "-c", script],
        "env": {"PATH": "/usr/bin:/bin", "PADDLEJOB_TEST": str(place)},
        "cwd": "/nas",
        "log": str(place / "logs" / name),
        "stage": str(place / "stage"),
        "mounts": [{"target": "/nas", "source": str(place / "data")}, {"target": "/dev/shm", "size": 1 << 20}],
    }


def test_volumes_are_mounted_and_the_user_stays_who_he_is(place: Path):
    first, *reports = ask(place, launch(place, "one", "id -u; echo 42 > /nas/written; ls /dev/shm; echo $$"))
    if not first["isolated"]:
        pytest.skip(f"user namespaces are not permitted here: {first['why']}")
    assert {"id": "one", "ended": 0, "oom": False} in reports
    assert (place / "logs" / "one").read_text().split() == [str(NOBODY), "2"]
    assert (place / "data" / "written").read_text() == "42\n"
    assert not Path("/nas").exists()


def test_nothing_outlives_the_nursery(place: Path):
    ask(place, launch(place, "stay", "setsid sleep 300 & sleep 300"))
    mark = f"PADDLEJOB_TEST={place}".encode()
    assert [pid for pid, environment in environments() if mark in environment] == []
