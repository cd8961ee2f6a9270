"""What an interrupted run leaves to the next one, and how files of remote stores become visible."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from paddlejob.data import split, stage
from paddlejob.data.copying import Copier
from paddlejob.data.stores.remote import RemoteStore
from paddlejob.errors import NotPossible

LINES = b"".join(b"line %d\n" % number for number in range(1000))


class Steps:
    """Records the progress of a run, and interrupts it when so many bytes are written."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.seen: dict[str, int | None] = {}
        self._stop_at = stop_at

    def __call__(self, step: str, done: int, total: int | None) -> None:
        self.seen[step] = total
        if step == "writing" and self._stop_at is not None and done >= self._stop_at:
            raise KeyboardInterrupt


@pytest.fixture(params=["local", "remote"])
def destination(request: pytest.FixtureRequest, tmp_path: Path, memory: str) -> str:
    return str(tmp_path / "out") if request.param == "local" else f"{memory}/out"


def interrupt(source: Path, dest: str, stop_at: int, header: int = 0) -> Steps:
    steps = Steps(stop_at)
    with pytest.raises(KeyboardInterrupt):
        split(str(source), dest, 4, header=header, progress=steps)
    return steps


@pytest.mark.parametrize("header", [0, 1])
def test_a_run_that_was_interrupted_twice_counts_lines_only_once_and_keeps_what_is_whole(
    destination: str, tmp_path: Path, header: int
) -> None:
    source = tmp_path / "train.txt"
    source.write_bytes(LINES)
    assert "counting" in interrupt(source, destination, len(LINES) * 3 // 4, header).seen
    assert "counting" not in interrupt(source, destination, 0, header).seen
    steps = Steps()
    made = split(str(source), destination, 4, header=header, progress=steps)
    assert "counting" not in steps.seen
    assert 0 < len(made.kept) < 4
    assert sum(part.records for part in made.parts) == 1000 - header


def test_a_part_that_was_damaged_meanwhile_is_not_kept(tmp_path: Path) -> None:
    source, dest = tmp_path / "train.txt", tmp_path / "out"
    source.write_bytes(LINES)
    interrupt(source, str(dest), len(LINES) * 3 // 4)
    whole = sorted(path.parent.parent.name for path in dest.glob("*/data/train.txt"))
    (dest / whole[0] / "data/train.txt").write_bytes(b"damaged")
    made = split(str(source), str(dest), 4)
    assert [str(part) for part in made.kept] == whole[1:]
    assert b"".join((dest / f"{part}/data/train.txt").read_bytes() for part in range(4)) == LINES


@pytest.mark.parametrize("leftover", ["drafts", "old", "scratch/partial"])
def test_what_a_killed_run_left_in_its_own_directory_is_removed(tmp_path: Path, leftover: str) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    left = tmp_path / "out/.pdj-data" / leftover / "0/data/train.txt"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 2)
    assert not (tmp_path / "out/.pdj-data").exists()
    stage(str(tmp_path / "train.txt"), str(tmp_path / "here"))
    assert not (tmp_path / "here/.pdj-data").exists()


def test_only_what_must_be_unpacked_counts_as_reading(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(LINES)
    packed = gzip.compress(LINES)
    (folder / "b.txt.gz").write_bytes(packed)
    steps = Steps()
    split(str(folder), str(tmp_path / "out"), 2, progress=steps)
    assert steps.seen["reading"] == len(packed)
    assert steps.seen["counting"] == 2 * len(LINES)
    plain = Steps()
    split(str(folder / "a.txt"), str(tmp_path / "plain"), 2, progress=plain)
    assert "reading" not in plain.seen


def test_an_unpacked_file_is_whole_on_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(LINES))
    synced: dict[str, int] = {}

    def fsync(descriptor: int) -> None:
        synced[Path(f"/proc/self/fd/{descriptor}").readlink().parent.name] = os.fstat(descriptor).st_size

    monkeypatch.setattr(os, "fsync", fsync)
    split(str(tmp_path / "train.txt.gz"), str(tmp_path / "out"), 1)
    assert synced["partial"] == len(LINES)


def test_a_file_that_is_plain_and_compressed_is_rejected(tmp_path: Path) -> None:
    for name, content in (("a.txt", LINES), ("a.txt.gz", gzip.compress(LINES))):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Exception, match=r"a\.txt: exists both plain and compressed; leave one of them out"):
        split(f"{tmp_path}/a.*", str(tmp_path / "out"), 2)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads each copy had."""
    started: list[int] = []
    original: Callable[[Any, int], None] = Copier.__init__
    monkeypatch.setattr(Copier, "__init__", lambda self, count: (started.append(count), original(self, count))[1])
    return started


def test_two_threads_copy_local_files_if_there_are_several(tmp_path: Path, threads: list[int]) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / f"in/{number}").write_bytes(b"x")
        stage(str(tmp_path / "in"), str(tmp_path / f"out-{number}"))
    assert threads == [1, 2]


def test_remote_files_are_copied_by_one_thread(tmp_path: Path, memory: str, threads: list[int]) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe({f"{memory}/in/a": b"1", f"{memory}/in/b": b"2"})
    stage(f"{memory}/in", str(tmp_path / "here"))
    stage(str(tmp_path / "here"), f"{memory}/back")
    split(f"{memory}/in/a", str(tmp_path / "out"), 1)
    assert threads == [1, 1, 1]


def test_a_shuffle_has_one_thread_because_each_holds_a_bucket_in_memory(tmp_path: Path, threads: list[int]) -> None:
    (tmp_path / "local.txt").write_bytes(LINES)
    split(str(tmp_path / "local.txt"), str(tmp_path / "two"), 2)
    split(str(tmp_path / "local.txt"), str(tmp_path / "mixed"), 2, shuffle=True)
    assert threads == [2, 1]


class Hdfs(MemoryFileSystem):
    """Renames a directory as a whole, as HDFS does."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.moved: list[tuple[str, str]] = []

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        self.moved.append((path1, path2))
        super().mv(path1, path2, recursive=self.isdir(path1), **options)


