"""How busy GPUs are, read from the library of a driver."""

from __future__ import annotations

from pathlib import Path

import pytest

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
