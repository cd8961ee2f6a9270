"""The commands and the program of docs/howto/split-data.md, with a directory of the test as the shared volume."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.markdown import Block, parse
from tools.docs.pages import DOCS

VOLUME = "/mnt/jobs"
LINES = 12_001


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files that the page splits."""
    (tmp_path / "train.txt").write_text("".join(f"{number % 2}\tfeature:{number}\n" for number in range(LINES)))
    for name in ("train.csv", "clicks.csv"):
        (tmp_path / name).write_text("label,text\n" + "".join(f"1,{number}\n" for number in range(100)))
    return tmp_path


def blocks(language: str) -> list[Block]:
    found = parse((DOCS / "howto/split-data.md").read_text()).blocks
    return [one for one in found if one.language == language and (one.marker is None or one.marker.kind != "not run")]


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(str(folder), VOLUME)


def without_bytes(output: str) -> list[list[str]]:
    """The files of the page are larger than those of this test."""
    return [
        words
        for line in output.splitlines()
        if (words := ["N" if word == bytes_of(line) else word for word in line.split()])
    ]


def bytes_of(line: str) -> str:
    words = line.split()
    return words[words.index("bytes") - 1]


def test_data_is_split_and_staged_as_the_page_shows(folder: Path):
    shown = blocks("console")
    assert [one.text.split()[3] for one in shown] == ["split", "split", "stage"]
    for block in shown:
        command, _, expected = block.text.removeprefix("$ pdj ").partition("\n")
        printed = run(folder, "-m", "paddlejob", *shlex.split(command.replace(VOLUME, str(folder))))
        assert not expected or without_bytes(printed) == without_bytes(expected)


def test_data_is_split_from_python_as_the_page_shows(folder: Path):
    (block,) = blocks("python")
    records, digest = run(folder, "-c", block.text.replace(VOLUME, str(folder))).split()
    assert int(records) in (33, 34)
    assert len(digest) == 64
