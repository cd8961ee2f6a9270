"""Files of the store at their edges: on the disk before they are seen, damaged, or of another kind."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.client.targets.target import LogChoice
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import argv, find_image, read_mapping
from paddlejob.local.state import logs
from paddlejob.local.state.files import PADDED_SIZE, read_if_intact, read_json, replace_file, write_json
from paddlejob.local.state.logs import follow_logs
from paddlejob.local.state.store import MOST_EVENT_BYTES, JobFolder, Store, state_directory
from tests.support.builders import NOON, document


def begun(root: Path, name: str = "mnist") -> JobFolder:
    folder, lock = Store(root).begin(document(name), RunOptions(), NOON)
    lock.release()
    return folder


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, flushed = tmp_path / "status.json", []
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        flushed.append((Path(f"/proc/self/fd/{descriptor}").read_bytes(), path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(path, b"new", mode=0o600)
    assert flushed == [(b"new", b"old")]
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    replace_file(path, b"newer")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_padded_file_is_overwritten_and_flushed_when_the_disk_or_the_quota_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    path, flushed = tmp_path / "status.json", []
    write_json(path, {"é": 1}, padded=True)
    assert path.stat().st_size == PADDED_SIZE + 1

    def full(self: Path, content: bytes) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(read_json(path)))
    write_json(path, {"é": 2}, padded=True)
    assert flushed == [{"é": 2}], "it is flushed as a whole"
    assert path.stat().st_size == PADDED_SIZE + 1
    with pytest.raises(OSError, match=os.strerror(number)):
        write_json(path, {"é": 3})
    assert [one.name for one in tmp_path.iterdir()] == ["status.json"]


def test_a_damaged_file_is_read_as_nothing_where_that_is_asked_for(tmp_path: Path):
    assert read_if_intact(tmp_path / "absent") is None
    (tmp_path / "torn").write_text('{"a": ')
    assert read_if_intact(tmp_path / "torn") is None
    (tmp_path / "whole").write_text('{"a": 1}')
    assert read_if_intact(tmp_path / "whole") == {"a": 1}


def test_a_state_directory_that_is_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    for given in ("file", "file/below/it"):
        monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / given))
        with pytest.raises(BadInput, match=f"{tmp_path}/file is not a directory; name a directory, or unset it"):
            state_directory()
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "new" / "one"))
    assert state_directory() == tmp_path / "new" / "one"


def test_a_job_that_was_removed_has_neither_document_nor_status(tmp_path: Path):
    folder = begun(tmp_path)
    assert folder.job() is not None
    folder.remove()
    assert (folder.document(), folder.job()) == (None, None)
    folder.remove()


def test_a_job_is_read_again_only_after_a_change(tmp_path: Path):
    folder = begun(tmp_path)
    first = folder.document()
    assert folder.document() is first
    assert first is not None
    folder.write_document({**first, "spec": {**first["spec"], "suspend": True}})
    changed = folder.job()
    assert changed is not None
    assert changed.spec.suspend


@pytest.mark.parametrize("stored", ["{}", "[1, null, {}]", '"text"', "null"])
def test_records_of_pods_that_are_damaged_are_left_out(tmp_path: Path, stored: str):
    folder = begun(tmp_path)
    (folder.path / "pods.json").write_text(stored)
    assert folder.pods() == []


@pytest.mark.parametrize(
    "line", ["", "3", "[]", "{}", '{"time": 1}', '{"time": 1, "reason": 2}', '"text"', '{"time": "a", "reason"']
)
def test_a_line_that_is_no_event_is_left_out(tmp_path: Path, line: str):
    folder = begun(tmp_path)
    whole = {"time": "t", "reason": "R", "message": "m"}
    (folder.path / "events.jsonl").write_text(f"{line}\n{json.dumps({**whole, 'warning': True, 'more': 1})}\n")
    folder.add_event({**whole, "warning": False})
    assert folder.events() == [{**whole, "warning": True}, whole]


def test_a_job_that_restarts_for_weeks_keeps_its_newest_events(tmp_path: Path):
    folder = begun(tmp_path)
    for number in range(4000):
        folder.add_event({"time": "t", "reason": "Restarting", "message": f"{number:0100}"})
    reasons = [int(event["message"]) for event in folder.events()]
    assert 1000 < len(reasons) < 4000
    assert reasons == list(range(4000 - len(reasons), 4000))
    assert (folder.path / "events.jsonl").stat().st_size <= MOST_EVENT_BYTES


def test_a_suspended_job_with_a_ttl_is_not_removed(tmp_path: Path):
    folder = begun(tmp_path)
    job = folder.job()
    assert isinstance(job, PaddleJob)
    folder.write_status(job.status.model_copy(update={"phase": Phase.SUSPENDED}))
    Store(tmp_path).prune(NOON * 2)
    assert folder.path.exists()


def write_log(folder: JobFolder, attempt: int, pod: str, text: str) -> Path:
    log = folder.log(attempt, pod)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    return log


def test_a_file_beside_the_logs_is_no_log(tmp_path: Path):
    folder = begun(tmp_path)
    write_log(folder, 1, "mnist-worker-0", "output\n")
    write_log(folder, 1, "mnist-notes", "mine\n")
    assert b"".join(follow_logs(folder, LogChoice())) == b"output\n"


def test_a_line_that_is_longer_than_memory_allows_is_shown_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "PIECE", 10)
    folder = begun(tmp_path)
    write_log(folder, 1, "mnist-worker-0", "a" * 25 + "\nend\n")
    write_log(folder, 1, "mnist-worker-1", "b\n")
    lines = b"".join(follow_logs(folder, LogChoice())).decode().splitlines()
    own = [line.removeprefix("[worker-0] ") for line in lines if line.startswith("[worker-0]")]
    assert "".join(own) == "a" * 25 + "end"
    assert len(own) > 2
    assert "[worker-1] b" in lines


def test_a_job_without_an_image_runs_the_code_beside_its_file(tmp_path: Path):
    options = RunOptions(folder=str(tmp_path))
    assert find_image("", options).note == f"The job names no image; running the code in {tmp_path}."
    with pytest.raises(NotPossible, match="no image with a default command; add `command:` to the container"):
        argv({"name": "paddle"}, options)
    with pytest.raises(BadInput, match=f"image mine: {tmp_path}/absent is not a directory"):
        find_image("mine", RunOptions(images={"mine": {"directory": str(tmp_path / "absent")}}))
    assert read_mapping(tmp_path / "absent.yaml") == {}
    assert find_image("docker.io/paddlejob/mnist:v1", options).bundled
