"""Jobs in the store: what survives a bad submission, damage, and the passing of time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from paddlejob import contract
from paddlejob.api.types import Phase, Status
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.env import MARK, base_environment
from paddlejob.local.state import store as store_module
from paddlejob.local.state.changes import change_spec, remove_finalizer
from paddlejob.local.state.store import JobFolder, Store, is_inactive, state_directory
from tests.support.builders import NOON, document


def begun(store: Store, name: str = "mnist", **spec: object) -> JobFolder:
    folder, lock = store.begin(document(name, **spec), RunOptions(), NOON)
    lock.release()
    return folder


def test_a_job_that_cannot_be_stored_leaves_the_former_one_of_its_name(tmp_path: Path):
    store = Store(tmp_path)
    former = begun(store).document()
    with pytest.raises(TypeError):
        store.begin(document("mnist", worker_={"template": {"spec": {"containers": {1, 2}}}}), RunOptions(), NOON)
    assert store.folder(("default", "mnist")).document() == former


def test_a_job_that_could_only_be_stored_in_part_is_removed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    store = Store(tmp_path)
    monkeypatch.setattr(store_module.JobFolder, "write_document", full)
    with pytest.raises(OSError, match="No space left"):
        begun(store)
    assert not store.folder(("default", "mnist")).path.exists()


def test_a_stored_job_has_what_an_api_server_would_add(tmp_path: Path):
    store = Store(tmp_path)
    made = document()
    del made["metadata"]["namespace"]
    folder, lock = store.begin(made, RunOptions(environment={"TOKEN": "secret"}), NOON)
    found = folder.document()
    assert found is not None
    about = found["metadata"]
    assert (about["namespace"], about["generation"]) == ("default", 1)
    assert about["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert about["uid"]
    assert (folder.path / "run.json").stat().st_mode & 0o077 == 0, "it holds the user's environment"
    assert store.root.stat().st_mode & 0o077 in (0, 0o055)
    with pytest.raises(BadInput, match="already running; follow it with `pdj logs -f mnist`"):
        store.begin(made, RunOptions(), NOON)
    lock.release()


def test_the_state_directory_is_that_of_the_environment_else_below_the_home_directory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("PADDLEJOB_STATE", raising=False)
    assert state_directory() == Path("/home/ada/.local/state/paddlejob")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert state_directory() == Path("/state/paddlejob")
    monkeypatch.setenv("PADDLEJOB_STATE", "~/mine")
    assert state_directory() == Path("/home/ada/mine")
    monkeypatch.setenv("PADDLEJOB_STATE", "relative")
    assert state_directory() == Path.cwd() / "relative"


@pytest.mark.parametrize(("ttl", "now", "kept"), [(None, 1e12, True), (10, NOON + 9, True), (10, NOON + 10, False)])
def test_a_finished_job_is_removed_when_its_time_is_over(tmp_path: Path, ttl: int | None, now: float, kept: bool):
    store = Store(tmp_path)
    folder = begun(store, ttlSecondsAfterFinished=ttl)
    folder.write_status(Status(phase=Phase.COMPLETED, completionTime="2027-01-15T08:00:00Z"))
    store.prune(now)
    assert folder.path.exists() is kept


def test_a_job_that_runs_or_is_not_finished_is_never_removed(tmp_path: Path):
    store = Store(tmp_path)
    active = begun(store, "active", ttlSecondsAfterFinished=0)
    held, lock = store.begin(document("held", ttlSecondsAfterFinished=0), RunOptions(), NOON)
    held.write_status(Status(phase=Phase.FAILED, completionTime="2027-01-15T08:00:00Z"))
    store.prune(NOON + 1e6)
    assert active.path.exists()
    assert held.path.exists()
    lock.release()


def test_a_job_is_inactive_when_it_has_finished_or_is_suspended(tmp_path: Path):
    folder = begun(Store(tmp_path))

    def inactive(phase: Phase) -> bool:
        folder.write_status(Status(phase=phase))
        job = folder.job()
        assert job is not None
        return is_inactive(job)

    assert [inactive(phase) for phase in (Phase.RUNNING, Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED)] == [
        *(False, False, True, True)
    ]
    change_spec(folder, suspend=True)
    assert [inactive(phase) for phase in (Phase.RUNNING, Phase.SUSPENDED)] == [False, True]


def test_a_job_that_does_not_exist_cannot_be_changed(tmp_path: Path):
    folder = begun(Store(tmp_path))
    (folder.path / "job.json").unlink()
    with pytest.raises(BadInput, match="there is no job mnist in namespace default"):
        change_spec(folder, suspend=True)
    remove_finalizer(folder, "any")
    assert folder.document() is None


def test_events_survive_a_line_that_was_torn(tmp_path: Path):
    folder = begun(Store(tmp_path))
    assert folder.events() == []
    event = {"time": "t", "reason": "Running", "message": "all pods train"}
    folder.add_event(event)
    with (folder.path / "events.jsonl").open("a") as file:
        file.write('{"time": "t", "rea')
    folder.add_event({**event, "warning": True, "extra": 1})
    (folder.path / "events.jsonl").open("a").write("[]\n{}\n")
    assert folder.events() == [event, {**event, "warning": True}]
    lines = (folder.path / "events.jsonl").read_text().splitlines()
    assert len(lines) == 5, "no line is empty"


def test_pods_are_known_by_their_directories_too(tmp_path: Path):
    folder = begun(Store(tmp_path))
    assert folder.pod_uids() == set()
    (folder.path / "pods" / "uid-7").mkdir(parents=True)
    assert folder.pod_uids() == {"uid-7"}


def test_a_removed_job_leaves_no_file(tmp_path: Path):
    store = Store(tmp_path)
    folder = begun(store)
    folder.remove()
    folder.remove()
    assert list((tmp_path / "jobs" / "default").iterdir()) == []
    assert list(store.folders()) == []


def test_folders_being_removed_are_not_listed(tmp_path: Path):
    store = Store(tmp_path)
    folder = begun(store)
    hidden = folder.path.with_name(".mnist.1234")
    hidden.mkdir()
    (hidden / "job.json").write_text("{}")
    (tmp_path / "jobs" / ".hidden" / "x").mkdir(parents=True)
    (tmp_path / "jobs" / ".hidden" / "x" / "job.json").write_text("{}")
    assert [one.key for one in store.folders()] == [("default", "mnist")]


@pytest.mark.parametrize("content", ["[1]", '{"unknown": 1}', '"text"', "{"])
def test_damaged_options_are_named(tmp_path: Path, content: str):
    folder = begun(Store(tmp_path))
    (folder.path / "run.json").write_text(content)
    with pytest.raises(Exception, match=r"run\.json is damaged"):
        folder.options()


def test_a_program_has_the_users_environment_without_that_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given = {
        "HOME": "/me",
        "PADDLE_TRAINER_ID": "7",
        "PADDLE_ANYTHING": "x",
        MARK: "uid",
        contract.ENV_UNBUFFERED: "0",
    }
    found = base_environment(RunOptions(environment=given), Store(tmp_path))
    assert found["HOME"] == "/me"
    assert not {"PADDLE_TRAINER_ID", "PADDLE_ANYTHING", MARK} & found.keys()
    assert found["PYTHONUNBUFFERED"] == "1"
    assert found["PATH"].endswith(os.defpath)
    monkeypatch.setenv("OF_THIS_PROCESS", "1")
    assert "OF_THIS_PROCESS" not in found
    assert base_environment(RunOptions(), Store(tmp_path))["OF_THIS_PROCESS"] == "1"


def test_an_interpreter_comes_before_everything_else_in_the_path(tmp_path: Path):
    options = RunOptions(python="/opt/python/bin/python3", environment={"PATH": "/usr/bin"})
    first, second, last = base_environment(options, Store(tmp_path))["PATH"].split(os.pathsep)
    assert sorted(path.name for path in Path(first).iterdir()) == ["python", "python3"]
    assert (second, last) == ("/opt/python/bin", "/usr/bin")
    assert all(os.access(path, os.X_OK) for path in Path(first).iterdir())


def test_a_status_that_is_damaged_is_written_again_by_the_process_that_knows_it(tmp_path: Path):
    folder = begun(Store(tmp_path))
    folder.write_status(Status(phase=Phase.RUNNING))
    (folder.path / "status.json").write_text("{")
    job = folder.job()
    assert job is not None
    assert job.status.phase is Phase.RUNNING
    assert json.loads((folder.path / "status.json").read_text())["phase"] == "Running"
