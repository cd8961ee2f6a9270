"""GPUs whose driver is in doubt, and GPUs that are shared only where they have to be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from paddlejob.local.machine import gpus
from paddlejob.local.machine.gpus import ask_cuda, find_gpus, run_with_timeout
from tests.support.fake_gpus import FakeSmi, fake_driver, new_uuid
from tests.unit.local.test_scheduler import MACHINE, ONE_GPU, Cluster, cluster

__all__ = ["cluster"]


def test_a_job_that_may_overcommit_shares_no_gpu_while_enough_are_free(cluster: Cluster):
    objects, job = cluster.job("modest", workers=2, **ONE_GPU)
    cluster.scheduler.schedule(objects, job, overcommit=True)
    assert [pod.gpus for pod in objects.pods.values()] == [[gpu] for gpu in MACHINE.gpus]
    assert objects.folder.events() == []


def test_a_pod_that_is_replaced_gets_a_new_address_and_the_old_one_is_free(cluster: Cluster):
    objects, job = cluster.job("one", workers=1, cpu=1)
    cluster.scheduler.schedule(objects, job)
    (pod,) = objects.pods.values()
    address = pod.seen.address
    cluster.scheduler.unbind(pod)
    assert address not in cluster.scheduler._addresses._used
    cluster.scheduler.unbind(cluster.job("two", workers=1)[0].pods["two-worker-0"])


def test_other_namespaces_and_users_are_named_among_the_holders(cluster: Cluster):
    made = cluster.job("first", workers=1, **ONE_GPU)
    cluster.scheduler.schedule(*made)
    objects, job = cluster.job("second", workers=2, **ONE_GPU)
    cluster.scheduler.schedule(objects, job)
    message = next(iter(objects.pods.values())).seen.message
    assert message.endswith("other jobs hold first (1); the job starts when they have released enough")


def test_the_error_output_of_a_driver_is_preferred_to_its_output(tmp_path: Path):
    machine = FakeSmi(tmp_path, [])
    machine.runs("echo some output; echo the driver is not loaded >&2; exit 9")
    assert "the NVIDIA driver failed (the driver is not loaded)" in find_gpus(machine.environment).note


def test_a_driver_that_lists_nothing_says_so(tmp_path: Path):
    machine = FakeSmi(tmp_path, [])
    machine.runs("exit 0")
    assert "the NVIDIA driver failed (it lists no GPU)" in find_gpus(machine.environment).note


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


def test_cuda_without_any_device_sees_none_and_another_error_is_raised(tmp_path: Path):
    environ = {**os.environ, **fake_driver(tmp_path, "")}
    environ.pop("CUDA_VISIBLE_DEVICES", None)
    assert ask_cuda(environ) == []
    (tmp_path / "libcuda.so.1").write_text("not a library")
    with pytest.raises(OSError, match="libcuda"):
        ask_cuda(environ)


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
    gpus._listing.cache_clear()
