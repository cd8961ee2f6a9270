"""One damaged file never makes other jobs unusable, and a damaged job can be listed, deleted and run again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paddlejob.api.types import Phase
from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.locks import ProcessLock
from paddlejob.logs.selection import LogSelection
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from tests.support.builders import NOON, document

DAMAGE = {
    "status.json": [b"", b"{", b"\0" * 4096, b"[1]", b'{"phase": "Dancing"}', b"\xff\xfe"],
    "job.json": [b"", b"{}", b"null", b"[]", b'{"metadata": 3}', b'{"metadata": {"name": "mnist"}}', b"\0\0"],
    "run.json": [b"", b"[]", b'{"folder": 1, "surprise": 2}', b'{"volumes": []}', b'{"objects": [3]}'],
    "pods.json": [b"", b"garbage", b"{}", b'[{"name": "x"}, 3]', b"\0"],
    "events.jsonl": [
        b'{"reason": "torn',
        b'{"a": 1}}\n{"time"',
        b'{"unknown": 1}\n',
        b"3\n}\n",
        b"\xff}\n",
        b"\0\0}\n",
    ],
}
CASES = [
    pytest.param(name, content, id=f"{name}-{number}") for name in DAMAGE for number, content in enumerate(DAMAGE[name])
]
CRITICAL = ("status.json", "job.json", "run.json")
CACHED = ("status.json", "job.json")
"""Of these, an engine knows what it read and wrote last."""


def begin(store: JobStore, name: str = "mnist") -> tuple[JobFolder, ProcessLock]:
    folder, lock = store.begin(document(name), RunOptions(), NOON)
    log = folder.log(1, f"{name}-worker-0")
    log.parent.mkdir(parents=True)
    log.write_text("step 1\n")
    (folder.path / "logs" / "attempt-x").mkdir()
    return folder, lock


@pytest.mark.parametrize(("name", "content"), CASES)
def test_other_jobs_and_every_verb_survive(name: str, content: bytes, tmp_path: Path):
    store = JobStore(tmp_path)
    target = SyncTarget(LocalTarget(store))
    for job in ("mnist", "other"):
        begin(store, job)[1].release()
    folder = store.folder(("default", "mnist"))
    (folder.path / name).write_bytes(content)
    views = {view.job.name: view for view in target.jobs(None)}
    assert views.keys() == {"mnist", "other"}
    assert views["other"].phase == "Interrupted"
    if name in CRITICAL:
        assert views["mnist"].phase == "Damaged"
        assert f"{name} is damaged" in views["mnist"].note
        assert "pdj delete mnist" in views["mnist"].note
        with pytest.raises(NotPossible, match="pdj delete mnist"):
            target.change("default", "mnist", suspend=True)
    several, batches = target.logs("default", "mnist", LogSelection(index=0))
    assert (several, [line.text for batch in batches for line in batch]) == (False, ["step 1"])
    again, lock = begin(store)
    assert again.job() is not None
    lock.release()
    (again.path / name).write_bytes(content)
    assert target.delete("default", "mnist", wait=True) == "mnist deleted"
    assert not again.path.exists()


def test_a_job_that_runs_with_damaged_options_says_that_it_cannot_be_resumed(tmp_path: Path):
    store = JobStore(tmp_path)
    folder, lock = begin(store)
    (folder.path / "run.json").write_bytes(b"{")
    (view,) = SyncTarget(LocalTarget(store)).jobs(None)
    assert (view.phase, view.damaged) == ("Created", True)
    assert "run.json is damaged, so the job cannot be resumed once it stops; let it end" in view.note
    with pytest.raises(NotPossible, match="cannot be resumed once it stops"):
        SyncTarget(LocalTarget(store)).change("default", "mnist", suspend=True)
    lock.release()


def test_a_job_that_has_ended_does_not_need_its_options(tmp_path: Path):
    store = JobStore(tmp_path)
    folder, lock = begin(store)
    lock.release()
    job = folder.job()
    assert job is not None
    folder.write_status(job.status.model_copy(update={"phase": Phase.COMPLETED}))
    (folder.path / "run.json").write_bytes(b"{")
    (view,) = SyncTarget(LocalTarget(store)).jobs(None)
    assert (view.phase, view.damaged) == ("Completed", False)


def test_a_job_with_a_runner_is_deleted_blind(tmp_path: Path):
    """Without a document the engine removes what the job owned."""
    store = JobStore(tmp_path)
    folder, lock = begin(store)
    (folder.path / "job.json").write_bytes(b"")
    assert SyncTarget(LocalTarget(store)).delete("default", "mnist", wait=False) == "mnist is being deleted"
    assert folder.document() is None
    lock.release()


def test_the_engine_of_a_job_continues_with_what_it_read_and_wrote_last(tmp_path: Path):
    folder, _ = begin(JobStore(tmp_path))
    before = folder.job()
    assert before is not None
    status = before.status.model_copy(update={"attempt": 3})
    folder.write_status(status)
    for name in CACHED:
        (folder.path / name).write_bytes(b"")
    assert folder.job() == before.model_copy(update={"status": status})
    assert json.loads((folder.path / "status.json").read_text())["attempt"] == 3, "it is written again"
    assert folder.job() == before.model_copy(update={"status": status})


def test_a_message_says_what_to_do(tmp_path: Path):
    begin(JobStore(tmp_path))[1].release()
    (tmp_path / "jobs/default/mnist/status.json").write_bytes(b"")
    command = [sys.executable, "-m", "paddlejob", "list"]
    done = subprocess.run(command, env={"PADDLEJOB_STATE": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert "mnist" in done.stdout
    assert "Damaged" in done.stdout
    assert "remove the job and its logs with `pdj delete mnist`" in done.stderr
