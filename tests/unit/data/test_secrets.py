"""Passwords and tokens in URLs do not reach messages, records or file names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.verbs.data import app
from paddlejob.data import split, stage
from paddlejob.data.drivers.urls import redact
from paddlejob.errors import PaddleJobError
from tests.unit.data.web_server import Server, serving

SECRET = "hunter2"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_text("a\nb\nc\n")
    return str(tmp_path / "train.txt")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:hunter2@host/x.csv?sig=hunter2", "https://host/x.csv"),
        ("https://hunter2@host:8443/x?hunter2", "https://host:8443/x"),
        ("https://me:p/hunter2@host/x", "https://host/x"),
        ("sftp://me:p@hunter2@host/x", "sftp://host/x"),
        ("simplecache::https://me:hunter2@host/x?X-Amz-Signature=hunter2", "simplecache::https://host/x"),
        ("zip://a.csv::s3://key:hunter2@bucket/x.zip", "zip://a.csv::s3://bucket/x.zip"),
        (
            "see url='http://host/x?token=hunter2' and /v1/x?op=OPEN&delegation=hunter2",
            "see url='http://host/x' and /v1/x",
        ),
        ("s3://bucket/day-?/x@y.txt", "s3://bucket/day-?/x@y.txt"),
        ("http://host:8080/x@y", "http://host:8080/x@y"),
        ("/data/a?.txt", "/data/a?.txt"),
    ],
)
def test_credentials_are_removed_and_the_rest_is_kept(url: str, shown: str) -> None:
    assert redact(url) == shown


@pytest.mark.parametrize("status", [403, 500])
def test_the_error_of_a_server_does_not_repeat_the_token(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    with pytest.raises(PaddleJobError) as failed:
        split(f"{server.url}/train.txt?token={SECRET}", str(tmp_path / "out"), 1)
    assert SECRET not in str(failed.value) and f"{server.url}/train.txt" in str(failed.value)


@pytest.mark.parametrize(
    "url", [f"nosuch://me:{SECRET}@host/x", f"gs://me:{SECRET}@bucket/x", f"http://me:{SECRET}@127.0.0.1:9/x"]
)
def test_an_unusable_source_or_destination_is_named_without_its_password(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    for source, dest in ((url, str(tmp_path / "out")), (lines, url)):
        with pytest.raises(PaddleJobError) as failed:
            split(source, dest, 1)
        assert SECRET not in str(failed.value) and "://" in str(failed.value)


def test_too_few_files_are_reported_without_the_token(server: Server, tmp_path: Path) -> None:
    with pytest.raises(PaddleJobError, match="too few") as failed:
        split(f"{server.url}/train.txt?token={SECRET}", str(tmp_path / "out"), 2, "files")
    assert SECRET not in str(failed.value)


def test_a_slash_in_a_query_does_not_become_part_of_the_file_name(server: Server, tmp_path: Path) -> None:
    staged = stage(f"{server.url}/train.txt?token=x/{SECRET}", str(tmp_path / "here"))
    assert [file.name for file in staged.files] == ["train.txt"]


def test_the_output_of_the_command_shows_the_destination_without_its_password(lines: str) -> None:
    ran = CliRunner().invoke(app, ["split", lines, f"memory://me:{SECRET}@secrets/out", "--parts", "1"])
    assert ran.exit_code == 0 and SECRET not in ran.output and "memory://secrets/out/0/data" in ran.output


def test_a_new_token_resumes_but_another_query_is_another_source(server: Server, tmp_path: Path) -> None:
    url, out = f"{server.url}/export", str(tmp_path / "out")
    split(f"{url}?day=1&X-Amz-Signature=old&token=old", out, 2)
    assert split(f"{url}?day=1&X-Amz-Signature=new&token=new", out, 2).kept == (0, 1)
    with pytest.raises(PaddleJobError, match="which differs"):
        split(f"{url}?day=2&X-Amz-Signature=new&token=new", out, 2)
    assert "day=" not in (tmp_path / "out/manifest.json").read_text()
