"""`pdj web` as a user starts it, and a page of it in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from paddlejob.web.sessions import running_servers
from tests.support.pdj import Pdj

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000
"""Milliseconds; a test waits for what it expects and never for a fixed time."""


@dataclass
class Server:
    url: str
    """As printed, with a token that works once."""
    process: subprocess.Popen[str]
    state: Path

    @property
    def address(self) -> str:
        return self.url.partition("#")[0]

    def link(self) -> str:
        """A URL that was not used yet."""
        (running,) = (one for one in running_servers(self.state / "web") if one.url == self.address)
        return running.new_link()

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port
        return port

    def request(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """An answer to a request of a program; None leaves a header out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = None if body is None else json.dumps(body).encode()
        defaults = {"Host": f"127.0.0.1:{self.port}"} | ({"Content-Type": "application/json"} if content else {})
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (defaults | given).items():
                if value is not None:
                    connection.putheader(name, value)
            if content:
                connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    @cached_property
    def session(self) -> str:
        """The header of requests that are allowed."""
        status, _, body = self.request("POST", "/api/session", {"token": token_of(self.link())})
        assert status == 200, status
        return f"Bearer {json.loads(body)['secret']}"

    def get(self, path: str) -> Any:
        status, _, body = self.request("GET", path, Authorization=self.session)
        assert status == 200, (status, body)
        return json.loads(body)


def token_of(url: str) -> str:
    return url.partition("#token=")[2]


@contextmanager
def serving(pdj: Pdj, *options: str) -> Iterator[Server]:
    """A server on a free port; in the end it gets Ctrl-C and must leave nothing."""
    process = pdj.start("web", "--no-browser", "--port", "0", *options)
    assert process.stdout
    lines: list[str] = []
    while not (found := re.search(r"http://\S+", lines[-1] if lines else "")):
        line = process.stdout.readline()
        assert line, "".join(lines)
        lines.append(line)
    try:
        yield Server(found[0], process, pdj.state)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
        assert "Traceback" not in output, output


@contextmanager
def page_of(browser: Browser, server: Server, **options: Any) -> Iterator[Page]:
    """The page behind the URL that the server printed; errors in its scripts and requests to other hosts fail."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-US"} | options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
    page.on("request", lambda request: problems.append(request.url) if _is_foreign(request.url, server) else None)
    page.goto(server.link())
    try:
        yield page
    finally:
        context.close()
    assert problems == []


def _is_problem(message: Any) -> bool:
    return message.type == "error" and "Failed to load resource" not in message.text


def _is_foreign(url: str, server: Server) -> bool:
    return urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != f"127.0.0.1:{server.port}"


def keep(page: Page, name: str, folder: Path) -> None:
    """A screenshot for people to look at, in $PDJ_SCREENSHOTS or among the files of the test."""
    target = Path(os.environ.get("PDJ_SCREENSHOTS") or folder) / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(target), full_page=True)
