"""How much this machine has, and how quantities are read and shown."""

from __future__ import annotations

import os
import platform

import pytest

from paddlejob.local.machine import resources
from paddlejob.local.machine.resources import Machine, format_quantity, of_pod, parse_quantity


def test_without_limits_of_a_group_the_whole_machine_is_on_offer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resources, "cpu_limit", lambda: None)
    monkeypatch.setattr(resources, "memory_limit", lambda: None)
    machine = resources.this_machine()
    assert machine.capacity("cpu") == len(os.sched_getaffinity(0))
    assert machine.capacity("memory") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.name == platform.node()


def test_a_limit_above_what_the_machine_has_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resources, "cpu_limit", lambda: 1e6)
    monkeypatch.setattr(resources, "memory_limit", lambda: 1 << 62)
    machine = resources.this_machine()
    assert machine.capacity("cpu") == len(os.sched_getaffinity(0))
    assert machine.capacity("memory") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("quantity", "number"), [("2e3", 2000.0), ("2E-1", 0.2), (".5", 0.5), ("-1", -1.0), (1.5, 1.5)]
)
def test_exponents_fractions_and_signs_are_read(quantity: str | float, number: float):
    assert parse_quantity(quantity) == number


def test_the_containers_of_a_pod_count_together_and_a_request_goes_before_a_limit():
    first = {"resources": {"limits": {"cpu": 4, "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
    second = {"resources": {"requests": {"cpu": 1}, "limits": None}}
    assert of_pod({"containers": [first, second, {}, {"resources": None}]}) == {"cpu": 1.5, "memory": 2**30}


@pytest.mark.parametrize(("kernel", "label"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_the_labels_of_this_machine_are_those_of_a_node(monkeypatch: pytest.MonkeyPatch, kernel: str, label: str):
    monkeypatch.setattr(platform, "machine", lambda: kernel)
    assert Machine("pc", 1, 1).labels == {
        "kubernetes.io/hostname": "pc",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": label,
    }


@pytest.mark.parametrize(
    ("resource", "quantity", "shown"),
    [("memory", 1.5 * 2**30, "1.5 GiB"), ("memory", 2**27, "0.1 GiB"), ("cpu", 2.0, "2"), ("cpu", 0.25, "0.25")],
)
def test_memory_is_shown_in_gib_and_all_else_as_a_plain_number(resource: str, quantity: float, shown: str):
    assert format_quantity(resource, quantity) == shown