@pytest.mark.parametrize("protocol", ["webhdfs", "hdfs", ("webhdfs", "other"), "memory", "sftp"])
def test_a_part_becomes_visible_at_once_where_directories_can_be_renamed(memory: str, protocol: Any) -> None:
    fs, root = Hdfs(), memory.removeprefix("memory:/")
    fs.protocol = protocol
    moves = ["0/data"] if "hdfs" in str(protocol) else ["0/data/a", "0/data/deep/b"]
    store = RemoteStore("url", fs, root)
    with store.locked():
        store.begin()
        for name in ("0/data/a", "0/data/deep/b"):
            with store.draft(name) as file:
                file.write(b"x")
        fs.moved.clear()
        store.publish("0/data")
    assert sorted(to.removeprefix(f"{root}/") for _, to in fs.moved) == moves
    assert [source.name for source in store.list_files("0/data")] == ["a", "deep/b"]


def test_a_store_creates_its_own_directory_and_stops_when_a_later_run_has_begun(tmp_path: Path) -> None:
    first = RemoteStore("url", LocalFileSystem(auto_mkdir=False), str(tmp_path / "new/out"))
    with first.locked():
        first.begin()
        first.write("a", b"1")
        assert (tmp_path / "new/out/a").read_bytes() == b"1"
        later = RemoteStore("url", LocalFileSystem(auto_mkdir=False), str(tmp_path / "new/out"))
        with later.locked():
            later.begin()
            with pytest.raises(NotPossible, match="another pdj process has started writing here"):
                first.write("b", b"2")
            later.write("b", b"3")
    assert (tmp_path / "new/out/b").read_bytes() == b"3"


class Bucket(MemoryFileSystem):
    """Making a directory would make a bucket."""

    cachable = False

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        raise AssertionError(f"a bucket is up to the user: {path}")


@pytest.mark.parametrize("protocol", ["s3", "s3a", "gs", "gcs", ("s3", "s3a")])
def test_no_bucket_is_created(memory: str, protocol: Any) -> None:
    fs = Bucket()
    fs.protocol = protocol
    store = RemoteStore("url", fs, memory.removeprefix("memory:/"))
    with store.locked():
        store.begin()
    assert store.directories(["a"]) == {}


class Cached(MemoryFileSystem):
    """Remembers its listings, as the drivers of object stores do."""

    protocol = "memory"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._listed: dict[tuple[str, ...], Any] = {}

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        found = self._listed.setdefault(("ls", path, str(detail)), super().ls(path, detail, **options))
        return list(found)

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        key = ("find", path, repr(sorted(options)))
        return self._listed.setdefault(key, super().find(path, *arguments, **options))

    def invalidate_cache(self, path: str | None = None) -> None:
        self._listed.clear()


@pytest.mark.parametrize(
    ("look", "before", "after"),
    [
        (lambda store: store.part_numbers(), [0], [0, 1]),
        (lambda store: [source.name for source in store.list_files("")], ["0/data/a"], ["0/data/a", "1/data/b"]),
        (lambda store: list(store.directories(["0", "1"])), ["0"], ["0", "1"]),
    ],
)
def test_what_another_run_wrote_meanwhile_is_seen(
    memory: str, look: Callable[[RemoteStore], list[Any]], before: list[Any], after: list[Any]
) -> None:
    fs, root = Cached(), memory.removeprefix("memory:/")
    store = RemoteStore("url", fs, root)
    fs.pipe_file(f"{root}/0/data/a", b"1")
    assert look(store) == before
    fs.pipe_file(f"{root}/1/data/b", b"2")
    assert look(store) == after
