"""Pages of the web, from real servers: with and without ranges and lengths, and some that break off in the middle."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.data import By, split, stage
from paddlejob.data.drivers import resolve, web
from paddlejob.errors import BadInput, NotPossible
from tests.unit.data.web_server import LINES, Server, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(web, "sleep", lambda seconds: None)
    with serving() as made:
        yield made


def joined(dest: Path, parts: int) -> bytes:
    return b"".join((dest / f"{part}/data/train.txt").read_bytes() for part in range(parts))


@pytest.mark.parametrize("length", [True, False], ids=["length", "no length"])
@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
def test_a_server_that_breaks_off_is_asked_again_and_nothing_is_lost(
    server: Server, tmp_path: Path, ranges: bool, length: bool
) -> None:
    server.ranges, server.length, server.breaks = ranges, length, 2
    made = split(f"{server.url}/train.txt", str(tmp_path / "out"), 3)
    assert joined(tmp_path / "out", 3) == LINES and made.records == 300_000
    fetched = [asked for asked in server.asked if asked]
    assert len(fetched) == 2, "each time from where it broke, as far as the server can"


@pytest.mark.parametrize("length", [True, False], ids=["length", "no length"])
def test_a_server_that_always_breaks_off_is_an_error_and_no_part_is_seen(
    server: Server, tmp_path: Path, length: bool
) -> None:
    server.ranges, server.length, server.breaks = False, length, 100
    with pytest.raises(NotPossible, match=rf"{server.url}/train.txt: .*run the same command again") as failed:
        split(f"{server.url}/train.txt?token=secret", str(tmp_path / "out"), 3)
    assert "secret" not in str(failed.value)
    assert list((tmp_path / "out").glob("[0-9]*")) == []
    with pytest.raises(NotPossible):
        stage(f"{server.url}/train.txt", str(tmp_path / "staged"))
    assert not (tmp_path / "staged/train.txt").exists()

    server.breaks = 0
    split(f"{server.url}/train.txt?token=another", str(tmp_path / "out"), 3)
    assert joined(tmp_path / "out", 3) == LINES
    stage(f"{server.url}/train.txt", str(tmp_path / "staged"))
    assert (tmp_path / "staged/train.txt").read_bytes() == LINES


def test_without_a_mark_nothing_is_put_together_from_two_answers(server: Server, tmp_path: Path) -> None:
    server.mark, server.breaks = None, 1
    with pytest.raises(NotPossible, match="could not be read"):
        split(f"{server.url}/train.txt", str(tmp_path / "out"), 3, "bytes")
    assert list((tmp_path / "out").glob("[0-9]*")) == []


@pytest.mark.parametrize("length", [True, False], ids=["length", "no length"])
def test_a_page_that_changes_between_two_answers_is_noticed(server: Server, tmp_path: Path, length: bool) -> None:
    def change() -> None:
        server.mark, server.content = '"2"', LINES.replace(b"line", b"LINE")

    server.length, server.breaks, server.on_break = length, 1, change
    with pytest.raises(NotPossible, match="changed while it was read"):
        split(f"{server.url}/train.txt", str(tmp_path / "out"), 3)
    assert list((tmp_path / "out").glob("[0-9]*")) == []


def test_half_a_compressed_page_is_never_mistaken_for_all_of_it(server: Server, tmp_path: Path) -> None:
    server.content, server.ranges, server.breaks = gzip.compress(LINES), False, 100
    with pytest.raises(NotPossible):
        split(f"{server.url}/train.txt.gz", str(tmp_path / "out"), 2)
    assert list((tmp_path / "out").glob("[0-9]*")) == []


@pytest.mark.parametrize("by", ["lines", "files"])
def test_a_server_that_tells_no_length_is_read_to_the_end(server: Server, tmp_path: Path, by: By) -> None:
    server.length = server.ranges = False
    made = split(f"{server.url}/train.txt", str(tmp_path / "out"), 1, by)
    assert joined(tmp_path / "out", 1) == LINES and made.bytes == len(LINES)


def test_a_server_that_would_compress_what_it_sends_is_asked_not_to(server: Server, tmp_path: Path) -> None:
    server.compresses = True
    stage(f"{server.url}/train.txt", str(tmp_path / "out"))
    assert (tmp_path / "out/train.txt").read_bytes() == LINES


def test_a_server_that_falls_silent_is_not_waited_for_without_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "READ_TIMEOUT", 0.1)
    server.silent = True
    with pytest.raises(NotPossible, match="could not be read"):
        stage(f"{server.url}/train.txt", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (404, BadInput, "no such file"),
        (403, NotPossible, "request failed: 403"),
        (500, NotPossible, "request failed: 500"),
    ],
)
def test_the_error_of_the_server_is_reported(
    server: Server, tmp_path: Path, status: int, error: type[Exception], says: str
) -> None:
    server.status = status
    with pytest.raises(error, match=says):
        split(f"{server.url}/train.txt", str(tmp_path / "out"), 1)
    assert not (tmp_path / "out").exists()


def test_a_web_server_is_no_destination(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    with pytest.raises(BadInput, match="web servers are read-only"):
        split(str(tmp_path / "train.txt"), f"{server.url}/out", 2)


def test_a_name_cannot_lead_out_of_the_destination(server: Server, tmp_path: Path) -> None:
    stage(f"{server.url}/%2Ftmp%2Fescaped", str(tmp_path / "here"))
    assert (tmp_path / "here/tmp/escaped").read_bytes() == LINES
    with pytest.raises(BadInput, match="no usable file name"):
        stage(f"{server.url}/%2E%2E%2Fescaped", str(tmp_path / "here"))


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
    for failures, mark in ((4, "mark"), (1, "")):
        with pytest.raises(ConnectionError):
            web.Page(Breaking(failures), "http://x", 1, mark).read(1)
