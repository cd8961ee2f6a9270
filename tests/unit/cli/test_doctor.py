"""`pdj doctor`: the checks report the facts, and every problem comes with its remedy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from paddlejob.cli.doctor import machine as machine_checks
from paddlejob.cli.doctor.check import Verdict
from tests.support.called_pdj import pdj


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paddlejob", "doctor", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240, check=False
    )


def test_json_holds_every_check_and_the_exit_status_follows_from_them(tmp_path: Path) -> None:
    done = doctor("-o", "json", PADDLEJOB_STATE=str(tmp_path))
    found = {one["what"]: one for one in json.loads(done.stdout)}
    assert {"python", "paddle", "parameter server", "GPUs", "memory", "disk", "ports", "mounts"} <= set(found)
    assert done.returncode == (1 if any(one["verdict"] == "change" for one in found.values()) else 0)
    assert all(one["advice"] for one in found.values() if one["verdict"] == "change")
    assert str(tmp_path) in found["disk"]["found"]


def test_a_python_without_paddle_is_reported_with_how_to_install_it(tmp_path: Path) -> None:
    bare = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    facts = machine_checks.probe_python(str(bare))
    check = machine_checks.check_paddle(facts)
    assert (check.verdict, check.found) == (Verdict.CHANGE, "not installed")
    assert "pip install 'paddlejob[paddle]'" in check.advice
    assert machine_checks.check_python(str(bare), facts).verdict is Verdict.GOOD


def test_a_paddle_that_cannot_be_imported_is_reported_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    check = machine_checks.check_paddle(machine_checks.probe_python(str(script)))
    assert check.verdict is Verdict.CHANGE
    assert "libgomp.so.1: cannot open shared object file" in check.found


def test_a_paddle_without_parameter_servers_is_a_note_that_names_a_version_with_them(tmp_path: Path) -> None:
    check = machine_checks.check_parameter_server({"paddle": "3.3.1", "ps": False})
    assert check.verdict is Verdict.NOTE
    assert "2.6.2" in check.advice


def test_a_program_that_does_not_exist_is_not_a_python() -> None:
    facts = machine_checks.probe_python("/no/such/python")
    assert machine_checks.check_python("/no/such/python", facts).verdict is Verdict.CHANGE


def test_a_port_in_use_on_every_address_is_reported() -> None:
    with socket.socket() as taken:
        try:
            taken.bind(("0.0.0.0", 2390))
        except OSError:
            pytest.skip("port 2390 is already in use")
        check = machine_checks.check_addresses()
    assert check.verdict is Verdict.CHANGE
    assert "Address already in use" in check.found


def test_a_state_directory_that_is_not_writable_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "new"))
    assert machine_checks.check_disk().verdict is Verdict.GOOD
    monkeypatch.setenv("PADDLEJOB_STATE", "/proc/state")
    assert machine_checks.check_disk().verdict is Verdict.CHANGE


def test_without_a_kubeconfig_the_cluster_needs_changes(tmp_path: Path) -> None:
    none = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": ""}
    done = pdj("doctor", "--cluster", **none)
    assert done.returncode == 1
    assert "no such file" in done.stdout
    assert "Changes needed:" in done.stdout


def test_a_cluster_that_does_not_answer_is_reported_in_the_table(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "current-context": "c",
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    done = pdj("doctor", "--cluster", KUBECONFIG=str(config))
    assert done.returncode == 1
    assert f"is the API server http://127.0.0.1:{port} up and reachable?" in done.stdout
