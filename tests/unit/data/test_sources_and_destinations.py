"""Sources and destinations that are not plain local files."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from paddlejob.data import By, split, stage
from paddlejob.errors import NotPossible, PaddleJobError

LINES = b"".join(b"line %d\r\n" % number for number in range(1001))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """Python's own web server, which does not know ranges."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web/train.txt").write_bytes(LINES)
    (tmp_path / "web/train.txt.gz").write_bytes(gzip.compress(LINES))
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path / "web")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def joined(dest: Path, parts: int, name: str = "train.txt") -> bytes:
    return b"".join((dest / f"{part}/data/{name}").read_bytes() for part in range(parts))


def test_a_file_url_is_the_same_as_its_path(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    split(f"file://{tmp_path}/train.txt", f"file://{tmp_path}/out", 3)
    assert joined(tmp_path / "out", 3) == LINES


@pytest.mark.parametrize("by", ["lines", "bytes"])
def test_a_web_page_without_ranges_can_be_split(web: str, tmp_path: Path, by: By) -> None:
    made = split(f"{web}/train.txt?token=secret", str(tmp_path / "out"), 4, by)
    assert joined(tmp_path / "out", 4) == LINES
    assert max(sizes := [part.records for part in made.parts]) - min(sizes) <= 1
    assert "secret" not in (tmp_path / "out/manifest.json").read_text()
    assert not (tmp_path / "out/.pdj-data").exists()


def test_compressed_lines_are_unpacked_on_the_way(web: str, tmp_path: Path) -> None:
    split(f"{web}/train.txt.gz", str(tmp_path / "out"), 3)
    assert joined(tmp_path / "out", 3) == LINES


def test_a_server_that_is_not_there_is_an_error_with_its_address(tmp_path: Path) -> None:
    with pytest.raises(PaddleJobError, match=r"127.0.0.1:9/"):
        split("http://127.0.0.1:9/x", str(tmp_path / "out"), 1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shuffle", [False, True])
def test_from_memory_to_memory(memory: str, shuffle: bool) -> None:
    fsspec.filesystem("memory").pipe({f"{memory}/in/{n}.txt": LINES for n in range(3)})
    made = split(f"{memory}/in", f"{memory}/out", 4, shuffle=shuffle, seed=1)
    again = split(f"{memory}/in", f"{memory}/out", 4, shuffle=shuffle, seed=1)
    assert made == again and again.kept == (0, 1, 2, 3)
    fs = fsspec.filesystem("memory")
    got = b"".join(fs.cat(f"{memory}/out/{p.part}/data/{f.name}") for p in made.parts for f in p.files)
    assert got == 3 * LINES if not shuffle else sorted(got.split()) == sorted((3 * LINES).split())
    assert not fs.exists(f"{memory}/out/.pdj-data")


def test_whole_files_are_dealt_out_with_their_names_and_unchanged(tmp_path: Path) -> None:
    for number in range(7):
        path = tmp_path / f"in/{number % 2}/{number}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"%d" % number))
    made = split(str(tmp_path / "in"), str(tmp_path / "out"), 3, "files")
    assert [part.records for part in made.parts] == [2, 2, 3]
    found = {f"{p.parent.name}/{p.name}": p.read_bytes() for p in (tmp_path / "out").glob("*/data/*/*.gz")}
    assert found == {f"{p.parent.name}/{p.name}": p.read_bytes() for p in (tmp_path / "in").glob("*/*.gz")}
    shuffled = split(str(tmp_path / "in/*/*.gz"), str(tmp_path / "mixed"), 3, "files", shuffle=True, seed=3)
    assert sorted(f.name for p in shuffled.parts for f in p.files) == sorted(found)
    assert [p.files for p in shuffled.parts] != [p.files for p in made.parts]


def test_the_manifest_has_the_checksums_that_sha256sum_gives(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    for part in split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 3).parts:
        [file] = part.files
        content = (tmp_path / f"out/{part.part}/data/train.txt").read_bytes()
        assert (file.sha256, file.bytes) == (hashlib.sha256(content).hexdigest(), len(content))


def test_a_part_is_staged_and_checked_against_its_split(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    split(str(tmp_path / "train.txt"), str(tmp_path / "job"), 2)
    staged = stage(str(tmp_path / "job/1/data"), str(tmp_path / "data"))
    part = tmp_path / "job/1/data/train.txt"
    assert (tmp_path / "data/train.txt").read_bytes() == part.read_bytes()
    assert [file.name for file in staged.files] == ["train.txt"]
    part.write_bytes(part.read_bytes().replace(b"700", b"7O0"))
    with pytest.raises(NotPossible, match=r"does not match the manifest.json of its split"):
        stage(str(tmp_path / "job/1/data"), str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere/train.txt").exists()


def test_staging_again_copies_only_what_has_changed(tmp_path: Path, memory: str) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe({f"{memory}/a": b"1", f"{memory}/deep/b": b"2", f"{memory}/c": b"3"})
    assert stage(memory, str(tmp_path / "here")).kept == ()
    fs.pipe(f"{memory}/a", b"11")
    fs.rm(f"{memory}/c")
    (tmp_path / "here/mine").touch()
    assert stage(memory, str(tmp_path / "here")).kept == ("deep/b",)
    seen = {
        str(p.relative_to(tmp_path / "here")): p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()
    }
    seen.pop(".pdj-staged.json")
    assert seen == {"a": b"11", "deep/b": b"2", "mine": b""}
    stage(str(tmp_path / "here"), f"{memory}/back")
    assert fs.cat(f"{memory}/back/a") == b"11"


def test_a_damaged_part_is_written_again_and_the_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 3)
    (tmp_path / "out/1/data/train.txt").write_bytes(b"damaged")
    assert split(str(tmp_path / "train.txt"), str(tmp_path / "out"), 3).kept == (0, 2)
    assert joined(tmp_path / "out", 3) == LINES
