"""What makes two runs the same: the seed of a shuffle, and whether a store says that the source has changed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob.data import split
from paddlejob.data.drivers.discovery import one_file

LINES = b"".join(b"line %d\n" % number for number in range(200))


def joined(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*/data/*")))


def test_without_a_seed_a_shuffle_has_seed_0_and_without_a_header_all_lines_are_records(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    made = split(str(tmp_path / "train.txt"), str(tmp_path / "a"), 2, shuffle=True)
    same = split(str(tmp_path / "train.txt"), str(tmp_path / "b"), 2, shuffle=True, seed=0)
    other = split(str(tmp_path / "train.txt"), str(tmp_path / "c"), 2, shuffle=True, seed=1)
    assert made == same != other
    assert joined(tmp_path / "a") == joined(tmp_path / "b") != joined(tmp_path / "c")
    assert sum(part.records for part in made.parts) == 200


@pytest.mark.parametrize(
    "field",
    [
        *("ETag", "etag", "mtime", "LastModified", "last_modified", "Last-Modified", "modificationTime", "modified"),
        "created",
    ],
)
def test_whatever_a_store_tells_of_a_change_marks_the_file(field: str) -> None:
    class Store(SimpleNamespace):
        protocol = "any"

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": 3, "type": "file", field: self.value}

    before, after = (one_file(Store(value=value), "/root", "a") for value in ("one", "two"))
    assert before.mark and before.mark != after.mark
