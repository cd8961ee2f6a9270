"""What data commands refuse, with the remedy, and what identifies a source."""

from __future__ import annotations

import errno
import json
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import pytest

from paddlejob.data import stage
from paddlejob.data.drivers import discovery, unpack, web
from paddlejob.data.drivers.errors import describe, translate_errors, translate_read_errors
from paddlejob.data.drivers.resolve import _hdfs_requirements, _missing_driver, _options, filesystem, is_web
from paddlejob.data.drivers.urls import identifying_query, is_below, redact
from paddlejob.data.journal import format_entries, parse_entries
from paddlejob.data.manifest import MANIFEST, STAGED, StagedFile
from paddlejob.data.ownership import Owned, blocking_directories, check_not_foreign, parents, read_owned
from paddlejob.data.preconditions import (
    MAX_PARTS,
    check_enough_records,
    check_free_space,
    check_options,
    split_writes_to,
    stage_writes_to,
)
from paddlejob.data.stores.base import is_part_number
from paddlejob.data.stores.factory import open_store
from paddlejob.data.stores.remote import RemoteStore
from paddlejob.errors import BadInput, NotPossible


@pytest.mark.parametrize(
    ("protocol", "command"),
    [
        ("s3", "pip install 'paddlejob[s3]'"), ("s3a", "pip install 'paddlejob[s3]'"), ("gs", "pip install gcsfs"),
        ("gcs", "pip install gcsfs"), ("abfs", "pip install adlfs"), ("sftp", "pip install paramiko"),
    ],
)  # fmt: skip
def test_a_driver_that_is_missing_is_named_with_the_command_that_installs_it(protocol: str, command: str):
    message = _missing_driver(protocol, f"{protocol}://x/y", ImportError("no module"))
    assert message == f"the driver for {protocol}:// is not installed; run {command}"


def test_hdfs_without_hadoop_is_read_over_the_web():
    assert _missing_driver("hdfs", "hdfs://name:8020/a/b", ImportError()).endswith("webhdfs://name:9870/a/b")
    assert _hdfs_requirements("hdfs:///a").endswith("webhdfs://NAMENODE:9870/a")
    assert _missing_driver("other", "other://x", ImportError("No module named 'x'")) == "No module named 'x'"


def test_web_servers_have_time_and_other_stores_have_their_own_options():
    for protocol in ("http", "https"):
        timeout = _options(protocol)["client_kwargs"]["timeout"]
        assert (timeout.total, timeout.sock_connect, timeout.sock_read) == (None, 30.0, 120.0)
        assert is_web(filesystem(f"{protocol}://127.0.0.1:9/x")[0])
    assert _options("s3") == {}
    assert not is_web(filesystem("memory://x")[0])
    with pytest.raises(BadInput, match=r"nosuch://x: .*; use a path or a URL that fsspec supports, such as s3://"):
        filesystem("nosuch://x")


@pytest.mark.parametrize(
    "name",
    [
        "se", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "st", "sv", "access_key", "api_key",
        "apikey", "auth", "authorization", "awsaccesskeyid", "credential", "delegation", "expires", "googleaccessid",
        "key", "key-pair-id", "passwd", "password", "policy", "pwd", "secret", "session", "sessionid", "sig",
        "signature", "token", "x-amz-date", "x-goog-date", "x-oss-x", "x-cos-x", "mytoken", "SIG",
    ],
)  # fmt: skip
def test_what_changes_with_each_login_does_not_identify_a_source(name: str):
    for scheme in ("http", "https"):
        assert identifying_query(f"{scheme}://h/x?day=1&{name}=2&empty=") == [("day", "1"), ("empty", "")]
    assert identifying_query("s3://b/x?day=1") == []


def test_names_stay_below_their_directory():
    assert is_below("a") and is_below("a/b") and is_below("..a")
    assert not any(map(is_below, ("", ".", "/a", "../a", "a/../b")))
    assert redact("/data/a?b=c") == "/data/a?b=c"
    assert redact("see /data?x=1 now") == "see /data now"


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
def test_an_error_of_the_disk_says_what_to_do(tmp_path: Path, code: int, remedy: str):
    with pytest.raises(NotPossible) as raised, open_store(str(tmp_path / "out")):
        raise OSError(code, "the reason")
    assert str(raised.value) == f"{tmp_path / 'out'}: the reason; {remedy}"


def test_a_destination_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is not a directory; choose a directory"), open_store(str(tmp_path / "file")):
        pass
    with pytest.raises(BadInput, match="permission denied; check its permissions"), open_store(str(tmp_path / "x")):
        raise PermissionError
    with pytest.raises(BadInput, match="web servers are read-only"), open_store("http://127.0.0.1:9/x"):
        pass


