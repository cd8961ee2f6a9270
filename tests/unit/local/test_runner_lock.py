"""Which machine runs a job, where several may share its files."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state.leftovers import remove_leftovers
from paddlejob.local.state.runner_lock import Host, this_host
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support.builders import document
from tests.support.other_machine import other_machine
from tests.support.pdj import START

ELSEWHERE = Host("gpu2", "machine-2", "boot-2")


@pytest.mark.parametrize(
    ("other", "known"),
    [
        (Host("gpu1", "machine-1", "boot-1"), True),
        (Host("gpu1", "machine-1", "boot-0"), True),
        (Host("3f2a9c1d", "container", "boot-1"), True),
        (Host("gpu2", "machine-2", "boot-2"), False),
        (Host("gpu1", "machine-2", "boot-2"), False),
    ],
    ids=["itself", "before-a-reboot", "a-container-on-it", "another", "another-of-the-same-name"],
)
def test_a_machine_knows_the_locks_of_its_own_kernel_and_of_itself_before_a_reboot(other: Host, known: bool):
    assert Host("gpu1", "machine-1", "boot-1").knows_locks_of(other) is known


def begun(tmp_path: Path, host: Host | None = None) -> JobFolder:
    """A job that this machine has begun, or another."""
    folder, lock = JobStore(tmp_path).begin(document("mnist"), RunOptions(), time.time())
    lock.give_up()
    if host:
        (folder.path / "runner.json").write_text(json.dumps(asdict(host)))
    return folder


def test_a_job_of_another_machine_has_a_runner_that_this_one_does_not_judge(tmp_path: Path):
    folder = begun(tmp_path, ELSEWHERE)
    assert folder.other_host == "gpu2"
    assert folder.has_runner and not folder.runs_here
    assert not folder.runner_lock().acquire() and not folder.runner_lock().acquire(shared=True)
    with pytest.raises(BadInput, match=r"already running on gpu2.*remove .*runner.json, then try again"):
        begun(tmp_path)
    assert folder.job(), "and it is as it was"


def test_a_runner_that_was_killed_before_a_reboot_runs_no_more(tmp_path: Path):
    here = this_host()
    folder = begun(tmp_path, Host(here.name, here.machine, "the boot before"))
    assert not folder.has_runner and not folder.other_host


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": 1}', '"gpu2"'])
def test_where_the_record_is_damaged_the_lock_decides(tmp_path: Path, content: str):
    folder = begun(tmp_path)
    (folder.path / "runner.json").write_text(content)
    assert not folder.has_runner
    lock = folder.runner_lock()
    assert lock.acquire() and folder.runs_here
    assert json.loads((folder.path / "runner.json").read_text()) == asdict(this_host())
    lock.give_up()
    assert not folder.has_runner


def test_the_runner_of_a_deleted_job_does_not_give_up_the_next_one_of_its_name(tmp_path: Path):
    store = JobStore(tmp_path)
    folder, old = store.begin(document("mnist"), RunOptions(), time.time())
    folder.remove()
    _, new = store.begin(document("mnist"), RunOptions(), time.time())
    old.give_up()
    assert (folder.path / "runner.json").exists() and folder.runs_here
    new.give_up()
    assert not (folder.path / "runner.json").exists()


def test_what_another_machine_uses_is_no_leftover(tmp_path: Path):
    folder = begun(tmp_path, ELSEWHERE)
    (folder.path / "pods" / "uid").mkdir(parents=True)
    remove_leftovers(JobStore(tmp_path))
    assert (folder.path / "pods" / "uid").exists()


def test_a_file_system_without_locks_is_named_with_a_remedy(tmp_path: Path):
    done = subprocess.run(
        [*other_machine("gpu2", "none"), *START, "run", "--", "true"],
        env={**os.environ, "PADDLEJOB_STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        "begin.lock: the file system has no locks (flock: Function not implemented); set PADDLEJOB_STATE" in done.stderr
    )
