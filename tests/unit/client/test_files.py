"""Files that a user names, and files that a command writes: as a whole or not at all."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from paddlejob.client.files import check_new_file, is_paddle_job, jobs_in, objects_in, write_file
from paddlejob.errors import BadFile, BadInput, NotPossible


def test_a_file_that_cannot_be_written_leaves_what_was_there_and_nothing_else(tmp_path: Path):
    kept = tmp_path / "job.yaml"
    kept.write_text("before")
    with pytest.raises(NotPossible, match="cannot be written: No such file or directory"):
        write_file(tmp_path / "new" / "job.yaml", "text")
    with pytest.raises(UnicodeEncodeError):
        write_file(kept, "text \ud800")
    assert kept.read_text() == "before"
    write_file(kept, "after")
    assert kept.read_text() == "after"
    assert [one.name for one in tmp_path.iterdir()] == ["job.yaml"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "text")
    reader.join()
    assert (read, pipe.is_fifo()) == (["text"], True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem(name: str) -> str:
    with pytest.raises(BadFile) as raised:
        objects_in(name)
    return raised.value.problem


def test_a_directory_is_answered_with_the_job_file_or_the_program_in_it(home: Path):
    (home / "d").mkdir()
    assert problem("d") == "is a directory without a job file; create one with `pdj init -o d/job.yaml`"
    (home / "d" / "other.py").touch()
    assert "train it with `pdj run d/other.py`; --save writes a job file" in problem("d")
    (home / "d" / "main.py").touch()
    assert "`pdj run d/main.py`" in problem("d")
    (home / "d" / "train.py").touch()
    assert "`pdj run d/train.py`" in problem("d")
    (home / "d" / "b.yml").touch()
    assert problem("d") == "is a directory; name a job file, such as d/b.yml"
    (home / "d" / "a.yaml").touch()
    assert problem("d").endswith("such as d/a.yaml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "is a Python program, not a job file; train it with `pdj run a.py`"),
        ("a.sh", "is a shell script, not a job file"),
        ("a.ipynb", "is a notebook, not a job file; save the notebook as a Python program first"),
        ("absent.yaml", "no such file"),
        ("", "no such file"),
    ],
)
def test_what_is_no_job_file_is_answered_with_what_to_do(home: Path, name: str, text: str):
    if name.startswith("a."):
        (home / name).touch()
    assert text in problem(name)


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: PaddleJob\n---\nkind: Secret\n")))
    assert [one["kind"] for one in objects_in("-")] == ["PaddleJob", "Secret"]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadFile):
        objects_in("-")


def test_a_file_without_a_job_says_what_it_holds_and_what_to_do():
    def answer(*kinds: str) -> str:
        with pytest.raises(BadFile) as raised:
            jobs_in("f", [{"kind": kind} for kind in kinds])
        return raised.value.problem

    assert answer("Secret", "Secret", "") == (
        "contains no PaddleJob, only Secret, an object without kind; check kind and apiVersion, or create a job file "
        "with `pdj init`"
    )
    assert answer("Job").endswith("run it with `pdj run` or kubectl, or turn it into a PaddleJob with `pdj convert`")
    assert answer("Paddlejob").endswith("did you mean kind: PaddleJob?")
    assert jobs_in("f", [{"kind": "PaddleJob"}, {"kind": "Secret"}]) == [{"kind": "PaddleJob"}]
    assert not is_paddle_job({})


def test_a_file_is_only_overwritten_on_request(home: Path):
    assert check_new_file("new", force=False) == Path("new")
    (home / "old").touch()
    assert check_new_file("old", force=True) == Path("old")
    with pytest.raises(BadInput, match="old already exists; choose another name or overwrite it with --force"):
        check_new_file("old", force=False)
    write_file(Path("new"), "名")
    assert (home / "new").read_bytes() == "名".encode()
