"""The GPUs of a driver as jobs see them: in which order, which of them are divided, and which cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlejob.local.machine import gpus
from paddlejob.local.machine.gpus import Gpu, GpuList, ask_cuda, environment, find_gpus
from tests.support.fake_gpus import FakeSmi, fake_driver, new_uuid

A, B, C = (new_uuid() for _ in range(3))
UNREADABLE = "a GPU cannot be read and is not used; check it with `nvidia-smi`"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine with two models, of which CUDA numbers the last one first."""
    return install(tmp_path, monkeypatch, f"{A}|T4|1 {B}|T4|2 {C}|H100|3")


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, listed: str) -> dict[str, str]:
    made = fake_driver(folder, listed)
    monkeypatch.setenv("FAKE_GPUS", listed)
    return {**{name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}, **made}


def visible(environ: dict[str, str], value: str, **more: str) -> list[str]:
    return [gpu.uuid for gpu in find_gpus({**environ, "CUDA_VISIBLE_DEVICES": value, **more}).gpus]


def test_with_several_models_indexes_are_those_of_cuda(driver: dict[str, str]):
    assert visible(driver, "0") == [C]
    assert visible(driver, "2, 0") == [A, C]
    assert visible(driver, f"{B},0") == [B, C]
    assert visible(driver, "0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == [A]
    assert visible(driver, "0", CUDA_DEVICE_ORDER="FASTEST_FIRST") == [C]


def test_programs_get_indexes_in_pci_order_whatever_the_order_of_the_list(driver: dict[str, str]):
    found = find_gpus({**driver, "CUDA_VISIBLE_DEVICES": "0,2"}).gpus
    assert found == (Gpu(C, "2"), Gpu(A, "0"))
    assert environment(found) == {"CUDA_VISIBLE_DEVICES": "2,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_the_choice_of_the_user_does_not_hide_gpus_when_cuda_is_asked_for_its_order(driver: dict[str, str]):
    assert ask_cuda(driver) == [C, B, A]
    assert ask_cuda({**driver, "CUDA_VISIBLE_DEVICES": "1"}) == [B]
    assert ask_cuda({**driver, "CUDA_VISIBLE_DEVICES": "none"}) == []
    assert visible(driver, "1,2") == [B, A]


@pytest.mark.parametrize(
    "program",
    ["raise SystemExit('no CUDA here')", "print('warning')", "print('[]')", "print('[\"GPU-of-elsewhere\"]')"],
)
def test_where_cuda_does_not_tell_its_order_it_is_that_of_pci(
    driver: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
):
    assert visible(driver, "0") == [C]
    (tmp_path / "driver.py").write_text(program)
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "driver.py")
    assert visible(driver, "0") == [A]


def test_where_cuda_hangs_the_order_is_that_of_pci(driver: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    assert find_gpus(driver).gpus == (Gpu(A, "0"), Gpu(B, "1"), Gpu(C, "2"))
    monkeypatch.setattr(gpus, "TIMEOUT", 0.5)
    assert visible({**driver, "FAKE_HANG": "1"}, "0") == [A]


def test_a_cuda_that_fails_says_why(driver: dict[str, str], tmp_path: Path):
    (tmp_path / "libcuda.so.1").write_text("not a library")
    with pytest.raises(OSError, match="libcuda"):
        ask_cuda(driver)


def test_gpus_of_one_model_are_in_pci_order_without_asking_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    environ = install(tmp_path, monkeypatch, f"{A}|H100|9 {B}|H100|3")
    assert visible(environ, "0") == [B]
    assert visible(environ, "1") == [A]


def test_a_divided_gpu_offers_its_parts_by_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    environ = install(tmp_path, monkeypatch, f"{A}|MIG|1 {B}|H100|2")
    first, second = f"MIG-0{A[4:]}", f"MIG-1{A[4:]}"
    assert find_gpus(environ) == GpuList((Gpu(first, first), Gpu(second, second), Gpu(B, B)))
    assert visible(environ, f"MIG-{A}/8/0") == [second]
    assert visible(environ, A) == [first, second]


def test_a_gpu_that_cannot_be_read_is_left_out_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    environ = install(tmp_path, monkeypatch, f"{A}|LOST|1 {B}|H100|2")
    assert find_gpus(environ) == GpuList((Gpu(B, B),), UNREADABLE)


def test_a_driver_without_gpus_says_so(tmp_path: Path):
    smi = FakeSmi(tmp_path, [])
    smi.runs("exit 0")
    assert find_gpus(smi.environment) == GpuList(
        note="the NVIDIA driver failed (it lists no GPU); check it with `nvidia-smi`"
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo first >&2; echo second >&2; echo out; exit 9", "first"),
        ("echo only output; exit 9", "only output"),
        ("echo spurious; exit 0", "spurious"),
    ],
)
def test_the_first_line_of_a_failing_driver_is_shown(tmp_path: Path, script: str, message: str):
    smi = FakeSmi(tmp_path, [])
    smi.runs(script)
    assert f"the NVIDIA driver failed ({message}); check it" in find_gpus(smi.environment).note
