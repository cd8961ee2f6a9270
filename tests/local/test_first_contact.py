"""What a first user meets: messages name what is missing, what is shown can be used, and nothing is ambiguous."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.support.pdj import Pdj, wait


def notes(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("note: ")]


def test_jobs_of_one_name_in_two_namespaces_are_shown_with_their_namespaces(pdj: Pdj):
    path = Path(pdj.write(command=["true"], backoffLimit=0))
    jobs = [yaml.safe_load(path.read_text()) for _ in range(2)]
    jobs[0]["metadata"]["namespace"] = "team-a"
    jobs[1]["metadata"]["namespace"] = "team-b"
    jobs[1]["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["false"]
    path.write_text(yaml.safe_dump_all(jobs))
    done = pdj("run", str(path))
    assert done.returncode == 1
    assert "team-a/job completed" in done.stdout
    assert "team-b/job failed after" in done.stdout
    assert "s team-a/job: Completed" in done.stdout
    assert "team-b/job failed: " in done.stderr
    assert not any(line.split(": ")[0].endswith("s job") for line in done.stdout.splitlines())


def test_a_script_whose_interpreter_is_missing_names_that_interpreter(pdj: Pdj):
    script = pdj.folder / "start.sh"
    script.write_text("#!/usr/bin/no-such-shell -e\ntrue\n")
    script.chmod(0o755)
    failed = pdj("run", pdj.write(command=["./start.sh"]))
    expected = "./start.sh: needs /usr/bin/no-such-shell, which does not exist; install it, or correct its command"
    assert expected in failed.stderr
    assert pdj.status("job").restarts == 0, "another attempt cannot help"


def test_a_python_that_is_gone_is_named_before_anything_starts(pdj: Pdj):
    pdj.environment["VIRTUAL_ENV"] = str(pdj.folder / "gone")
    failed = pdj("run", pdj.write(command=["python", "-c", "1"]))
    assert failed.returncode == 1
    assert (
        f"the Python {pdj.folder}/gone/bin/python does not exist; activate another virtual environment" in failed.stderr
    )
    assert not list(pdj.store.folders())
    assert pdj("run", pdj.write(command=["true"])).returncode == 0, "a job without Python does not need one"


def test_a_volume_at_a_file_of_another_volume_is_the_reason_of_the_failure(pdj: Pdj):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a.ini": "x"}}
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}]
    mounts = [{"name": "settings", "mountPath": "/of-a-test"}, {"name": "data", "mountPath": "/of-a-test/a.ini"}]
    path = Path(
        pdj.write(command=["true"], container={"volumeMounts": mounts}, pod={"volumes": volumes}, backoffLimit=0)
    )
    path.write_text(f"{path.read_text()}---\n{yaml.safe_dump(settings)}")
    failed = pdj("run", str(path))
    assert failed.returncode == 1
    assert "mountPath /of-a-test/a.ini is a file on this machine" in failed.stderr
    assert "command or image" not in failed.stderr


def test_a_state_directory_that_is_a_file_is_one_message(pdj: Pdj):
    file = pdj.folder / "notes.txt"
    file.write_text("mine")
    job = pdj.write(command=["true"])
    for arguments, state in ((("list",), file), (("run", job), file / "below"), (("get", "job"), file)):
        pdj.environment["PADDLEJOB_STATE"] = str(state)
        failed = pdj(*arguments)
        assert failed.returncode == 2
        assert failed.stderr.startswith("pdj: PADDLEJOB_STATE is ")
        assert failed.stderr.endswith(f"{file} is not a directory; name a directory, or unset it\n")
    assert file.read_text() == "mine"


def test_a_long_tmpdir_does_not_break_the_sockets_of_a_program_and_a_short_one_reaches_it(pdj: Pdj):
    """Paddle's gloo uses multiprocessing, which binds sockets in TMPDIR."""
    pdj.environment["TMPDIR"] = "/var/tmp"
    done = pdj("run", pdj.write(command=["bash", "-c", "echo $TMPDIR"]))
    assert (pdj.log("job", "worker-0"), "TMPDIR" in done.stderr) == ("/var/tmp\n", False)
    long = pdj.folder / ("x" * 100)
    long.mkdir()
    pdj.environment["TMPDIR"] = str(long)
    program = "from multiprocessing import Manager; print(Manager().list([1]))"
    done = pdj("run", "--python", sys.executable, pdj.write(command=["python", "-c", program], backoffLimit=0))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "[1]\n"
    (note,) = [line for line in notes(done.stderr) if "TMPDIR" in line]
    assert f"TMPDIR has {len(str(long))} characters, which is too long for the sockets of Paddle" in note


def test_a_replica_can_be_killed_by_the_process_id_that_is_shown(pdj: Pdj):
    program = ["bash", "-c", "echo x >> ups; [ $(wc -l < ups) -gt 2 ] || exec sleep 300"]
    pdj("run", "-d", pdj.write(command=program, workers=2))
    pdj.until("job", phase="Running")
    wait(lambda: len(replicas(pdj)) == 2 and all("pid" in one for one in replicas(pdj)), lambda: "two process IDs")
    pid = replicas(pdj)[1]["pid"]
    table = pdj("get", "job").stdout.splitlines()
    header, row = (next(line.split() for line in table if line.startswith(name)) for name in ("REPLICA", "worker-1"))
    assert int(row[header.index("PID")]) == pid
    os.kill(pid, signal.SIGKILL)
    status = pdj.until("job", phase="Completed")
    assert status.restarts == 1
    assert not any("pid" in one for one in replicas(pdj)), "an ended replica has no process"
    assert "PID" not in pdj("get", "job").stdout


def replicas(pdj: Pdj) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(pdj("get", "job", "-o", "json").stdout)["status"]["pods"]
    return found
