"""A state directory that two machines share, as in a home directory on NFS: each leaves the jobs of the other alone."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.other_machine import other_machine
from tests.support.pdj import PATIENCE, START, Pdj, wait
from tests.support.tiny_jobs import FOREVER

HERE = platform.node()
ALL_CPUS = {"resources": {"requests": {"cpu": len(os.sched_getaffinity(0))}}}
pytestmark = pytest.mark.parametrize("locks", ["own", pytest.param("same", marks=pytest.mark.full)])
"""Whether a machine knows the locks of the other."""


def there(pdj: Pdj, locks: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pdj` on the other machine."""
    command = [*other_machine("gpu2", locks), *START, *arguments]
    return subprocess.run(
        command, env=pdj.environment, cwd=pdj.folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def engine(pdj: Pdj) -> int:
    """The process that runs the job here."""
    log = str(pdj.folder_of("job").path / "engine.log")
    return next(pid for pid in pdj.processes() if Path(f"/proc/{pid}/fd/1").readlink() == Path(log))


def test_a_job_of_another_machine_is_shown_as_running_there_and_never_started_twice(pdj: Pdj, locks: str):
    file = pdj.write(command=FOREVER)
    pdj("run", "-d", file)
    pdj.until("job", phase="Running")
    alive = pdj.processes()
    row = there(pdj, locks, "list").stdout.splitlines()[1]
    assert f"Running on {HERE}" in row
    page = there(pdj, locks, "get", "job").stdout
    assert "PID" not in page, "they would be those of other processes"
    resumed, again = there(pdj, locks, "resume", "job"), there(pdj, locks, "run", file)
    assert (resumed.returncode, again.returncode) == (1, 2)
    assert f"job job runs on {HERE}; if {HERE} no longer runs it, remove {pdj.state}" in resumed.stderr
    assert f"job job is already running on {HERE}" in again.stderr
    assert pdj.processes() == alive
    assert f"Next: if {HERE} no longer runs it" in there(pdj, locks, "why", "job").stdout
    assert "Running on" not in pdj("list").stdout, "here it is a job as any other"


def test_what_a_job_holds_on_another_machine_is_free_on_this_one(pdj: Pdj, locks: str):
    cache = {"volumeMounts": [{"name": "cache", "mountPath": "/mnt"}]}
    volumes = {"volumes": [{"name": "cache", "emptyDir": {}}]}
    pdj("run", "-d", pdj.write(command=FOREVER, container=ALL_CPUS | cache, pod=volumes))
    pdj.until("job", phase="Running")
    (uid,) = (one.uid for one in pdj.folder_of("job").pods())
    done = there(pdj, locks, "run", pdj.write("second", command=["true"], container=ALL_CPUS))
    assert done.returncode == 0, done.stderr
    assert (pdj.folder_of("job").path / "pods" / uid).exists(), "and the other job keeps its volumes"
    assert pdj.status("job").phase == "Running"


def test_a_job_is_suspended_from_another_machine_and_continues_there(pdj: Pdj, locks: str):
    pdj("run", "-d", pdj.write(command=FOREVER))
    pdj.until("job", phase="Running")
    assert "suspended" in there(pdj, locks, "suspend", "job").stdout
    pdj.until("job", phase="Suspended")
    wait(lambda: not pdj.folder_of("job").has_runner, lambda: "the engine to give the job up")
    resumed = there(pdj, locks, "resume", "job")
    assert resumed.returncode == 0, resumed.stderr
    pdj.until("job", phase="Running")
    assert "Running on gpu2" in pdj("list").stdout
    deleted = pdj("delete", "job")
    assert deleted.returncode == 0, deleted.stderr
    pdj.until_nothing_lives()


def test_a_job_whose_machine_is_gone_continues_elsewhere_once_the_user_says_so(pdj: Pdj, locks: str):
    pdj("run", "-d", pdj.write(command=FOREVER))
    pdj.until("job", phase="Running")
    os.kill(engine(pdj), signal.SIGKILL)
    pdj.until_nothing_lives()
    assert "Interrupted" in pdj("list").stdout
    assert f"Running on {HERE}" in there(pdj, locks, "list").stdout, "as far as that machine can know"
    refused = there(pdj, locks, "resume", "job")
    assert refused.returncode == 1
    Path(refused.stderr.partition("remove ")[2].partition(",")[0]).unlink()
    assert there(pdj, locks, "resume", "job").returncode == 0
    wait(lambda: bool(pdj.folder_of("job").other_host), lambda: "the other machine")
    assert pdj("delete", "job").returncode == 0
    pdj.until_nothing_lives()
