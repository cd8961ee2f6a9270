"""Bad input is rejected in one sentence, and nothing is left behind."""

from __future__ import annotations

import errno
import gzip
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from paddlejob.data import split, stage
from paddlejob.data.preconditions import MAX_PARTS, split_writes_to, stage_writes_to
from paddlejob.data.stores.base import is_part_number
from paddlejob.data.stores.factory import open_store
from paddlejob.errors import BadInput, NotPossible


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_text("a\nb\nc\n")
    return str(tmp_path / "train.txt")


def test_fewer_lines_than_parts_are_rejected_and_nothing_is_made(lines: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has 3 lines, too few for 4 parts; .*--allow-empty"):
        split(lines, str(tmp_path / "out"), 4)
    assert not (tmp_path / "out").exists()


def test_an_empty_part_that_is_allowed_still_has_the_file_to_open(lines: str, tmp_path: Path) -> None:
    made = split(lines, str(tmp_path / "out"), 4, allow_empty=True)
    sizes = [(tmp_path / f"out/{part}/data/train.txt").stat().st_size for part in range(4)]
    assert sorted(sizes) == [0, 2, 2, 2]
    assert split(lines, str(tmp_path / "out"), 4, allow_empty=True).kept == (0, 1, 2, 3)
    assert made.records == 3


def test_an_empty_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(BadInput, match="has 0 lines"):
        split(str(tmp_path / "empty"), str(tmp_path / "out"), 1)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{}/nothing", "no such file or directory"),
        ("{}/*.csv", "no files found"),
        ("nosuch://bucket/x", "Protocol not known"),
        ("{}/data.tar.gz", "is an archive"),
        ("{}/broken.gz", "is not valid gzip data"),
        ("{}/half.gz", "is not valid gzip data"),
        ("{}/text.lzo", "lzo files cannot be unpacked here; unpack it first, or use --by files"),
        ("hdfs://namenode/data/train.txt", r"pip install pyarrow.*HADOOP_HOME.*webhdfs://namenode:9870/data/train.txt"),
    ],
)
def test_a_source_that_cannot_be_used_says_why(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "data.tar.gz").write_bytes(gzip.compress(b"x"))
    (tmp_path / "broken.gz").write_bytes(b"not gzip at all")
    (tmp_path / "half.gz").write_bytes(gzip.compress(b"a\n" * 100_000)[:-20])
    (tmp_path / "text.lzo").write_bytes(b"compressed in a way that nothing here knows")
    with pytest.raises(BadInput, match=says):
        split(source.format(tmp_path), str(tmp_path / "out"), 1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": 0}, "parts: 0 is outside 1 to 100000"),
        ({"parts": MAX_PARTS + 1}, "parts: 100001 is outside 1 to 100000"),
        ({"parts": 1, "by": "words"}, "by: 'words' is not supported; use lines, files or bytes"),
        ({"parts": 1, "by": "bytes", "shuffle": True}, "shuffle cannot be combined with --by bytes"),
        ({"parts": 1, "header": -1}, "header: -1 is negative"),
        ({"parts": 1, "by": "files", "header": 1}, "header cannot be combined with --by files; use --by lines"),
        ({"parts": 1, "shuffle": True, "header": 2}, "no such file"),
        ({"parts": MAX_PARTS, "by": "bytes"}, "no such file"),
        ({"parts": 3, "by": "files", "shuffle": True}, "no such file"),
    ],
)
def test_invalid_options_are_rejected_before_anything_is_read(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        split("/not/looked/at", str(tmp_path / "out"), **options)


def test_parts_have_numbers_and_only_their_files_are_written() -> None:
    assert [name for name in ("0", "12", "012", "-1", "a", "²", "") if is_part_number(name)] == ["0", "12"]
    assert split_writes_to("x", PurePosixPath("12/data/x")) and not split_writes_to("x", PurePosixPath("a/12/data/x"))
    assert stage_writes_to("a/b", PurePosixPath("a/b")) and not stage_writes_to("a/b", PurePosixPath("b"))


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space, then run the same command again to resume"),
        (errno.EDQUOT, "free some space, then run the same command again to resume"),
        (errno.EFBIG, "raise the file size limit, or ask for more parts"),
        (errno.EROFS, "choose a writable directory"),
        (errno.EIO, "run the same command again to resume"),
    ],
)
def test_an_error_of_the_disk_says_what_to_do(tmp_path: Path, code: int, remedy: str) -> None:
    with pytest.raises(NotPossible) as raised, open_store(str(tmp_path / "out")):
        raise OSError(code, "the reason")
    assert str(raised.value) == f"{tmp_path / 'out'}: the reason; {remedy}"


