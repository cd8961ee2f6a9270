"""Packing a directory: what is shipped, and that the same files always give the same archive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlejob.code import archive as archives
from paddlejob.code.archive import pack, unpack
from paddlejob.errors import BadInput


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in {
        "train.py": "import helper",
        "lib/helper.py": "",
        "data/words.txt": "words",
        ".env": "TOKEN=secret",
        ".git/config": "",
        "lib/__pycache__/helper.pyc": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_secrets_and_caches_are_left_out_and_named(project: Path):
    packed = pack(str(project))
    assert packed.files == ("data/words.txt", "lib/helper.py", "train.py")
    assert packed.ignored == (".env", ".git/", "lib/__pycache__/")


def test_ignore_files_work_as_in_git_at_every_level(project: Path):
    (project / ".gitignore").write_text("*.txt\n!keep.txt\n/lib/\n")
    (project / "data" / "keep.txt").write_text("")
    (project / "data" / ".gitignore").write_text("!words.txt\n")
    packed = pack(str(project))
    assert packed.files == (".gitignore", "data/.gitignore", "data/keep.txt", "data/words.txt", "train.py")


def test_pdjignore_decides_after_gitignore_and_can_ship_a_secret_on_purpose(project: Path):
    (project / ".gitignore").write_text("train.py\n")
    (project / ".pdjignore").write_text("!train.py\n!.env\ndata/\n")
    assert {"train.py", ".env"} <= set(pack(str(project)).files)
    assert "data/" in pack(str(project)).ignored


def test_the_same_files_give_the_same_archive_wherever_and_whenever(project: Path, tmp_path: Path):
    first = pack(str(project))
    copy = tmp_path / "copy"
    project.rename(copy)
    os.utime(copy / "train.py", (1, 1))
    (copy / "train.py").chmod(0o600)
    assert pack(str(copy)).content == first.content
    (copy / "train.py").write_text("import helper  # edited")
    assert pack(str(copy)).digest != first.digest


def test_what_was_packed_is_what_is_unpacked(project: Path, tmp_path: Path):
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link.py").symlink_to("train.py")
    out = tmp_path / "out"
    out.mkdir()
    assert unpack(pack(str(project)).content, out) == 5
    assert (out / "train.py").read_text() == "import helper"
    assert os.access(out / "run.sh", os.X_OK)
    assert not os.access(out / "train.py", os.X_OK)
    assert (out / "link.py").readlink() == Path("train.py")


def test_a_link_that_leads_out_of_the_directory_is_rejected(project: Path):
    (project / "data" / "out").symlink_to("../../elsewhere")
    with pytest.raises(BadInput, match=r"is a link to \.\./\.\./elsewhere, outside of"):
        pack(str(project))


def test_a_directory_that_is_too_large_is_rejected_with_its_largest_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archives, "MOST_BYTES", 10_000)
    for number in range(12):
        (project / f"model-{number:02}.bin").write_bytes(os.urandom(2000 + number))
    with pytest.raises(BadInput) as caught:
        pack(str(project))
    lines = str(caught.value).splitlines()
    assert "packed, more than 9.8 KiB; leave data and models out with .pdjignore" in lines[0]
    assert [line.split()[-1] for line in lines[1:]] == [f"model-{number:02}.bin" for number in range(11, 1, -1)]


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("x")])
def test_what_is_no_directory_with_files_is_rejected(tmp_path: Path, make: object):
    make(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(BadInput, match=r"--code .*x: "):
        pack(str(tmp_path / "x"))
