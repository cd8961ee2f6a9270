"""What this machine has, what jobs hold of it, and what is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.machine.gpu_use import GpuUse
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.store import JobStore
from paddlejob.targets.local import machine_meter as machine_module
from paddlejob.targets.local.gpu_meter import GpuMeter
from paddlejob.targets.local.machine_meter import MachineMeter


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path)


def test_gpus_show_how_busy_they_are_and_who_holds_them(monkeypatch: pytest.MonkeyPatch):
    use = GpuUse("u1", "H100", 30.0, 5, 80)
    monkeypatch.setattr("paddlejob.targets.local.gpu_meter.read_gpu_use", lambda: {"u1": use})
    holders = {"mnist": {"gpus": {"mnist-worker-0": ["u1", "u9"]}}, "other": {"gpus": {}}}
    one, two = GpuMeter().table((Gpu("u1", "0"), Gpu("u2", "1")), holders)
    assert (one.index, one.name, one.holder, one.percent, one.memory, one.capacity) == (
        "0", "H100", "mnist · mnist-worker-0", 30.0, 5, 80
    )  # fmt: skip
    assert (two.index, two.name, two.holder, two.percent) == ("1", "u2", "", None)
    assert GpuMeter().table((), {}) == []


def test_the_machine_shows_what_jobs_hold_and_what_is_in_use(store: JobStore, monkeypatch: pytest.MonkeyPatch):
    made = Machine("here", cpus=8.0, memory=1 << 30, gpus=(Gpu("u1", "0"),), gpu_note="a note")
    monkeypatch.setattr(machine_module, "this_machine", lambda: made)
    holders = {"a": {"asked": {"cpu": 2.0, "nvidia.com/gpu": 1}, "gpus": {}}, "b": {"asked": {"cpu": 1.5}, "gpus": {}}}
    monkeypatch.setattr(machine_module, "held_by_jobs", lambda _: holders)
    now, busy = [100.0], [10.0]
    monkeypatch.setattr(machine_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machine_module, "busy_seconds", lambda: busy[0])
    meter = MachineMeter(store)
    found = meter.read()
    cpu, memory, gpu = found.resources
    assert (found.name, found.title, found.note) == ("local", "here", "a note")
    assert (cpu.name, cpu.capacity, cpu.held, cpu.used, cpu.holders) == ("cpu", 8.0, 3.5, 0.0, {"a": 2.0, "b": 1.5})
    assert (memory.capacity, memory.holders) == (float(1 << 30), {})
    assert memory.used and memory.used > 1 << 20
    assert (gpu.name, gpu.capacity, gpu.held, gpu.used) == ("nvidia.com/gpu", 1.0, 1.0, None)
    now[0], busy[0] = 100.4, 99.0
    assert meter.read().resources[0].used == 0.0, "too soon"
    now[0], busy[0] = 102.0, 13.0
    assert meter.read().resources[0].used == 1.5
    monkeypatch.setattr(machine_module, "this_machine", lambda: Machine("bare", cpus=1.0, memory=1))
    assert [one.name for one in MachineMeter(store).read().resources] == ["cpu", "memory"]

    def broken() -> Machine:
        raise NotPossible("CUDA_VISIBLE_DEVICES: wrong")

    monkeypatch.setattr(machine_module, "this_machine", broken)
    assert MachineMeter(store).read().note == "CUDA_VISIBLE_DEVICES: wrong"


def testbusy_seconds_count_no_idle_ones(monkeypatch: pytest.MonkeyPatch):
    text = "cpu  100 20 30 4000 500 6 7 8 99 99\ncpu0 1 2 3\n"
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    monkeypatch.setattr(machine_module.os, "sysconf", lambda _: 100)
    assert machine_module.busy_seconds() == (100 + 20 + 30 + 6 + 7 + 8) / 100
    monkeypatch.setattr(Path, "read_text", lambda self: "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n")
    assert machine_module.memory_in_use() == 60 * 1024
