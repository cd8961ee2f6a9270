"""Waiting for a job on a cluster that does not answer for a while: training goes on, so does the wait."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import paddlejob as pj
from paddlejob import contract
from tests.support.builders import document
from tests.support.called_pdj import pdj

OUTAGE = 12
"""Connections that are dropped; a request is given up after five attempts of two connections."""
JOB = f"/apis/{contract.API_VERSION}/namespaces/default/paddlejobs/mnist"


class Api(BaseHTTPRequestHandler):
    """A cluster with one job that runs until the server has not answered for a while."""

    looks: list[str]

    def do_GET(self) -> None:
        if self.path.startswith(JOB):
            self.looks.append(self.path)
        if 1 < len(self.looks) <= 1 + OUTAGE:
            self.close_connection = True
            return
        ended = {"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z", "message": "all workers succeeded"}
        job = {**document("mnist"), "status": {"phase": "Running"} if len(self.looks) < 2 else ended}
        job["metadata"] = {**job["metadata"], "namespace": "default", "uid": "u-1", "generation": 0}
        resources = [{"name": "paddlejobs", "kind": "PaddleJob", "namespaced": True}]
        known = {JOB: job, f"/apis/{contract.API_VERSION}": {"resources": resources}}
        self._answer(known.get(self.path, {"metadata": {}, "items": []}))

    def do_POST(self) -> None:
        self.looks.clear()
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Requests for the job so far."""
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Outage", (Api,), {"looks": seen}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("paddlejob.kube.transport.FIRST_BACKOFF", 0.0)
    yield seen
    server.shutdown()
    server.server_close()


def test_a_handle_warns_once_and_waits_on(looks: list[str]):
    run = pj.attach("mnist", cluster=True)
    looks.clear()
    with pytest.warns(UserWarning, match="trying again") as warned:
        assert run.wait(timeout=60).phase == "Completed"
    assert len([one for one in warned if "trying again" in str(one.message)]) == 1


def test_pdj_watch_says_so_and_watches_on(looks: list[str]):
    done = pdj("watch", "mnist", "--cluster")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("; trying again") == 2, "once as a message, once as the state"
    assert "mnist completed" in done.stdout


def test_pdj_submit_waits_on(looks: list[str], tmp_path: Path):
    (tmp_path / "mnist.py").touch()
    done = pdj("submit", "mnist.py", "--image", "any", "--wait", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "; trying again" in done.stdout
    assert "mnist: Completed: all workers succeeded" in done.stdout
