"""The store: names in use, what survives a bad submission and damage, events, and jobs that expire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from paddlejob.api.types import Phase, Status
from paddlejob.errors import BadInput, InvalidJob
from paddlejob.local.options import RunOptions
from paddlejob.local.state import leftovers
from paddlejob.local.state.changes import change_spec, mark_for_deletion, remove_finalizer
from paddlejob.local.state.store import MOST_EVENT_BYTES, JobFolder, JobStore, is_inactive, state_directory
from paddlejob.plan import times
from tests.support.builders import NOON, document

EVENT = {"time": times.format(NOON), "reason": "Running", "message": "all pods train"}


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "state")


def begun(store: JobStore, name: str = "mnist", **spec: object) -> JobFolder:
    folder, lock = store.begin(document(name, **spec), RunOptions(), NOON)
    lock.release()
    return folder


def test_a_job_with_a_runner_keeps_its_name(store: JobStore):
    folder, lock = store.begin(document(), RunOptions(), NOON)
    with pytest.raises(
        BadInput, match="already running; follow it with `pdj logs -f mnist`, stop it with `pdj suspend"
    ):
        begun(store)
    lock.release()
    assert not folder.has_runner
    begun(store)


def test_a_new_run_begins_with_no_trace_of_the_old(store: JobStore):
    folder = begun(store)
    folder.write_status(Status(phase="Failed", restarts=3))
    folder.add_event(NOON, "Restarting", "a worker failed")
    again = begun(store)
    job = again.job()
    assert job is not None and job.status == Status()
    assert again.events() == []


def test_a_job_that_cannot_be_stored_leaves_the_previous_one_of_its_name(store: JobStore):
    previous = begun(store).document()
    with pytest.raises(TypeError):
        begun(store, worker_={"template": {"spec": {"containers": {1, 2}}}})
    assert store.folder(("default", "mnist")).document() == previous


def test_a_variable_or_a_path_that_is_not_utf8_is_stored_as_it_is(store: JobStore):
    odd = os.fsdecode(b"/data/\xff")
    folder, lock = store.begin(document(), RunOptions(folder=odd, environment={"DATA": odd}), NOON)
    folder.add_event(NOON, "Failed", f"{odd} is not there")
    assert (folder.options().folder, folder.options().environment) == (odd, {"DATA": odd})
    assert [event["message"] for event in folder.events()] == [f"{odd} is not there"]
    lock.release()


def test_a_job_that_could_only_be_stored_in_part_is_removed_again(store: JobStore, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(JobFolder, "write_document", full)
    with pytest.raises(OSError, match="No space left"):
        begun(store)
    assert not store.folder(("default", "mnist")).path.exists()


def test_a_stored_job_has_what_an_api_server_would_add(store: JobStore):
    made = document()
    made["metadata"]["namespace"] = "team"
    assert store.begin(made, RunOptions(), NOON)[0].key == ("team", "mnist")
    del made["metadata"]["namespace"]
    folder, lock = store.begin(made, RunOptions(environment={"TOKEN": "secret"}), NOON)
    found = folder.document()
    assert found is not None
    about = found["metadata"]
    assert (about["namespace"], about["generation"]) == ("default", 1)
    assert about["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert about["uid"]
    assert (folder.path / "run.json").stat().st_mode & 0o077 == 0, "it holds the user's environment"
    assert store.root.stat().st_mode & 0o077 == 0
    lock.release()


def test_what_is_stored_in_a_directory_that_others_may_read_is_private(tmp_path: Path):
    """PADDLEJOB_STATE may name one that exists; what else is in it stays as it is."""
    (tmp_path / "jobs").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    for path in (tmp_path, tmp_path / "jobs", tmp_path / "notes"):
        path.chmod(0o755)
    folder, lock = JobStore(tmp_path).begin(document(), RunOptions(environment={"TOKEN": "secret"}), NOON)
    lock.release()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_dir()}
    private = ("jobs", "history", "claims", "host", "interpreters", "stage")
    assert modes == {**dict.fromkeys(private, 0o700), "notes": 0o755}
    assert folder.path.is_relative_to(tmp_path / "jobs")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("planted", ["jobs", "interpreters"])
def test_a_directory_that_another_user_has_put_there_is_refused(planted: str):
    """In a state directory that all may write to, its owner could change the program that is run as `python`."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        (Path(name) / planted).mkdir()
        (Path(name) / planted).chmod(0o777)
        # Imported before it becomes someone who may not read our libraries.
        call = "from tests.unit.local.test_store import begin_as; import sys; begin_as(65534, sys.argv[1])"
        ran = subprocess.run([sys.executable, "-c", call, name], capture_output=True, text=True, check=False)
        assert f"{name}/{planted} belongs to another user" in ran.stderr.splitlines()[-1]


