"""HDFS over WebHDFS, against a name node and a data node that speak its protocol: real Hadoop is in test_hdfs.py."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from paddlejob.data.drivers.resolve import CONNECT_TIMEOUT, READ_TIMEOUT, filesystem
from paddlejob.data.drivers.webhdfs import CheckedWebHDFS

CONTENT = bytes(range(256)) * 4


class Node(BaseHTTPRequestHandler):
    """Answers as a name node, and on paths that start with /data as the data node that it redirects to."""

    server: Hdfs

    def _respond(self) -> None:
        url = urlsplit(self.path)
        query = {key.lower(): values[0] for key, values in parse_qs(url.query).items()}
        self.server.asked.append((self.command, url.path, query))
        if url.path.startswith("/data"):
            begin = int(query["offset"])
            self._send(self.server.data_code, CONTENT[begin : begin + int(query["length"])][self.server.lost :])
        elif query["op"] == "OPEN" and self.server.redirects:
            self._send(307, b"", f"http://{self.server.data_node}/data?{url.query}")
        elif query["op"] == "OPEN":
            begin = int(query["offset"])
            self._send(200, CONTENT[begin : begin + int(query["length"])])
        elif query["op"] == "GETFILESTATUS":
            status = {"length": len(CONTENT), "type": "FILE", "pathSuffix": ""}
            self._send(200, json.dumps({"FileStatus": status}).encode())
        else:
            self._send(self.server.code, self.server.answer)

    do_GET = do_PUT = _respond

    def _send(self, code: int, body: bytes, location: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Hdfs(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Node)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.redirects, self.lost, self.data_code = True, 0, 200
        self.code, self.answer = 200, b'{"boolean": true}'
        self.data_node = f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"webhdfs://127.0.0.1:{self.server_port}/train.txt"


@pytest.fixture
def hdfs() -> Iterator[Hdfs]:
    server = Hdfs()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    CheckedWebHDFS.clear_instance_cache()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("redirects", [True, False])
def test_a_file_is_read_in_ranges_from_its_data_node(hdfs: Hdfs, redirects: bool) -> None:
    hdfs.redirects = redirects
    fs, path = filesystem(hdfs.url)
    assert path == "/train.txt"
    with fs.open(path, "rb", cache_type="none") as file:
        for begin, end in ((-5, 10), (1000, 9999), (7, 7), (7, 8), (len(CONTENT), 9999)):
            assert file.cache.fetcher(begin, end) == CONTENT[max(begin, 0) : end]
    with fs.open(path, "rb", block_size=100) as file:
        assert file.read() == CONTENT
    assert any(path == "/data" for _, path, _ in hdfs.asked) is redirects


def test_a_range_that_comes_short_is_an_error(hdfs: Hdfs) -> None:
    hdfs.lost = 1
    fs, path = filesystem(hdfs.url)
    with (
        fs.open(path, "rb", cache_type="none") as file,
        pytest.raises(OSError, match=r"/train.txt: received 9 bytes instead of 10"),
    ):
        file.read(10)


def test_a_data_node_that_answers_with_an_error_is_no_content(hdfs: Hdfs) -> None:
    hdfs.data_code = 500
    fs, path = filesystem(hdfs.url)
    with fs.open(path, "rb") as file, pytest.raises(OSError, match="500"):
        file.read(10)


def test_a_file_is_renamed_over_another_in_one_step(hdfs: Hdfs) -> None:
    fs, _ = filesystem(hdfs.url)
    fs.mv("/draft", "/final")
    method, path, query = hdfs.asked[-1]
    assert (method, path) == ("PUT", "/webhdfs/v1/draft")
    assert (query["op"], query["destination"], query["renameoptions"]) == ("RENAME", "/final", "OVERWRITE")


@pytest.mark.parametrize(
    ("exception", "message"),
    [("SafeModeException", "Name node is in safe mode"), ("IllegalArgumentException", "Invalid value")],
)
def test_what_the_name_node_rejects_is_reported_in_its_own_words(hdfs: Hdfs, exception: str, message: str) -> None:
    fs, _ = filesystem(hdfs.url)
    hdfs.code = 403 if exception == "SafeModeException" else 400
    remote = {"message": message, "exception": exception, "javaClassName": ""}
    hdfs.answer = json.dumps({"RemoteException": remote}).encode()
    with pytest.raises(OSError, match=message):
        fs.mv("/draft", "/final")


def test_a_name_node_that_does_not_respond_is_named(hdfs: Hdfs) -> None:
    fs, _ = filesystem(hdfs.url)
    hdfs.shutdown()
    hdfs.server_close()
    with pytest.raises(OSError, match=rf"^name node 127.0.0.1:{hdfs.server_port} does not respond$"):
        fs.mv("/draft", "/final")


def test_a_data_node_that_cannot_be_reached_is_told_from_the_name_node(hdfs: Hdfs) -> None:
    hdfs.data_node = "127.0.0.1:9"
    fs, path = filesystem(hdfs.url)
    with fs.open(path, "rb") as file, pytest.raises(OSError, match=r"^data node 127.0.0.1:9, to which the name node"):
        file.read(10)


def test_blocks_are_large_for_writing_and_those_of_the_driver_for_reading(hdfs: Hdfs) -> None:
    fs, path = filesystem(hdfs.url)
    assert fs.open(path, "rb").blocksize == fs.blocksize
    assert fs.open(path, "rb", block_size=5, cache_options={}).blocksize == 5
    written = fs.open(path, "wb", autocommit=False)
    assert written.blocksize == 32 << 20
    written.closed = True  # nothing was written, and the node has no block for it


def test_requests_have_timeouts_and_a_timeout_names_the_node(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    from requests import Session, Timeout

    given: list[Any] = []

    def late(self: Session, method: str, url: str, timeout: Any = None, **_: Any) -> Any:
        given.append(timeout)
        raise Timeout

    monkeypatch.setattr(Session, "request", late)
    fs, _ = filesystem(hdfs.url)
    with pytest.raises(OSError, match="does not respond"):
        fs.mv("/draft", "/final")
    assert given == [(CONNECT_TIMEOUT, READ_TIMEOUT)]


def test_the_port_of_hadoop_3_is_the_default() -> None:
    fs, path = filesystem("webhdfs://name-node/a/b")
    assert (fs.url, path) == ("http://name-node:9870/webhdfs/v1", "/a/b")
