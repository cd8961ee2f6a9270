"""The bucket files of a shuffle: opened once each, within the limits of the process, and written completely."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from paddlejob.data import split
from paddlejob.data.partition import shuffle
from paddlejob.data.partition.buckets import BucketFiles, open_buckets

LINES = b"".join(b"line %d\n" % number for number in range(20_000))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each bucket that is opened for writing."""
    names: list[str] = []
    original = Path.open

    def counting(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if self.name.startswith("bucket-") and mode == "ab":
            names.append(self.name)
        return original(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", counting)
    return names


def test_each_bucket_is_opened_once_however_often_the_buffer_fills(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "BUFFER", 1)
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 4096)
    for number in range(5):
        (tmp_path / f"in-{number}.txt").write_bytes(LINES)
    made = split(f"{tmp_path}/in-*.txt", str(tmp_path / "out"), 2, shuffle=True)
    assert made.records == 100_000
    assert len(opened) == len(set(opened)) > 200


def test_more_buckets_than_open_files_are_allowed_are_written_too(tmp_path: Path, opened: list[str]) -> None:
    paths = [tmp_path / f"bucket-{number}" for number in range(10)]
    buckets = BucketFiles(paths, capacity=4)
    for _ in range(3):
        for number in range(10):
            buckets.append(number, b"x\n")
    buckets.close()
    assert {path.read_bytes() for path in paths} == {b"x\nx\nx\n"}
    assert len(opened) == 4 + 6 * 3


def test_the_limit_on_open_files_is_raised_for_the_shuffle_only(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = min(256, before[0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        with open_buckets([tmp_path / f"bucket-{number}" for number in range(300)]) as buckets:
            for number in range(300):
                buckets.append(number, b"x\n")
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(list(tmp_path.iterdir())) == 300


def test_a_short_write_is_completed() -> None:
    class Slow:
        content = b""

        def open(self, *_: Any, **__: Any) -> Slow:
            return self

        def write(self, data: memoryview) -> int:
            self.content += bytes(data[:3])
            return min(3, len(data))

    file: Any = Slow()
    BucketFiles([file], capacity=1).append(0, b"0123456789")
    assert file.content == b"0123456789"
