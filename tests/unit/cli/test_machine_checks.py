"""The checks of this machine, at their boundaries and where a part of the system is missing."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest

from paddlejob import contract
from paddlejob.cli.doctor import machine
from paddlejob.cli.doctor.check import Verdict
from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions

LAST_PORT = contract.PORT + contract.PORTS_PER_POD - 1


def python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_that_prints_nothing_is_reported_by_the_last_line_of_its_errors(tmp_path: Path):
    facts = machine.probe_python(python(tmp_path, "echo first >&2; echo 'cannot execute' >&2; exit 126"))
    assert facts == {"error": "cannot execute"}
    assert machine.probe_python(python(tmp_path, "exit 3")) == {"error": "exit status 3"}


def test_what_a_python_prints_before_the_facts_is_ignored(tmp_path: Path):
    assert machine.probe_python(python(tmp_path, """echo noise; echo '{"python": "3.12.1"}'""")) == {"python": "3.12.1"}


def test_the_python_is_the_chosen_one_or_that_of_a_run(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(machine, "probe_python", lambda name: asked.append(name) or {"python": "3"})
    machine.check_machine()
    machine.check_machine(sys.executable)
    assert asked == [RunOptions().interpreter, sys.executable]


def test_linux_is_good(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    assert machine.check_system().verdict is Verdict.GOOD


def test_free_memory_is_what_the_kernel_calls_available(monkeypatch: pytest.MonkeyPatch):
    text = "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable:    3145728 kB\nBuffers: 5 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda _: text)
    assert machine.check_memory().found.startswith("3.0 GiB of ")
    monkeypatch.setattr(Path, "read_text", lambda _: "MemFree: 1 kB\n")
    free, _, total = machine.check_memory().found.partition(" free")[0].partition(" of ")
    assert free == total, "an old kernel does not tell"


def test_without_shared_memory_data_loaders_do_not_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "is_dir", lambda path: str(path) != "/dev/shm")
    check = machine.check_shared_memory()
    assert (check.verdict, check.found) == (Verdict.NOTE, "/dev/shm does not exist")


@pytest.mark.parametrize(("free", "verdict"), [(64 << 20, Verdict.GOOD), ((64 << 20) - 1, Verdict.NOTE)])
def test_64_mib_of_shared_memory_are_enough(free: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    assert machine.check_shared_memory().verdict is verdict
    assert machine.check_shared_memory().found.startswith("64 MiB" if verdict is Verdict.NOTE else "0.1 GiB")


def test_a_directory_that_may_not_be_written_is_reported_whatever_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "a"))
    monkeypatch.setattr(machine.os, "access", lambda path, mode: False)
    check = machine.check_disk()
    assert (check.verdict, check.found) == (Verdict.CHANGE, f"{tmp_path} is not writable")


class Addresses:
    """The loopback addresses, all of which jobs hold."""

    closed = 0

    def take(self) -> str:
        raise NotPossible("all addresses are in use")

    def close(self) -> None:
        type(self).closed += 1


def test_jobs_that_hold_all_addresses_are_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.local.machine.addresses.Addresses", Addresses)
    check = machine.check_addresses()
    assert (check.found, check.advice) == ("all addresses are in use", "stop some jobs (`pdj list`)")
    assert Addresses.closed == 1


@pytest.mark.parametrize("port", [contract.PORT, LAST_PORT])
def test_every_port_of_a_pod_must_be_free(port: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Addresses, "take", lambda _: "127.77.1.2")
    monkeypatch.setattr("paddlejob.local.machine.addresses.Addresses", Addresses)
    with socket.socket() as beyond, socket.socket() as taken:
        beyond.bind(("127.77.1.2", LAST_PORT + 1))
        assert machine.check_addresses().found == (
            f"{contract.PORT} to {LAST_PORT} are free on the loopback addresses of pods"
        )
        taken.bind(("127.77.1.2", port))
        check = machine.check_addresses()
    assert (check.verdict, check.found) == (
        Verdict.CHANGE,
        f"port {port} at 127.77.1.2: Address already in use",
    )


@pytest.mark.parametrize(("isolated", "verdict"), [(True, Verdict.GOOD), (False, Verdict.NOTE)])
def test_without_namespaces_volumes_are_rejected(isolated: bool, verdict: Verdict, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.local.sandbox.supervisor.probe", lambda: (isolated, "not permitted"))
    check = machine.check_namespaces()
    assert check.verdict is verdict
    assert check.found.endswith("are available" if isolated else "are not available: not permitted")
