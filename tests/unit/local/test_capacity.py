"""How much this machine has."""

from __future__ import annotations

import os
import platform

import pytest

from paddlejob.cli.doctor.machine import check_machine
from paddlejob.errors import NotPossible
from paddlejob.local.machine import resources
from paddlejob.local.machine.resources import Machine, this_machine
from tests.support.fake_gpus import fake_gpus


@pytest.mark.parametrize(("cpus", "memory"), [(None, None), (1e6, 1 << 62)])
def test_without_a_limit_of_its_group_that_is_lower_the_whole_machine_is_on_offer(
    monkeypatch: pytest.MonkeyPatch, cpus: float | None, memory: int | None
):
    monkeypatch.setattr(resources, "cpu_limit", lambda: cpus)
    monkeypatch.setattr(resources, "memory_limit", lambda: memory)
    machine = this_machine()
    assert machine.capacity("cpu") == len(os.sched_getaffinity(0))
    assert machine.capacity("memory") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.name == platform.node()


def test_only_accelerators_that_jobs_can_use_count():
    machine = Machine("m", 4.0, 1 << 30, fake_gpus(1))
    amounts = [machine.capacity(name) for name in ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "storage")]
    assert amounts == [4.0, float(1 << 30), 1, 0, None]


@pytest.mark.parametrize(("kernel", "label"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_the_labels_of_this_machine_are_those_of_a_node(monkeypatch: pytest.MonkeyPatch, kernel: str, label: str):
    monkeypatch.setattr(platform, "machine", lambda: kernel)
    assert Machine("pc", 1, 1).labels == {
        "kubernetes.io/hostname": "pc",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": label,
    }


def test_other_systems_than_linux_are_rejected_before_anything_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(NotPossible, match="needs Linux, and this is Darwin"):
        this_machine()
    assert [check.what for check in check_machine()] == ["system"]