def test_errors_of_drivers_become_messages_of_ours():
    assert (describe(OSError(5, "broken")), describe(ValueError("x")), describe(KeyError())) == (
        "broken",
        "x",
        "KeyError",
    )
    for error in (BadInput("x"), FileNotFoundError(), PermissionError()):
        with pytest.raises(type(error)), translate_errors("u"):
            raise error
    with pytest.raises(BadInput, match="u: is read-only; choose another destination"), translate_errors("u"):
        raise NotImplementedError
    with pytest.raises(NotPossible, match="u: x; run the same command again to resume"), translate_errors("u"):
        raise ValueError("x")
    with pytest.raises(BadInput, match="u: permission denied"), translate_read_errors("u"):
        raise PermissionError
    with pytest.raises(NotPossible, match="u: could not be read: x; run"), translate_read_errors("u"):
        raise ValueError("x")


def test_a_journal_counts_up_to_its_first_damaged_line():
    whole = format_entries({"a": 1}, {"b": 2})
    assert whole == b'{"a": 1}\n{"b": 2}\n'
    assert parse_entries(whole + b'{"c": 3}') == [{"a": 1}, {"b": 2}]
    assert parse_entries(b'{"a": 1}\n{\n{"b": 2}\n') == [{"a": 1}]
    assert parse_entries(b'{"a": 1}\n[]\n{"b": 2}\n') == [{"a": 1}]
    assert parse_entries(b"") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((0, "lines", False, 0), f"parts: 0 is outside 1 to {MAX_PARTS}"),
        ((MAX_PARTS + 1, "lines", False, 0), "is outside 1 to"),
        ((1, "words", False, 0), "by: 'words' is not supported; use lines, files or bytes"),
        ((1, "bytes", True, 0), "shuffle: cannot be combined with --by bytes"),
        ((1, "lines", False, -1), "header: -1 is negative"),
        ((1, "files", False, 1), "header: cannot be combined with --by files; use --by lines"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: tuple[int, str, bool, int], message: str):
    with pytest.raises(BadInput, match=message):
        check_options(*options)


def test_options_at_their_limits_are_accepted():
    for options in ((1, "lines", True, 2), (MAX_PARTS, "bytes", False, 0), (3, "files", True, 0)):
        check_options(*options)
    check_enough_records("s", 2, 2, "lines")
    with pytest.raises(BadInput, match="s: has 1 lines, too few for 2 parts; ask for fewer parts"):
        check_enough_records("s", 1, 2, "lines")
    assert split_writes_to("x", PurePosixPath("12/data/x")) and not split_writes_to("x", PurePosixPath("a/12/data/x"))
    assert stage_writes_to("a/b", PurePosixPath("a/b")) and not stage_writes_to("a/b", PurePosixPath("b"))
    assert [name for name in ("0", "12", "012", "-1", "a", "²", "") if is_part_number(name)] == ["0", "12"]


def test_a_disk_without_space_is_refused_before_anything_is_written(tmp_path: Path):
    with open_store(str(tmp_path / "out")) as store:
        check_free_space(store, 1)
        with pytest.raises(NotPossible, match=f"not enough space for {(1 << 60) + 5} more bytes"):
            check_free_space(store, 1 << 60, 5)


def staged(name: str) -> StagedFile:
    return StagedFile(name, 1, "0" * 64, "1 mark")


def test_files_that_are_no_longer_wanted_or_in_the_way_are_stale():
    owned = Owned({"old": staged("old"), "kept": staged("kept")}, frozenset({"a/b", "c", "free"}))
    assert owned.names == {"old", "kept", "a/b", "c", "free"}
    assert owned.stale({"kept", "a", "c/d"}) == {"old", "a/b", "c"}
    assert parents(["a/b/c", "d"]) == {"a", "a/b"}


def test_what_earlier_runs_staged_is_read_and_nothing_outside_the_directory(tmp_path: Path):
    with open_store(str(tmp_path)) as store:
        assert read_owned(store).names == frozenset()
        files = [asdict(staged(name)) for name in ("a", "../b")]
        (tmp_path / STAGED).write_text(json.dumps({"files": files}))
        assert read_owned(store).names == {"a"}
        (tmp_path / STAGED).write_text("[")
        with pytest.raises(BadInput, match=f"its {STAGED} is invalid; remove it"):
            read_owned(store)
        (tmp_path / STAGED).unlink()
        store.append_journal({"bringing": ["x", "/y"], "files": [asdict(staged("z"))]})
        assert (read_owned(store).started, read_owned(store).names) == ({"x"}, {"x", "z"})
        store.append_journal({"request": {}})
        with pytest.raises(BadInput, match="contains an unfinished split; finish that split"):
            read_owned(store)


