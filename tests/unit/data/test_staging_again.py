"""Staging again converges when the source's files and directories trade names, and removes nothing but its own."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from paddlejob.data import stage
from paddlejob.errors import BadInput


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in/a/deep").mkdir(parents=True)
    (tmp_path / "in/a/deep/x").write_text("x")
    (tmp_path / "in/b").write_text("b")
    return tmp_path / "in"


def turn_into_a_file(source: Path) -> None:
    (source / "a/deep/x").unlink()
    (source / "a/deep").rmdir()
    (source / "a").rmdir()
    (source / "a").write_text("now a file")


def test_a_directory_that_became_a_file_is_replaced(source: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    stage(str(source), str(here))
    turn_into_a_file(source)
    assert [file.name for file in stage(str(source), str(here)).files] == ["a", "b"]
    assert (here / "a").read_text() == "now a file"
    assert stage(str(source), str(here)).kept == ("a", "b")


def test_a_file_that_became_a_directory_is_replaced(source: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    stage(str(source), str(here))
    (source / "b").unlink()
    (source / "b").mkdir()
    (source / "b/y").write_text("y")
    assert [file.name for file in stage(str(source), str(here)).files] == ["a/deep/x", "b/y"]
    assert (here / "b/y").read_text() == "y"


def test_a_directory_on_a_store_without_locks_is_replaced_too(source: Path, memory: str) -> None:
    stage(str(source), memory)
    turn_into_a_file(source)
    stage(str(source), memory)
    assert fsspec.filesystem("memory").cat(f"{memory}/a") == b"now a file"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("mine", ["a/mine", "a/deep/mine", "a/empty/"])
def test_what_the_user_put_into_the_directory_is_kept_and_named(
    source: Path, tmp_path: Path, mine: str, overwrite: bool
) -> None:
    here = tmp_path / "here"
    stage(str(source), str(here))
    (here / mine).mkdir() if mine.endswith("/") else (here / mine).touch()
    turn_into_a_file(source)
    with pytest.raises(BadInput, match=rf"a is a directory that contains {mine.rstrip('/')}, which was not staged"):
        stage(str(source), str(here), overwrite=overwrite)
    assert (here / mine).exists() and (here / "a/deep/x").read_text() == "x"


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ("link", "already contains b, which was not staged"),
        ("", "b is a directory, which was not staged by pdj; move it"),
    ],
)
def test_a_link_or_a_directory_of_the_user_is_not_replaced(
    source: Path, tmp_path: Path, mine: str, message: str
) -> None:
    here = tmp_path / "here"
    (tmp_path / "elsewhere").mkdir()
    here.mkdir()
    (here / "b").symlink_to(tmp_path / "elsewhere") if mine else (here / "b").mkdir()
    with pytest.raises(BadInput, match=message):
        stage(str(source), str(here))
    assert (here / "b").is_dir()


@pytest.mark.parametrize("manifest", [None, "{", "{}", "[]"])
def test_a_directory_that_looks_like_a_part_is_staged_without_a_split(tmp_path: Path, manifest: str | None) -> None:
    (tmp_path / "job/0/data").mkdir(parents=True)
    (tmp_path / "job/0/data/train.txt").write_text("a\n")
    if manifest is not None:
        (tmp_path / "job/manifest.json").write_text(manifest)
    staged = stage(str(tmp_path / "job/0/data"), str(tmp_path / "here"))
    assert [file.name for file in staged.files] == ["train.txt"]


@pytest.mark.parametrize(("left", "now"), [("a/x", "a"), ("a", "a/x")])
def test_files_of_a_killed_run_that_were_not_recorded_do_not_block_the_next(
    tmp_path: Path, left: str, now: str
) -> None:
    (tmp_path / "here/.pdj-data").mkdir(parents=True)
    (tmp_path / "here/.pdj-data/journal.jsonl").write_text(json.dumps({"files": [], "bringing": [left]}) + "\n")
    for path in (tmp_path / "here" / left, tmp_path / "in" / now):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    stage(str(tmp_path / "in"), str(tmp_path / "here"))
    assert (tmp_path / "here" / now).read_text() == "content"
