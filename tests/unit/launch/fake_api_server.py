"""A fake API server with scripted responses, for what can go wrong on the wire."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from paddlejob.launch.api_discovery import ApiDiscovery
from paddlejob.launch.pods_api import ApiServer
from paddlejob.launch.settings import read_settings
from tests.unit.launch.documents import ENVIRON

BREAKS_OFF: tuple[int, list[Any]] = (0, [])
"""The connection closes before a response."""


class Plain(ApiServer):
    """The same without TLS; tests/launch uses the real API server."""

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=30)


class Script:
    """The responses in order; the last one is repeated."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, list[Any]]] = []
        self.asked: list[dict[str, str]] = []

    def always(self, *pods: dict[str, Any]) -> None:
        """These pods, which never change."""
        self.answers = [listing(*pods), events()] * 1000

    def next(self) -> tuple[int, list[Any]]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(script: Script, directory: Path) -> Iterator[Plain]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            script.asked.append({**query, "path": url.path, "token": self.headers["Authorization"]})
            status, documents = script.next()
            if (status, documents) == BREAKS_OFF:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for document in documents:
                # Two chunks for each line: a watch may cut a line anywhere.
                text = json.dumps(document).encode() + b"\n"
                for piece in (text[:7], text[7:]):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    (directory / "token").write_text("secret\n")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Plain("127.0.0.1", httpd.server_address[1], directory / "token", directory / "ca.crt")
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def pod(name: str, address: str = "", phase: str = "Running", owner: str = "job-1", **metadata: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "ownerReferences": [{"uid": owner, "controller": True}], **metadata},
        "status": {"podIP": address, "phase": phase} if address else {"phase": "Pending"},
    }


def waiting(name: str, **status: Any) -> dict[str, Any]:
    return {**pod(name), "status": {"phase": "Pending", **status}}


def listing(*pods: dict[str, Any]) -> tuple[int, list[Any]]:
    return 200, [{"metadata": {"resourceVersion": "7"}, "items": list(pods)}]


def events(*found: tuple[str, dict[str, Any]]) -> tuple[int, list[Any]]:
    return 200, [{"type": kind, "object": document} for kind, document in found]


def rejection(status: int, message: str) -> tuple[int, list[Any]]:
    return status, [{"kind": "Status", "message": message}]


def api_discovery(server: Plain) -> ApiDiscovery:
    environ = {**ENVIRON, "POD_IP": "10.0.0.9", "HOSTNAME": "a"}
    return ApiDiscovery(server, environ, read_settings(environ, []))


def discover(discovery: Any, seconds: float = 30) -> Any:
    return discovery.discover(time.monotonic() + seconds)


READY = listing(pod("a", "10.0.0.9"), pod("b", "10.0.0.10"), pod("c", "10.0.0.8"))