def test_a_destination_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="permission denied; check its permissions"), open_store(str(tmp_path / "x")):
        raise PermissionError


def test_a_destination_inside_the_source_is_rejected(lines: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is inside the source"):
        split(str(tmp_path), str(tmp_path / "out"), 1)


def test_a_destination_that_a_link_leads_into_the_source_is_rejected(lines: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Path(lines).rename(tmp_path / "in/train.txt")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    for run in (
        lambda: split(f"{tmp_path}/in", f"{tmp_path}/link/out", 1),
        lambda: stage(f"{tmp_path}/link", f"{tmp_path}/in/out"),
    ):
        with pytest.raises(BadInput, match="is inside the source"):
            run()
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["train.txt"]


def test_a_source_that_would_be_overwritten_by_its_own_parts_is_rejected(lines: str, tmp_path: Path) -> None:
    split(lines, str(tmp_path / "out"), 2)
    for source in ("out/0/data/train.txt", "out/*/data/*.txt"):
        with pytest.raises(BadInput, match=r"out: the source .*/out/0/data/train.txt would be overwritten"):
            split(str(tmp_path / source), str(tmp_path / "out"), 1, overwrite=True)
    with pytest.raises(BadInput, match="would be overwritten"):
        stage(lines, str(tmp_path), overwrite=True)
    assert (tmp_path / "out/0/data/train.txt").read_text() == "a\n"


def test_a_source_elsewhere_in_the_destination_is_fine(lines: str, tmp_path: Path) -> None:
    split(lines, str(tmp_path), 3)
    assert (tmp_path / "2/data/train.txt").read_text() == "c\n"


def test_another_split_at_the_destination_is_kept_unless_it_is_to_be_overwritten(lines: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    split(lines, str(out), 3)
    with pytest.raises(BadInput, match=r"contains a split of .* into 3, .*--overwrite"):
        split(lines, str(out), 2)
    assert (out / "2/data/train.txt").read_text() == "c\n"
    split(lines, str(out), 2, overwrite=True)
    assert (out / "1/data/train.txt").read_text() == "b\nc\n"
    assert not (out / "2/data").exists()
    assert not (out / ".pdj-data").exists()


def test_data_that_someone_else_put_there_is_not_replaced(lines: str, tmp_path: Path) -> None:
    (tmp_path / "out/1/data").mkdir(parents=True)
    (tmp_path / "out/1/data/precious").touch()
    with pytest.raises(BadInput, match="already contains 1/data"):
        split(lines, str(tmp_path / "out"), 2)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["1", "data", "precious"]


def test_a_file_is_no_destination(lines: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a directory; choose a directory"):
        split(lines, lines, 2)


def test_a_file_where_a_part_is_to_be_is_named(lines: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/1").touch()
    with pytest.raises(BadInput, match=r"/out/1 is not a directory"):
        split(lines, str(tmp_path / "out"), 2)


def test_a_source_that_changes_while_it_is_read_is_noticed(lines: str, tmp_path: Path) -> None:
    def meddle(step: str, done: int, total: int | None) -> None:
        if step == "writing" and not done:
            Path(lines).write_text("x\ny\nz\n!\n")

    with pytest.raises(NotPossible, match="changed while it was read"):
        split(lines, str(tmp_path / "out"), 1, progress=meddle)
    assert not (tmp_path / "out/0").exists()


def test_staging_does_not_replace_a_file_that_was_not_staged(lines: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/train.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"already contains train.txt.*--overwrite"):
        stage(lines, str(tmp_path / "here"))
    assert (tmp_path / "here/train.txt").read_text() == "mine"
    stage(lines, str(tmp_path / "here"), overwrite=True)
    assert (tmp_path / "here/train.txt").read_text() == "a\nb\nc\n"
