"""Drivers of stores: which are missing, what their errors become, what identifies a source, and packed files."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest

from paddlejob.data import split
from paddlejob.data.drivers import discovery
from paddlejob.data.drivers.errors import describe, translate_errors, translate_read_errors
from paddlejob.data.drivers.resolve import filesystem, is_web
from paddlejob.data.drivers.urls import identifying_query, is_below, redact
from paddlejob.errors import BadInput, NotPossible

REFUSED = RuntimeError("refused")


@pytest.mark.parametrize(
    ("url", "failure", "error", "message"),
    [
        (
            "s3://b/x",
            ImportError(),
            BadInput,
            r"the driver for s3:// is not installed; run pip install 'paddlejob\[s3]'",
        ),
        ("s3a://b/x", ImportError(), BadInput, r"s3a:// is not installed; run pip install 'paddlejob\[s3]'"),
        ("gs://b/x", ImportError(), BadInput, "gs:// is not installed; run pip install gcsfs"),
        ("gcs://b/x", ImportError(), BadInput, "gcs:// is not installed; run pip install gcsfs"),
        ("abfs://b/x", ImportError(), BadInput, "abfs:// is not installed; run pip install adlfs"),
        ("sftp://h/x", ImportError(), BadInput, "sftp:// is not installed; run pip install paramiko"),
        ("other://x", ImportError("No module named 'x'"), BadInput, "^other://x: No module named 'x'$"),
        ("hdfs://name:8020/a", ImportError(), BadInput, "use WebHDFS: webhdfs://name:9870/a$"),
        ("hdfs:///a", REFUSED, BadInput, r"webhdfs://NAMENODE:9870/a \(refused\)"),
        ("sftp://h/x", REFUSED, NotPossible, "^sftp://h/x: connection failed: refused"),
        ("nosuch://x", None, BadInput, r"nosuch://x: .*; use a path or a URL that fsspec supports, such as s3://"),
    ],
)
def test_a_store_that_cannot_be_reached_says_what_it_needs(
    url: str, failure: Exception | None, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> Any:
        raise failure

    if failure:
        monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(error, match=message):
        filesystem(url)


def test_a_download_may_take_as_long_as_bytes_arrive():
    for protocol in ("http", "https"):
        fs, _ = filesystem(f"{protocol}://127.0.0.1:9/x")
        timeout = fs.client_kwargs["timeout"]
        assert (timeout.total, timeout.sock_connect, timeout.sock_read) == (None, 30.0, 120.0)
        assert is_web(fs)
    assert not is_web(filesystem("memory://x")[0])


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


def test_errors_of_drivers_become_messages_of_ours():
    described = [describe(error) for error in (OSError(5, "broken"), ValueError("x"), KeyError())]
    assert described == ["broken", "x", "KeyError"]
    for translate, raised, error, message in (
        (translate_errors, BadInput("x"), BadInput, "x"),
        (translate_errors, FileNotFoundError(), FileNotFoundError, None),
        (translate_errors, PermissionError(), PermissionError, None),
        (translate_errors, NotImplementedError(), BadInput, "u is read-only; choose another destination"),
        (translate_errors, ValueError("x"), NotPossible, "u: x; run the same command again to resume"),
        (translate_read_errors, PermissionError(), BadInput, "u: permission denied"),
        (translate_read_errors, ValueError("x"), NotPossible, "u: could not be read: x; run"),
    ):
        with pytest.raises(error, match=message), translate("u"):
            raise raised


class Denied:
    """A driver that may not read what it names, if it names anything."""

    protocol = "any"

    def __init__(self, filename: str | None) -> None:
        self.filename = filename

    def info(self, path: str) -> None:
        raise PermissionError(errno.EACCES, "denied", self.filename)


@pytest.mark.parametrize(("filename", "where"), [(None, ""), ("src", ""), ("src/secret", r" \(at src/secret\)")])
def test_a_source_that_may_not_be_read_names_what_is_in_the_way(
    filename: str | None, where: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(discovery, "filesystem", lambda url: (Denied(filename), "src"))
    with pytest.raises(BadInput, match=rf"^src: permission denied{where}; check its permissions"):
        discovery.find("src")


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        (".gz", gzip.compress),
        (".GZ", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".lzma", lambda data: lzma.compress(data, lzma.FORMAT_ALONE)),
    ],
)
def test_compressed_lines_are_unpacked_by_their_ending(tmp_path: Path, ending: str, pack: Any):
    (tmp_path / f"train.txt{ending}").write_bytes(pack(b"a\nb\n"))
    split(f"{tmp_path}/train.txt{ending}", f"{tmp_path}/out", 1)
    assert (tmp_path / "out/0/data/train.txt").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize(
    ("endings", "message"),
    [
        (".zst .lz4 .br .lzo .sz .snappy .Z .gz", "files cannot be unpacked here; unpack it first, or use --by files"),
        (
            ".zip .7z .rar .tar .tgz .tbz2 .txz .tar.gz .tar.bz2 .tar.xz .tar.zst .ZIP",
            "is an archive, which has no lines; unpack it first",
        ),
    ],
    ids=["no library", "archives"],
)
def test_what_cannot_be_unpacked_is_refused(
    tmp_path: Path, endings: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fsspec.compression.compr", {})
    for ending in endings.split():
        (tmp_path / f"train{ending}").touch()
        with pytest.raises(BadInput, match=message):
            split(f"{tmp_path}/train{ending}", f"{tmp_path}/out", 1)