def begin_as(user: int, root: str) -> None:
    os.seteuid(user)
    JobStore(Path(root)).begin(document(), RunOptions(), NOON)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "/home/ada/.local/state/paddlejob"),
        ({"XDG_STATE_HOME": "/state"}, "/state/paddlejob"),
        ({"XDG_STATE_HOME": "/state", "PADDLEJOB_STATE": "~/mine"}, "/home/ada/mine"),
        ({"PADDLEJOB_STATE": "relative"}, str(Path.cwd() / "relative")),
        ({"PADDLEJOB_STATE": "/new/one"}, "/new/one"),
    ],
)
def test_the_state_directory_is_that_of_the_environment_else_below_the_home_directory(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
):
    for name in ("XDG_STATE_HOME", "PADDLEJOB_STATE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    assert state_directory() == Path(expected)


@pytest.mark.parametrize("given", ["file", "file/below/it"])
def test_a_state_directory_that_is_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / given))
    with pytest.raises(BadInput, match=f"{tmp_path}/file is not a directory; name a directory, or unset it"):
        state_directory()


@pytest.mark.parametrize("bad", ["..", ".", "", "../../x", "/etc", "a/b", ".hidden", "a\0b"])
def test_no_key_leads_out_of_the_store(store: JobStore, bad: str):
    for get, what in (
        (lambda: store.folder(("default", bad)), "name"),
        (lambda: store.folder((bad, "mnist")), "namespace"),
        (lambda: store.claim("default", bad), "name"),
        (lambda: store.claim(bad, "data"), "namespace"),
        (lambda: store.folder(("default", "mnist")).log(1, "mnist-worker-0", bad or ".."), "name"),
    ):
        with pytest.raises(BadInput, match=f"not a valid {what};"):
            get()


def test_jobs_are_listed_by_name_without_those_that_are_being_removed(store: JobStore):
    for name in ("mnist", "a.dot"):
        begun(store, name)
    for hidden in ("default/.mnist.1234", ".hidden/x"):
        (store.root / "jobs" / hidden).mkdir(parents=True)
        (store.root / "jobs" / hidden / "job.json").write_text("{}")
    assert [one.key for one in store.folders()] == [("default", "a.dot"), ("default", "mnist")]


def test_a_removed_job_leaves_no_file(store: JobStore):
    folder = begun(store)
    assert folder.job() is not None
    for _ in range(2):
        folder.remove()
        assert (folder.document(), folder.job()) == (None, None)
    assert list(folder.path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("phase", "ttl", "now", "kept"),
    [
        (Phase.COMPLETED, None, 1e12, True),
        (Phase.COMPLETED, 10, NOON + 9, True),
        (Phase.COMPLETED, 10, NOON + 10, False),
        (Phase.FAILED, 0, NOON, False),
        (Phase.SUSPENDED, 0, NOON * 2, True),
        (Phase.RUNNING, 0, NOON * 2, True),
    ],
)
def test_a_finished_job_is_removed_when_its_time_is_over_and_it_has_no_runner(
    store: JobStore, phase: Phase, ttl: int | None, now: float, kept: bool
):
    folder, lock = store.begin(document(ttlSecondsAfterFinished=ttl), RunOptions(), NOON)
    folder.write_status(Status(phase=phase, completionTime="2027-01-15T08:00:00Z"))
    store.prune(now)
    assert folder.path.exists()
    lock.release()
    store.prune(now)
    assert folder.path.exists() is kept


@pytest.mark.parametrize(
    ("phase", "suspend", "inactive"),
    [
        (Phase.RUNNING, False, False),
        (Phase.SUSPENDED, False, False),
        (Phase.COMPLETED, False, True),
        (Phase.FAILED, False, True),
        (Phase.RUNNING, True, False),
        (Phase.SUSPENDED, True, True),
    ],
)
def test_a_job_is_inactive_when_it_has_finished_or_is_suspended(
    store: JobStore, phase: Phase, suspend: bool, inactive: bool
):
    folder = begun(store, suspend=suspend)
    folder.write_status(Status(phase=phase))
    job = folder.job()
    assert job is not None and is_inactive(job) is inactive


