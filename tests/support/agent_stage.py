"""An agent as in a pod, with its files, and an operator that is scripted by the test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from paddlejob.agent import agent
from tests.support.waiting import wait_for
from tests.unit.kube.certificates import new_authority

AGENT = Path(agent.__file__)
WAITS = "POLL_SECONDS, PATIENCE = 25.0, 10.0"
HOLD_SECONDS = 2.0
"""Tests need not wait as long as pods do."""
Report = dict[str, Any]


class Operator:
    """Answers as the operator does: with the order, once it differs from what is reported."""

    def __init__(self, directory: Path) -> None:
        self.reports: list[Report] = []
        self.tokens: list[str] = []
        self.order: Report | None = None
        self.status = 200
        """Of every answer."""
        self.rejected = 0
        self.insists: Report | None = None
        """An answer to every request, whether it fits or not."""
        self._changed = threading.Condition()
        self.connections: list[socket.socket] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*new_authority(directory).issue("operator"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def say(self, **order: Any) -> None:
        with self._changed:
            self.order = order
            self._changed.notify_all()

    def heard(self, **expected: Any) -> Report:
        """The newest report, once it has these values."""
        wait_for(lambda: bool(self.reports) and expected.items() <= self.reports[-1].items(), 20)
        return self.reports[-1]

    def stack_with(self, text: str) -> list[Report]:
        """The processes of the program, once the stack of one has this text: it takes its time to come that far."""
        for number in range(20):
            self.say(order="stacks", id=f"look-{number}")
            wait_for(lambda: self._shown().get("id") == f"look-{number}", 10)  # noqa: B023
            if any(text in process["stack"] for process in self._shown()["processes"]):
                break
        return list(self._shown()["processes"])

    def _shown(self) -> Report:
        return next((one["stacks"] for one in reversed(self.reports) if "stacks" in one), {})

    def close(self) -> None:
        """The operator is gone, and with it the connections."""
        self._server.shutdown()
        self._server.server_close()
        for opened in self.connections:
            with suppress(OSError):
                socket.socket.shutdown(opened, socket.SHUT_RDWR)

    def respond(self, report: Report, token: str) -> Report:
        with self._changed:
            if self.insists is not None:
                self.reports.append(report)
                return self.insists
            told = (report["attempt"], report["state"])
            known = told in [(one["attempt"], one["state"]) for one in self.reports]
            self.reports.append(report)
            self.tokens.append(token)
            self._changed.notify_all()
            if report["state"] != "running" and not known and not self._differs(report):
                return {"order": "none"}
            superseded = len(self.reports)
            self._changed.wait_for(lambda: self._differs(report) or len(self.reports) > superseded, HOLD_SECONDS)
            return self.order if self.order and self._differs(report) else {"order": "none"}

    def _differs(self, report: Report) -> bool:
        order = self.order or {"order": "none"}
        running, newer = report["state"] == "running", order.get("attempt", 0) > report["attempt"]
        match order["order"]:
            case "stop":
                return running and newer
            case "start":
                return newer and not running
            case "stacks":
                return report.get("stacks", {}).get("id") != order["id"]
            case kind:
                return kind == "release" and not running

    def _handler(operator) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                operator.connections.append(self.request)
                super().setup()

            def do_POST(self) -> None:
                assert self.path == "/v1/agent"
                report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = {} if operator.status != 200 else operator.respond(report, self.headers["Authorization"])
                content = json.dumps(answer).encode()
                operator.rejected += operator.status != 200
                with suppress(OSError):
                    self.send_response(operator.status)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


class Pod:
    """The directory that is mounted into a pod, and agents that are started in it."""

    def __init__(self, directory: Path, python: str = sys.executable) -> None:
        self.directory = directory
        self.python = python
        self.operator: Operator | None = None
        directory.mkdir(parents=True, exist_ok=True)
        text = AGENT.read_text()
        assert WAITS in text
        (directory / "agent.py").write_text(text.replace(WAITS, f"POLL_SECONDS, PATIENCE = {HOLD_SECONDS}, 2.0"))
        shutil.copytree(AGENT.parent / "hook", directory / "hook", dirs_exist_ok=True)
        (directory / "token").write_text("secret-1\n")
        self._started: list[subprocess.Popen[bytes]] = []

    def connect(self) -> Operator:
        self.operator = Operator(self.directory)
        return self.operator

    def argv(self, *command: str) -> list[str]:
        return [self.python, "-IS", str(self.directory / "agent.py"), "--", *command]

    def run(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        variables = {**os.environ, **options.pop("env", {})}
        if self.operator:
            variables["PADDLEJOB_AGENT_URL"] = f"https://127.0.0.1:{self.operator.port}"
        variables.setdefault("PADDLEJOB_AGENT_ATTEMPT", "1")
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self._started.append(subprocess.Popen(self.argv(*command), env=variables, **options))
        return self._started[-1]

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                # It ends what it has started.
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5)
            process.kill()
            process.communicate()
        if self.operator:
            self.operator.close()


@contextmanager
def pod(directory: Path, python: str = sys.executable) -> Iterator[Pod]:
    made = Pod(directory, python)
    try:
        yield made
    finally:
        made.close()
