"""What replicas use: CPU, memory and GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from paddlejob.local.machine.gpu_use import GpuUse
from paddlejob.local.state.store import JobStore
from paddlejob.targets.cluster.pod_meter import pod_usage
from paddlejob.targets.local.gpu_meter import GpuMeter
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.local.process_meter import ProcessMeter, cpu_and_memory
from paddlejob.targets.sync import run_outside_loop
from paddlejob.targets.views import JobView, PodView, Usage
from tests.support.stored_jobs import stored


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobStore:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    return JobStore()


def test_gpus_are_asked_once_in_a_while(monkeypatch: pytest.MonkeyPatch):
    asked: list[float] = []
    now = [1000.0]
    monkeypatch.setattr("paddlejob.targets.local.gpu_meter.time.monotonic", lambda: now[0])

    def use() -> dict[str, GpuUse]:
        asked.append(now[0])
        return {"a": GpuUse("a", "H100", 10.0, 5, 9), "b": GpuUse("b", "H100", 30.0, 7, 9)}

    monkeypatch.setattr("paddlejob.targets.local.gpu_meter.read_gpu_use", use)
    meter = GpuMeter()
    assert meter.use_of(["a", "b", "c"]) == (20.0, 12)
    now[0] += 2.9
    assert meter.use_of(["a"]) == (10.0, 5)
    now[0] += 0.2
    meter.read()
    assert asked == [1000.0, 1003.1]


def test_a_replica_has_the_use_of_its_process_and_of_the_gpus_that_it_holds(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
):
    folder = stored(store)
    pods = [
        PodView("mnist-worker-0", "worker", 0, "Running", pid=os.getpid()), PodView("w1", "worker", 1, "Pending"),
    ]  # fmt: skip
    view = JobView(folder.job(), {}, "Running", pods=pods)  # type: ignore[arg-type]
    monkeypatch.setattr(
        "paddlejob.targets.local.machine_meter.gpus_of_pods", lambda _: {"mnist-worker-0": ["a"], "w1": ["a"]}
    )
    use = GpuUse("a", "H100", 40.0, 9, 9)
    monkeypatch.setattr("paddlejob.targets.local.gpu_meter.read_gpu_use", lambda: {"a": use})
    used = run_outside_loop(LocalTarget(store).usage(view))
    assert used.keys() == {"mnist-worker-0"}
    assert (used["mnist-worker-0"].gpu, used["mnist-worker-0"].gpu_memory) == (40.0, 9)
    assert used["mnist-worker-0"].cpu is None and (used["mnist-worker-0"].memory or 0) > 1 << 20


def test_cpu_is_the_difference_of_readings_that_are_far_enough_apart(monkeypatch: pytest.MonkeyPatch):
    now, seconds = [1000.0], [5.0]
    monkeypatch.setattr("paddlejob.targets.local.process_meter.time.monotonic", lambda: now[0])
    monkeypatch.setattr("paddlejob.targets.local.process_meter.descendants", lambda pid: iter([pid + 1]))
    monkeypatch.setattr(
        "paddlejob.targets.local.process_meter.cpu_and_memory", lambda pid: (seconds[0], 10) if seconds[0] else None
    )
    meter = ProcessMeter()
    assert meter.read(7) == Usage(None, 20)
    now[0], seconds[0] = 1000.4, 6.0
    assert meter.read(7) == Usage(None, 20), "too soon"
    now[0] = 1000.5
    assert meter.read(7) == Usage(4.0, 20)
    now[0] = 1000.6
    assert meter.read(7) == Usage(4.0, 20), "the last one, until there is a better one"
    seconds[0] = 0.0
    assert meter.read(7) is None
    seconds[0] = 1.0
    assert meter.read(7) == Usage(None, 20), "a new process of the same number"
    now[0], seconds[0] = 1002.6, 0.5
    assert meter.read(7) == Usage(0.0, 20), "children that ended took their time with them"


def test_the_use_of_a_pod_is_the_sum_of_its_containers():
    found = {"containers": [{"usage": {"cpu": "1500m", "memory": "1Gi"}}, {"usage": {"cpu": "1"}}, {}]}
    assert pod_usage(found) == Usage(2.5, 1 << 30)
    assert pod_usage({}) == Usage(0.0, 0)


def test_a_program_whose_name_the_kernel_cuts_inside_a_character_is_measured(tmp_path: Path):
    program = tmp_path / "a训练训练训练"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        assert cpu_and_memory(process.pid)
        process.kill()
