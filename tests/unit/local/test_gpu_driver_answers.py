"""What the program that asks a driver prints, and how it ends when the driver fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.machine.gpus import DRIVER, GpuList, find_gpus
from tests.support.fake_gpus import fake_driver, new_uuid

A, B, C, D = (new_uuid() for _ in range(4))


def ask(question: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    command = [sys.executable, "-I", "-S", str(DRIVER), question]
    return subprocess.run(command, env={**kept, **environ}, capture_output=True, text=True, check=False)


def answer(question: str, environ: dict[str, str]) -> Any:
    done = ask(question, environ)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def plain(uuid: str, pci: list[int]) -> dict[str, Any]:
    return {"uuid": uuid, "name": "H100", "pci": pci, "mig": False, "parts": []}


def test_gpus_are_listed_by_domain_bus_and_device(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|H100|2|1|0 {B}|H100|3|0|0 {C}|H100|2|0|1 {D}|H100|2|0|0")
    expected = [plain(D, [0, 2, 0]), plain(C, [0, 2, 1]), plain(B, [0, 3, 0]), plain(A, [1, 2, 0])]
    assert answer("nvml", environ) == expected


def test_a_divided_gpu_lists_both_names_of_its_parts(tmp_path: Path):
    (listed,) = answer("nvml", fake_driver(tmp_path, f"{A}|MIG|1"))
    parts = [[f"MIG-0{A[4:]}", f"MIG-{A}/7/0"], [f"MIG-1{A[4:]}", f"MIG-{A}/8/0"]]
    assert listed == {"uuid": A, "name": "MIG", "pci": [0, 1, 0], "mig": True, "parts": parts}


def test_beside_a_gpu_that_cannot_be_read_the_order_of_the_driver_is_kept(tmp_path: Path):
    listed = answer("nvml", fake_driver(tmp_path, f"{A}|H100|9 {B}|LOST|1 {C}|H100|2"))
    assert listed == [plain(A, [0, 9, 0]), None, plain(C, [0, 2, 0])]


def test_the_use_of_each_gpu_that_tells_is_printed(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|H100|9 {B}|LOST|1 {C}|MIG|2")
    use = {"uuid": A, "name": "H100", "percent": 9, "memory": 9 << 30, "capacity": 80 << 30}
    assert answer("use", environ) == [use]


def test_cuda_tells_what_a_program_sees(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|T4|1 {B}|H100|2 {C}|H100|3")
    assert answer("cuda", environ) == [C, B, A]
    assert answer("cuda", environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,0"}) == [C, A]
    assert answer("cuda", environ | {"CUDA_VISIBLE_DEVICES": "7"}) == []


@pytest.mark.parametrize(
    ("question", "message"),
    [("nvml", "nvmlInit_v2 failed with code 999"), ("cuda", "cuInit failed with code 999")],
)
def test_a_driver_that_fails_is_a_line_of_output_and_not_a_traceback(tmp_path: Path, question: str, message: str):
    environ = fake_driver(tmp_path, f"{A}|H100|1") | {"FAKE_ERROR": "999"}
    done = ask(question, environ)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", message)


def test_no_device_is_no_error_of_cuda(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|H100|1")
    assert answer("cuda", environ | {"FAKE_ERROR": "100"}) == []
    assert ask("cuda", environ | {"FAKE_ERROR": "1100"}).returncode == 1


def test_a_library_of_another_kind_is_an_error_too(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|H100|1")
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    for question in ("nvml", "use"):
        done = ask(question, environ)
        assert done.returncode == 1
        assert "libnvidia-ml.so.1" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_driver_that_lacks_a_function_is_an_error_too(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{A}|H100|1")
    (tmp_path / "empty.c").write_text("int nvmlInit_v2(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "libnvidia-ml.so.1", tmp_path / "empty.c"], check=True)
    done = ask("nvml", environ)
    assert done.returncode == 1
    assert "nvmlDeviceGetCount_v2" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_where_nvml_fails_nvidia_smi_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    environ = fake_driver(tmp_path, f"{A}|H100|1")
    monkeypatch.setenv("FAKE_ERROR", "9")
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho 'GPU 0: NVIDIA H100 (UUID: {B})'\n")
    found = find_gpus(environ)
    assert isinstance(found, GpuList)
    assert [gpu.uuid for gpu in found.gpus] == [B]
