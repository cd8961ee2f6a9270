"""How busy GPUs are, read from the library of a driver; what does not answer tells nothing."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from paddlejob.local.machine import gpu_use
from paddlejob.local.machine.gpu_driver import Memory, PciInfo, Utilization
from paddlejob.local.machine.gpu_use import GpuUse, read_gpu_use
from tests.support.fake_gpus import FakeSmi, fake_driver, new_uuid


def test_each_gpu_tells_its_load_and_its_memory_except_one_that_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, second, third = new_uuid(), new_uuid(), new_uuid()
    for name, value in fake_driver(tmp_path, f"{first}|H100|37 {second}|MIG|5 {third}|LOST|6").items():
        monkeypatch.setenv(name, value)
    assert read_gpu_use() == {first: GpuUse(first, "H100", 37, 37 << 30, 80 << 30)}


def test_where_no_library_answers_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in FakeSmi(tmp_path, [new_uuid()]).environment.items():
        monkeypatch.setenv(name, value)
    assert read_gpu_use() == {}


def test_a_driver_that_hangs_tells_nothing_about_the_use_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in (fake_driver(tmp_path, f"{new_uuid()}|H100|37") | {"FAKE_HANG": "1"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gpu_use, "TIMEOUT", 0.5)
    assert read_gpu_use() == {}


def test_an_answer_that_is_not_json_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "driver.py"
    program.write_text("print('warning: the driver is old')\n")
    monkeypatch.setattr(gpu_use, "DRIVER", program)
    assert read_gpu_use() == {}


def test_without_a_python_to_ask_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_use.sys, "executable", str(tmp_path / "absent"))
    assert read_gpu_use() == {}


def layout(structure: type[ctypes.Structure]) -> dict[str, int]:
    """The offset of each field."""
    return {str(field[0]): getattr(structure, str(field[0])).offset for field in structure._fields_}


def test_structures_have_the_layout_of_the_header_of_nvml():
    """One that is too small would be overwritten, and nothing would tell."""
    assert ctypes.sizeof(PciInfo) == 68
    offsets = (0, 16, 20, 24, 28, 32, 36)
    names = ("bus_id_legacy", "domain", "bus", "device", "device_id", "subsystem_id", "bus_id")
    assert layout(PciInfo) == dict(zip(names, offsets, strict=True))
    assert (ctypes.sizeof(Utilization), layout(Utilization)) == (8, {"gpu": 0, "memory": 4})
    assert (ctypes.sizeof(Memory), layout(Memory)) == (24, {"total": 0, "free": 8, "used": 16})
