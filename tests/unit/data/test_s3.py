"""An object store: moto's S3 server on this machine, where s3fs and the server's parts are installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest

from paddlejob.data import split, stage

pytest.importorskip("s3fs")
pytest.importorskip("flask")

LINES = b"".join(b"%d line\n" % number for number in range(1_500_000))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://{host}:{port}"})
    fs = fsspec.filesystem("s3")
    fs.mkdir("bucket")
    fs.pipe("bucket/train.txt", LINES)
    yield fs
    server.stop()


def test_a_failure_in_the_middle_shows_no_half_object_and_the_next_run_goes_on(s3: Any, tmp_path: Any) -> None:
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