def test_a_change_is_checked_and_counted_and_one_without_effect_is_not(store: JobStore):
    folder = begun(store)
    change_spec(folder, worker={"replicas": 2})
    change_spec(folder, suspend=True)
    change_spec(folder, worker={"replicas": 5})
    change_spec(folder, suspend=False)
    for replicas, problem in ((6, "elastic"), (0, "less than 1")):
        with pytest.raises(InvalidJob, match=problem):
            change_spec(folder, worker={"replicas": replicas})
    found = folder.document()
    assert found is not None
    assert (found["metadata"]["generation"], found["spec"]["worker"]["replicas"]) == (4, 5)
    assert "template" in found["spec"]["worker"]


def test_deletion_is_marked_once(store: JobStore):
    folder = begun(store)
    for moment in (NOON, NOON + 5):
        mark_for_deletion(folder, moment)
    job = folder.job()
    assert job is not None and job.metadata.deletionTimestamp == "2027-01-15T08:00:00Z"


def test_a_job_that_does_not_exist_cannot_be_changed(store: JobStore):
    folder = begun(store)
    (folder.path / "job.json").unlink()
    with pytest.raises(BadInput, match="there is no job mnist in namespace default"):
        change_spec(folder, suspend=True)
    remove_finalizer(folder, "any")
    assert folder.document() is None


def test_a_job_is_read_again_only_after_a_change(store: JobStore):
    folder = begun(store)
    first = folder.document()
    assert folder.document() is first is not None
    folder.write_document({**first, "spec": {**first["spec"], "suspend": True}})
    changed = folder.job()
    assert changed is not None and changed.spec.suspend


@pytest.mark.parametrize(
    "line", ["", "3", "[]", "{}", '{"time": 1}', '{"time": 1, "reason": 2}', '"text"', '{"time": "a", "rea']
)
def test_a_line_that_is_no_event_is_left_out(store: JobStore, line: str):
    folder = begun(store)
    assert folder.events() == []
    path = folder.path / "events.jsonl"
    path.write_text(f"{line}\n{json.dumps({**EVENT, 'warning': True, 'more': 1})}\n{line}")
    folder.add_event(NOON, "Running", "all pods train")
    folder.add_event(NOON, "Running", "all pods train", warning=True)
    assert folder.events() == [{**EVENT, "warning": True}, EVENT, {**EVENT, "warning": True}]
    assert path.read_text().count("\n") == 4 + bool(line), "no line is empty"


def test_a_job_that_restarts_for_weeks_keeps_its_newest_events(store: JobStore):
    folder = begun(store)
    for number in range(4000):
        folder.add_event(NOON, "Restarting", f"{number:0100}")
    reasons = [int(event["message"]) for event in folder.events()]
    assert 1000 < len(reasons) < 4000
    assert reasons == list(range(4000 - len(reasons), 4000))
    assert (folder.path / "events.jsonl").stat().st_size <= MOST_EVENT_BYTES


def test_pods_are_known_by_their_directories_too(store: JobStore):
    folder = begun(store)
    assert folder.pod_uids() == set()
    (folder.path / "pods" / "uid-7").mkdir(parents=True)
    assert folder.pod_uids() == {"uid-7"}


def test_the_pods_of_jobs_that_no_engine_runs_are_removed(store: JobStore):
    held = {name: store.begin(document(name), RunOptions(), NOON) for name in ("killed", "running", "clean")}
    for name in ("killed", "running"):
        (held[name][0].path / "pods" / "uid").mkdir(parents=True)
    for name in ("killed", "clean"):
        held[name][1].release()
    leftovers.remove_leftovers(store)
    assert not (held["killed"][0].path / "pods").exists()
    assert (held["running"][0].path / "pods" / "uid").exists()
    assert not held["killed"][0].has_runner, "the lock is given back"
    held["running"][1].release()


def test_a_job_whose_leftovers_are_being_removed_has_no_runner_and_gets_one_as_soon_as_they_are_gone(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
):
    """`pdj resume a; pdj resume b` after both were killed: the engine of a removes what is left of b."""
    folder, seen, acquired = begun(store), [], []
    (folder.path / "pods").mkdir()
    resume = threading.Thread(target=lambda: acquired.append(folder.runner_lock().acquire()))

    def slow(path: Path, **_: object) -> None:
        resume.start()
        time.sleep(0.1)
        seen.append((folder.has_runner, resume.is_alive()))
        path.rmdir()

    monkeypatch.setattr(leftovers.shutil, "rmtree", slow)
    leftovers.remove_leftovers(store)
    resume.join()
    assert (seen, acquired) == ([(False, True)], [True])
