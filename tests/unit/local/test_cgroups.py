"""Inside a container the machine offers what the container may use, not what the host has."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.local.machine import resources
from paddlejob.local.machine.cgroups import cpu_limit, memory_limit


def own(tmp_path: Path, text: str) -> Path:
    (tmp_path / "own").write_text(text)
    return tmp_path / "own"


def test_version_2_takes_the_smallest_limit_of_the_group_and_its_parents(tmp_path: Path):
    root = tmp_path / "cgroup"
    for name, text in {
        "cpu.max": "max 100000",
        "pod/cpu.max": "150000 100000",
        "pod/memory.max": "4294967296",
        "pod/one/cpu.max": "400000 100000",
        "pod/one/memory.max": "max",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    group = own(tmp_path, "0::/pod/one\n")
    assert cpu_limit(root, group) == 1.5
    assert memory_limit(root, group) == 4 << 30


def test_version_1_has_a_directory_for_each_controller(tmp_path: Path):
    root = tmp_path / "cgroup"
    for name, text in {
        "cpu,cpuacct/docker/x/cpu.cfs_quota_us": "200000",
        "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000",
        "memory/docker/x/memory.limit_in_bytes": "1073741824",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    group = own(tmp_path, "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n")
    assert cpu_limit(root, group) == 2.0
    assert memory_limit(root, group) == 1 << 30


def test_a_group_that_is_not_visible_inside_the_container_is_read_at_the_root(tmp_path: Path):
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cpu.max").write_text("50000 100000\n")
    assert cpu_limit(root, own(tmp_path, "0::/docker/unseen\n")) == 0.5


def test_without_limits_there_are_none(tmp_path: Path):
    assert cpu_limit(tmp_path, tmp_path / "absent") is None
    assert memory_limit(tmp_path, tmp_path / "absent") is None


def test_the_machine_offers_no_more_than_its_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resources, "cpu_limit", lambda: 0.5)
    monkeypatch.setattr(resources, "memory_limit", lambda: 1 << 20)
    machine = resources.this_machine()
    assert (machine.capacity("cpu"), machine.capacity("memory")) == (0.5, 1 << 20)
