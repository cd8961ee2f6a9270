"""Which GPUs there are, by UUID, and which of them the user's CUDA_VISIBLE_DEVICES leaves to jobs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddlejob.cli.doctor.check import Verdict
from paddlejob.cli.doctor.machine import check_gpus, probe_python
from paddlejob.local.machine import gpus
from paddlejob.local.machine.gpus import Gpu, GpuList, environment, find_gpus, run_with_timeout
from paddlejob.local.machine.resources import this_machine
from tests.support.fake_gpus import FakeSmi, fake_driver, new_uuid

ROOT = Path(__file__).parents[3]
A = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
B = "GPU-1932f937-d72c-4106-c12f-20bd9faed9f6"
C = "GPU-89aa0000-d72c-4106-c12f-20bd9faed9f6"


@pytest.fixture
def machine(tmp_path: Path) -> FakeSmi:
    return FakeSmi(tmp_path, [A, B, C])


def found(machine: FakeSmi, **environ: str) -> GpuList:
    return find_gpus({**machine.environment, **environ})


def uuids(listed: GpuList) -> list[str]:
    return [gpu.uuid for gpu in listed.gpus]


def test_without_a_list_all_gpus_are_on_offer_and_programs_get_their_indexes_in_pci_order(machine: FakeSmi):
    assert found(machine) == GpuList((Gpu(A, "0"), Gpu(B, "1"), Gpu(C, "2")))
    assert environment(found(machine).gpus[:2]) == {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert environment([])["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2", [C]),
        ("0, 2", [A, C]),
        (" 2 ,0", [C, A]),
        (B, [B]),
        (f"{C},{A}", [C, A]),
        ("GPU-193", [B]),
        (f"0, {B}", [A, B]),
        ("0,0", [A]),
    ],
)
def test_indexes_uuids_and_their_beginnings_name_the_gpus_on_offer(machine: FakeSmi, value: str, expected: list[str]):
    assert uuids(found(machine, CUDA_VISIBLE_DEVICES=value)) == expected
    assert found(machine, CUDA_VISIBLE_DEVICES=value).note == ""


@pytest.mark.parametrize(
    ("value", "expected", "named"),
    [
        ("0,2,-1,1", [A, C], "-1"),
        ("1,3,0", [B], "3"),
        ("GPU-89,1", [], "GPU-89"),
        (f"{A},GPU-77,{B}", [A], "GPU-77"),
        ("0,,1", [A], "an empty entry"),
        ("NoDevFiles", [], "NoDevFiles"),
        ("MIG-1", [], "MIG-1"),
    ],
)
def test_the_list_ends_at_its_first_invalid_entry_and_a_note_names_it(
    machine: FakeSmi, value: str, expected: list[str], named: str
):
    listed = found(machine, CUDA_VISIBLE_DEVICES=value)
    assert uuids(listed) == expected
    assert f'"{value}": {named} does not name one GPU of this machine' in listed.note


@pytest.mark.parametrize("value", ["", " ", "-1"])
def test_an_empty_list_hides_all_gpus(machine: FakeSmi, value: str):
    listed = found(machine, CUDA_VISIBLE_DEVICES=value)
    assert listed.gpus == ()
    assert "hides all GPUs; unset it" in listed.note


def test_a_divided_gpu_offers_its_mig_devices_and_all_programs_get_uuids(machine: FakeSmi):
    machine.lists(
        [
            f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {A})",
            "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)",
            "  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)",
            f"GPU 1: NVIDIA A100-SXM4-40GB (UUID: {B})",
        ]
    )
    names = ["MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb", B]
    assert found(machine).gpus == tuple(Gpu(name, name) for name in names)
    assert uuids(found(machine, CUDA_VISIBLE_DEVICES=f"MIG-cba,{names[0]}")) == [names[1], names[0]]
    assert uuids(found(machine, CUDA_VISIBLE_DEVICES="0")) == names[:2]


def test_a_driver_that_hangs_is_reported_within_the_limit_by_run_and_doctor(
    machine: FakeSmi, monkeypatch: pytest.MonkeyPatch
):
    machine.runs("sleep 1000")
    monkeypatch.setattr(gpus, "TIMEOUT", 0.5)
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    began = time.monotonic()
    assert "did not answer within 0.5 s" in this_machine().gpu_note
    assert time.monotonic() - began < 60
    (check,) = check_gpus({})
    assert check.verdict is Verdict.CHANGE
    assert "did not answer" in check.found


def test_nvml_that_hangs_is_reported_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpus, "TIMEOUT", 0.5)
    monkeypatch.setenv("FAKE_HANG", "1")
    assert "did not answer within 0.5 s" in find_gpus(fake_driver(tmp_path, f"{A}|H100|1")).note


def test_the_check_for_real_gpus_agrees_with_a_driver(tmp_path: Path):
    environ = fake_driver(tmp_path, f"{new_uuid()}|H100|7 {new_uuid()}|H100|3")
    command = [sys.executable, str(ROOT / "tools" / "gpu_check.py")]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISMATCH" not in done.stdout


def test_a_list_that_ends_with_an_error_lacks_a_gpu(tmp_path: Path):
    uuid = new_uuid()
    machine = FakeSmi(tmp_path, [uuid])
    machine.lists([f"GPU 0: H100 (UUID: {uuid})", "Unable to determine the device handle for gpu 0000:02"], code=15)
    found = find_gpus(machine.environment)
    assert [(gpu.uuid, gpu.visible_as) for gpu in found.gpus] == [(uuid, uuid)]
    assert "a GPU cannot be read and is not used" in found.note


def test_gpus_are_listed_by_their_number_and_one_may_be_missing(tmp_path: Path):
    first, third = new_uuid(), new_uuid()
    machine = FakeSmi(tmp_path, [])
    machine.lists([f"GPU 2: H100 (UUID: {third})", f"GPU 0: H100 (UUID: {first})"])
    found = find_gpus(machine.environment)
    assert [gpu.uuid for gpu in found.gpus] == [first, third]
    assert "a GPU cannot be read" in found.note


def test_the_output_of_a_program_within_its_limit(tmp_path: Path):
    done = run_with_timeout(["sh", "-c", "echo out; echo err >&2; exit 3"], 30)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    with pytest.raises(subprocess.TimeoutExpired):
        run_with_timeout(["sleep", "1000"], 0.1)


def test_a_driver_is_asked_once(tmp_path: Path):
    machine = FakeSmi(tmp_path, [new_uuid()])
    before = find_gpus(machine.environment)
    machine.lists([])
    assert find_gpus(machine.environment) == before


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path):
    script = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(subprocess.TimeoutExpired):
        run_with_timeout(["sh", "-c", script], 0.5)
    child = (tmp_path / "pid").read_text().strip()
    deadline = time.monotonic() + 30
    while Path("/proc", child).exists() and "Z" not in Path("/proc", child, "stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_driver_that_fails_is_reported_with_its_message(machine: FakeSmi):
    machine.lists(["Failed to initialize NVML: Driver/library version mismatch"], code=18)
    assert "Driver/library version mismatch" in found(machine).note
    assert "check it with `nvidia-smi`" in found(machine).note


def test_doctor_counts_the_gpus_and_notes_why_some_are_not_used(machine: FakeSmi, monkeypatch: pytest.MonkeyPatch):
    for name, value in {**machine.environment, "CUDA_VISIBLE_DEVICES": "0,9"}.items():
        monkeypatch.setenv(name, value)
    (check,) = check_gpus({"paddle": "3.3.1", "cuda": True})
    assert check.verdict is Verdict.NOTE
    assert check.found.startswith("1; ")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert check_gpus({"paddle": "3.3.1", "cuda": True})[0].found == "3"


def test_doctor_does_not_wait_for_a_python_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    script.chmod(0o755)
    monkeypatch.setattr("paddlejob.cli.doctor.machine.PROBE_SECONDS", 0.5)
    assert "timed out" in probe_python(str(script))["error"]


def test_a_machine_without_a_driver_has_no_gpus_and_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpus, "DEVICE_FILES", ())
    assert find_gpus({"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": new_uuid()}) == GpuList()