def test_files_and_directories_of_others_are_not_replaced(tmp_path: Path):
    (tmp_path / "mine").touch()
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/mine").touch()
    nothing = Owned({}, frozenset())
    with open_store(str(tmp_path)) as store:
        check_not_foreign(store, {"new"}, nothing)
        with pytest.raises(BadInput, match="already contains mine, which was not staged by pdj"):
            check_not_foreign(store, {"mine"}, nothing)
        check_not_foreign(store, {"mine"}, Owned({"mine": staged("mine")}, frozenset()))
        with pytest.raises(BadInput, match="dir is a directory, which was not staged by pdj; move it away"):
            blocking_directories(store, {"dir"}, nothing)
        ours = Owned({"dir/mine": staged("dir/mine")}, frozenset())
        assert blocking_directories(store, {"dir"}, ours) == ["dir"]
        (tmp_path / "dir/other").touch()
        with pytest.raises(BadInput, match="dir is a directory that contains dir/other, which was not staged"):
            blocking_directories(store, {"dir"}, ours)


@pytest.mark.parametrize(("filename", "where"), [(None, ""), ("src", ""), ("src/secret", r" \(at src/secret\)")])
def test_a_source_that_may_not_be_read_names_what_is_in_the_way(
    filename: str | None, where: str, monkeypatch: pytest.MonkeyPatch
):
    def denied(fs: object, path: str) -> None:
        raise PermissionError(errno.EACCES, "denied", path.replace("src", filename) if filename else None)

    monkeypatch.setattr(discovery, "_find", denied)
    monkeypatch.setattr(discovery, "filesystem", lambda url: (None, "src"))
    with pytest.raises(BadInput, match=rf"^src: permission denied{where}; check its permissions"):
        discovery.find("src")


@pytest.mark.parametrize("manifest", [None, "{", "{}", "[]"])
def test_a_directory_that_looks_like_a_part_is_staged_without_a_split(tmp_path: Path, manifest: str | None):
    (tmp_path / "job/0/data").mkdir(parents=True)
    (tmp_path / "job/0/data/train.txt").write_text("a\n")
    if manifest is not None:
        (tmp_path / "job" / MANIFEST).write_text(manifest)
    staged_again = stage(str(tmp_path / "job/0/data"), str(tmp_path / "here"))
    assert [file.name for file in staged_again.files] == ["train.txt"]


class Breaking:
    """A web server whose connections break off a number of times."""

    kwargs: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def open(self, *_: object, **__: object) -> Breaking:
        return self

    def read(self, count: int) -> bytes:
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectionError("broken off")
        return b"x"

    def close(self) -> None:
        pass


def test_a_connection_that_breaks_off_is_tried_again_after_longer_and_longer_waits(monkeypatch: pytest.MonkeyPatch):
    waits: list[float] = []
    monkeypatch.setattr(web, "sleep", waits.append)
    assert web.Page(Breaking(3), "http://x", 1, "mark").read(1) == b"x"
    assert waits == [0.5, 1.0, 1.5]
    with pytest.raises(ConnectionError):
        web.Page(Breaking(4), "http://x", 1, "mark").read(1)
    with pytest.raises(ConnectionError):
        web.Page(Breaking(1), "http://x", 1, "").read(1)


class Driver:
    def __init__(self, *protocol: str) -> None:
        self.protocol = protocol if len(protocol) > 1 else protocol[0]


@pytest.mark.parametrize(
    ("protocol", "direct", "renames"),
    [
        ("s3", True, False), ("s3a", True, False), ("gs", True, False), ("gcs", True, False), ("webhdfs", False, True),
        ("hdfs", False, True), ("memory", False, False), ("sftp", False, False),
    ],
)  # fmt: skip
def test_a_store_writes_directly_or_renames_directories_where_that_is_safe(protocol: str, direct: bool, renames: bool):
    for driver in (Driver(protocol), Driver(protocol, "other")):
        store = RemoteStore("u", driver, "/x/")
        assert (store._direct, store._renames_directories, store.is_local) == (direct, renames, False)


@pytest.mark.parametrize(
    ("ending", "kind"), [(".gz", "gzip"), (".bz2", "bz2"), (".xz", "xz"), (".lzma", "lzma"), (".GZ", "gzip")]
)
def test_compressed_files_are_known_by_their_ending(ending: str, kind: str):
    assert unpack._compression(f"a/train.txt{ending}") == kind
    assert unpack._unpacked_name(f"a/train.txt{ending}") == "a/train.txt"
    assert unpack._compression("a/train.txt") is None


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (".zst", "zstd"), (".lz4", "lz4"), (".br", "brotli"), (".lzo", "lzo"), (".sz", "snappy"), (".snappy", "snappy"),
        (".Z", "compress"),
    ],
)  # fmt: skip
def test_a_compression_without_its_library_is_refused(ending: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fsspec.compression.compr", {})
    with pytest.raises(BadInput, match=f"{kind} files cannot be unpacked here; unpack it first, or use --by files"):
        unpack._compression(f"train{ending}")


@pytest.mark.parametrize(
    "ending",
    [".zip", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".ZIP"],
)
def test_an_archive_has_no_lines(ending: str):
    with pytest.raises(BadInput, match="is an archive, which has no lines; unpack it first"):
        unpack._compression(f"train{ending}")
