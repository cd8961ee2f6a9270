"""Small files that several processes share: whole, on the disk before they are seen, and written on a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paddlejob.local.state.files import PADDED_SIZE, DamagedFile, read_if_intact, read_json, replace_file, write_json


def test_a_file_is_replaced_as_a_whole_and_nothing_else_stays(tmp_path: Path):
    path = tmp_path / "a.json"
    assert read_json(path) is read_if_intact(path) is None
    write_json(path, {"name": "宽"})
    write_json(path, {"name": "深"})
    assert read_json(path) == read_if_intact(path) == {"name": "深"}
    assert "深" in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, flushed = tmp_path / "status.json", []
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        flushed.append((Path(f"/proc/self/fd/{descriptor}").read_bytes(), path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(path, b"new", mode=0o600)
    assert flushed == [(b"new", b"old")]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    replace_file(path, b"newer")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
@pytest.mark.parametrize(("number", "written"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_padded_file_is_overwritten_and_flushed_when_the_disk_or_the_quota_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, written: bool
):
    path, flushed = tmp_path / "status.json", []
    write_json(path, {"é": 1, "message": "x" * 500}, padded=True)
    size = path.stat().st_size
    assert size == PADDED_SIZE + 1

    def fail(self: Path, argument: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, step, fail)
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(read_json(path)))
    if written:
        write_json(path, {"é": 2}, padded=True)
        assert flushed[-1] == {"é": 2}, "it is flushed as a whole"
    before = path.read_bytes()
    for target, padded in ((path, not written), (tmp_path / "new.json", False)):
        with pytest.raises(OSError, match=os.strerror(number)):
            write_json(target, {"é": 3}, padded=padded)
    assert path.read_bytes() == before and len(before) == size
    assert [one.name for one in tmp_path.iterdir()] == ["status.json"]


def test_a_file_that_stays_unreadable_is_an_error_unless_that_is_no_matter(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_text('{"a": ')
    with pytest.raises(DamagedFile):
        read_json(path)
    assert read_if_intact(path) is None
