"""An object store: moto's S3 server on this machine, where s3fs and the server's parts are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import fsspec
import pytest

from paddlejob.data import Manifest, split, stage
from paddlejob.errors import BadInput, NotPossible

pytest.importorskip("s3fs")
pytest.importorskip("flask")

LINES = b"".join(b"%d line\n" % number for number in range(400_000))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    # What moto holds belongs to the process, not to the server.
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://{host}:{port}"})
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    fs.mkdir("bucket")
    fs.pipe("bucket/train.txt", LINES)
    yield fs
    fs.clear_instance_cache()
    server.stop()


def test_a_failure_in_the_middle_shows_no_half_object_and_the_next_run_resumes(s3: Any, tmp_path: Path) -> None:
    def fail_in_the_second_part(step: str, done: int, total: int | None) -> None:
        if step == "writing" and total and done > total // 2:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        split("s3://bucket/train.txt", "s3://bucket/out", 3, progress=fail_in_the_second_part)
    s3.invalidate_cache()
    assert [path for path in s3.find("bucket/out") if path.endswith("train.txt")] == ["bucket/out/0/data/train.txt"]

    assert split("s3://bucket/train.txt", "s3://bucket/out", 3).kept == (0,)

    assert b"".join(s3.cat(f"bucket/out/{part}/data/train.txt") for part in range(3)) == LINES
    stage("s3://bucket/out/1/data", str(tmp_path / "here"))
    assert (tmp_path / "here/train.txt").read_bytes() == s3.cat("bucket/out/1/data/train.txt")


def test_a_run_that_fails_leaves_no_upload_behind(s3: Any, tmp_path: Path) -> None:
    def fail(step: str, done: int, total: int | None) -> None:
        if step == "writing" and done:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        split("s3://bucket/train.txt", "s3://bucket/out", 3, progress=fail)
    assert s3.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", []) == []


def test_an_earlier_run_gives_way_to_a_later(s3: Any) -> None:
    later: list[Manifest] = []

    def start_another(step: str, done: int, total: int | None) -> None:
        if step == "writing" and total and done > total // 2 and not later:
            later.append(split("s3://bucket/train.txt", "s3://bucket/out", 3))

    with pytest.raises(NotPossible, match="another pdj process has started writing here"):
        split("s3://bucket/train.txt", "s3://bucket/out", 3, progress=start_another)
    assert b"".join(s3.cat(f"bucket/out/{part}/data/train.txt") for part in range(3)) == LINES
    assert later[0].kept == (0,)


def test_whole_objects_are_dealt_out_and_a_smaller_split_leaves_nothing_of_a_larger(s3: Any) -> None:
    s3.pipe({f"bucket/in/{number}/x": b"%d" % number for number in range(5)} | {"bucket/in/empty": b""})
    split("s3://bucket/in", "s3://bucket/out", 3, "files")
    split("s3://bucket/in/*/x", "s3://bucket/out", 2, "files", overwrite=True)
    s3.invalidate_cache()
    assert [path.removeprefix("bucket/out/") for path in s3.find("bucket/out")] == [
        "0/data/0/x",
        "0/data/1/x",
        "1/data/2/x",
        "1/data/3/x",
        "1/data/4/x",
        "manifest.json",
    ]
    staged = stage("s3://bucket/in", "s3://bucket/copy")
    assert [file.name for file in staged.files] == ["0/x", "1/x", "2/x", "3/x", "4/x", "empty"]
    assert stage("s3://bucket/in", "s3://bucket/copy").kept == tuple(file.name for file in staged.files)


def test_no_bucket_is_made_and_none_is_an_error(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        split("s3://nowhere/train.txt", str(tmp_path / "out"), 3)
    with pytest.raises(NotPossible, match=r"s3://nowhere/out: .*bucket does not exist"):
        split("s3://bucket/train.txt", "s3://nowhere/out", 3)
    assert s3.ls("") == ["bucket"]


def test_missing_credentials_are_reported(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    s3.clear_instance_cache()
    with pytest.raises(NotPossible, match="Unable to locate credentials"):
        split("s3://bucket/train.txt", str(tmp_path / "out"), 3)
    assert not (tmp_path / "out").exists()
