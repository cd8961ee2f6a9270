"""A web server that can do as much, or as little, as a test wants."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LINES = b"".join(b"line %d\n" % number for number in range(300_000))


@dataclass
class Server:
    """What the server can do, and what it was asked."""

    content: bytes = LINES
    mark: str | None = '"1"'
    ranges: bool = True
    length: bool = True
    breaks: int = 0
    """The number of responses that end in the middle."""
    compresses: bool = False
    """On the way, for clients that allow it."""
    silent: bool = False
    status: int = 200
    asked: list[str | None] = field(default_factory=list)
    """The Range of every GET."""
    on_break: Callable[[], None] = lambda: None
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.may_range(request) else 0
        body = self.content[start:]
        if self.compresses and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
        request.send_response(self.status if self.status != 200 else 206 if start else 200)
        if self.mark:
            request.send_header("ETag", self.mark)
        if self.length:
            request.send_header("Content-Length", str(len(body)))
        else:
            request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        if request.command == "GET" and self.status == 200:
            self.asked.append(wanted)
            self.send(request, body)

    def may_range(self, request: BaseHTTPRequestHandler) -> bool:
        return self.ranges and request.headers.get("If-Range") in (None, self.mark)

    def send(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        # Little is sent ahead, so that a client that only looks at the head is not counted as one that reads.
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        if self.silent:
            time.sleep(1)
        broken = self.breaks > 0
        half = body[: len(body) * 2 // 3] if broken else body
        for at in range(0, len(half), 1 << 16):
            chunk = half[at : at + (1 << 16)]
            request.wfile.write(chunk if self.length else b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if broken:
            self.breaks -= 1
            request.close_connection = True
            self.on_break()
        elif not self.length:
            request.wfile.write(b"0\r\n\r\n")


@contextmanager
def serving() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with suppress(ConnectionError):
                made.answer(self)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield made
    finally:
        http.shutdown()
        http.server_close()
