"""Records that cannot be read, files on other file systems, locks that vanish, and copies that stop."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob.data import split, stage
from paddlejob.data.copying import Copier, Stopped
from paddlejob.data.progress import Meter, silent
from paddlejob.data.stores.local import LocalStore
from paddlejob.data.stores.lock import exclusive
from paddlejob.errors import BadInput, NotPossible

LINES = b"".join(b"line %d\n" % number for number in range(100))


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"parts": 3}', '{"request": {}, "parts": [{}]}'])
def test_a_manifest_that_is_not_of_a_split_is_kept_unless_it_may_be_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/manifest.json").write_text(content)
    with pytest.raises(BadInput, match=r"contains a manifest.json that is not of a split; choose another directory"):
        split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 2)
    assert (tmp_path / "out/manifest.json").read_text() == content
    split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 2, overwrite=True)
    assert len(json.loads((tmp_path / "out/manifest.json").read_text())["parts"]) == 2


def test_files_cannot_move_to_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore("out", str(tmp_path / "out"), durable=True)
    error = OSError(errno.EXDEV, "Invalid cross-device link")

    def replace(self: Path, to: Path) -> Any:
        raise error

    monkeypatch.setattr(Path, "replace", replace)
    with store.locked(), pytest.raises(BadInput, match=r"is on another file system than the directory itself"):
        store.write("a", b"1")
    error.errno = errno.EIO
    with store.locked(), pytest.raises(OSError) as raised:
        store.write("a", b"1")
    assert raised.value is error


def test_a_part_without_files_is_an_empty_directory(tmp_path: Path) -> None:
    store = LocalStore("out", str(tmp_path / "out"), durable=True)
    with store.locked():
        store.publish("0/data")
    assert list((tmp_path / "out/0/data").iterdir()) == []


def test_a_lock_whose_directory_always_vanishes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def gone(self: Path, *_: Any, **__: Any) -> Any:
        tries.append(self)
        raise FileNotFoundError

    monkeypatch.setattr(Path, "open", gone)
    with (
        pytest.raises(NotPossible, match="which other processes keep removing; wait for them"),
        exclusive(tmp_path / "w/lock", "out"),
    ):
        pass
    assert len(tries) > 1


def test_after_one_failure_the_other_copies_stop(tmp_path: Path) -> None:
    with Copier(1) as copier:

        def make(number: int) -> int:
            if number == 1:
                raise OSError("broken")
            return number

        with pytest.raises(OSError, match="broken"):
            copier.map(make, [0, 1, 2])
        with (tmp_path / "x").open("wb") as sink, pytest.raises(Stopped):
            copier.copy([b"a"], sink, Meter(silent, "writing", 1))
    assert (tmp_path / "x").read_bytes() == b""


def test_each_number_is_made_once_in_order() -> None:
    made: list[int] = []
    with Copier(1) as copier:
        assert copier.map(lambda number: made.append(number) or -number, [3, 1, 2]) == {3: -3, 1: -1, 2: -2}
    assert made == [3, 1, 2]


@pytest.mark.parametrize("size", [1, 1 << 18, (1 << 18) + 1])
def test_small_and_large_chunks_have_the_same_checksum(tmp_path: Path, size: int) -> None:
    chunks = [bytes([number]) * size for number in range(3)]
    for workers in (1, 2):
        with Copier(workers) as copier, (tmp_path / "x").open("wb") as sink:
            found = copier.copy(chunks, sink, Meter(silent, "writing", None))
        assert found == (3 * size, hashlib.sha256(b"".join(chunks)).hexdigest())
        assert (tmp_path / "x").read_bytes() == b"".join(chunks)


def test_staged_files_are_recorded_every_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / f"in/{number}").write_bytes(b"x")
    now = [0.0]
    entries: list[list[str]] = []

    def later() -> float:
        now[0] += 1.5
        return now[0]

    def append(self: LocalStore, entry: dict[str, Any]) -> None:
        entries.append([file["name"] for file in entry["files"]])

    monkeypatch.setattr(sys.modules["paddlejob.data.stage"], "monotonic", later)
    monkeypatch.setattr(LocalStore, "append_journal", append)
    stage(str(tmp_path / "in"), str(tmp_path / "out"))
    assert [len(names) for names in entries] == [2, 2]
    assert sorted(name for names in entries for name in names) == ["0", "1", "2", "3"]


def test_the_space_that_is_needed_is_counted_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(LINES) - 1))
    with pytest.raises(NotPossible, match=rf"not enough space for {len(LINES)} more bytes; free some space"):
        split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(LINES)))
    split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 2)
    with pytest.raises(NotPossible, match=rf"not enough space for {2 * len(LINES)} more bytes"):
        split(str(tmp_path / "train.txt"), str(tmp_path / "mixed"), 2, shuffle=True)


@pytest.mark.parametrize(
    ("run", "when"),
    [(stage, ""), (lambda *where, **more: split(*where, 2, shuffle=True, **more), "shuffling")],
    ids=["stage", "shuffle"],
)
def test_a_file_that_changes_while_it_is_read_is_not_published(tmp_path: Path, run: Any, when: str) -> None:
    source = tmp_path / "train.txt"
    source.write_bytes(LINES)

    def change(step: str, done: int, total: int | None) -> None:
        if when in (step, ""):
            source.write_bytes(LINES.upper() + b"more\n")

    with pytest.raises(NotPossible, match=r"train\.txt: changed while it was read"):
        run(str(source), str(tmp_path / "out"), progress=change)
    assert not list((tmp_path / "out").glob("[0-9t]*"))
