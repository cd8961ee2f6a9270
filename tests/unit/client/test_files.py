"""Files that a command writes: as a whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from paddlejob.client.files import write_file
from paddlejob.errors import NotPossible


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
