"""GPUs for machines that have none: a `nvidia-smi` in front of PATH, or the library of a driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from paddlejob.local.machine.gpus import Gpu

SOURCE = Path(__file__).with_name("fake_driver.c")


def new_uuid() -> str:
    """Locks hold on the whole machine: tests that run at the same time need GPUs of their own."""
    return f"GPU-{uuid.uuid4()}"


def fake_gpus(count: int) -> tuple[Gpu, ...]:
    return tuple(Gpu(new_uuid(), str(index)) for index in range(count))


class FakeSmi:
    """A machine with these GPUs whose driver can only be asked through `nvidia-smi`."""

    def __init__(self, folder: Path, uuids: list[str], model: str = "NVIDIA H100 80GB HBM3") -> None:
        self.uuids = uuids
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "libnvidia-ml.so.1").write_text("not a library, and found before a real one")
        self.lists([f"GPU {index}: {model} (UUID: {one})" for index, one in enumerate(uuids)])

    def lists(self, lines: list[str], code: int = 0) -> None:
        (self.folder / "listed").write_text("\n".join([*lines, ""]))
        self.runs(f'[ "$1" = -L ] || exit 9\ncat "{self.folder}/listed"\nexit {code}')

    def runs(self, script: str) -> None:
        program = self.folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(self.folder)}


def fake_driver(folder: Path, gpus: str) -> dict[str, str]:
    """The variables of a machine whose driver has these GPUs: "uuid|model|bus ..."; tests/support/fake_driver.c."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    for library in ("libnvidia-ml.so.1", "libcuda.so.1"):
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / library, SOURCE], check=True)
    (folder / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (folder / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(folder), "FAKE_GPUS": gpus}
