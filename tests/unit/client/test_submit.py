"""Submitting from Python: which image is used, what is sent to the API server, and what an error says."""

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


class Api(BaseHTTPRequestHandler):
    """Serves PaddleJobs, and takes whatever is sent."""

    sent: list[tuple[str, Any]]

    def do_GET(self) -> None:
        if self.path == f"/apis/{contract.API_VERSION}":
            jobs = {"name": "paddlejobs", "kind": "PaddleJob", "namespaced": True}
            self._answer(200, {"resources": [jobs]})
            return
        if self.path.startswith("/apis/apps/v1/deployments?"):
            self._answer(200, {"metadata": {}, "items": []})
            return
        found = [body for path, body in self.sent if self.path == f"{path}/{body['metadata']['name']}"]
        if found:
            self._answer(200, found[-1])
            return
        self._answer(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})

    def do_PATCH(self) -> None:
        self._store()

    def do_POST(self) -> None:
        self._store()

    def _store(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, _, query = self.path.partition("?")
        if "dryRun" not in query:
            self.sent.append((path, body))
        body.setdefault("metadata", {}).update(uid="u-1", resourceVersion="1")
        self._answer(201, body)

    def _answer(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    requests: list[tuple[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Recording", (Api,), {"sent": requests}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "paddlejob").mkdir()
    (tmp_path / "paddlejob/config.toml").write_text('image = "default:1"\ngpu_image = "gpu:1"\n')
    yield requests
    server.shutdown()
    server.server_close()


def image(body: Any) -> str:
    return str(body["spec"]["worker"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.parametrize(
    ("options", "used"), [({}, "default:1"), ({"gpus": 1}, "gpu:1"), ({"image": "mine:1"}, "mine:1")]
)
def test_a_program_without_an_image_gets_the_default(sent: list[Any], options: dict[str, Any], used: str):
    with pytest.warns(UserWarning, match="no operator is installed in this cluster, so jobs do not start"):
        run = pj.submit(pj.collective("train.py", workers=2, **options))
    ((path, body),) = sent
    assert (image(body), body["spec"]["worker"]["replicas"], body["metadata"]["namespace"]) == (used, 2, "team")
    assert path == f"/apis/{contract.API_VERSION}/namespaces/team/paddlejobs"
    assert repr(run) == "<Run team/train>"


def test_code_is_shipped_in_config_maps_of_the_job(sent: list[Any]):
    with pytest.warns(UserWarning, match="no operator is installed"):
        run = pj.submit(pj.collective("train.py", code="."), namespace="other")
    assert [body["kind"] for _, body in sent] == ["PaddleJob", "ConfigMap"]
    job, part = (body for _, body in sent)
    assert part["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert job["metadata"]["annotations"][contract.ANNOTATION_CODE] == f"{part['metadata']['name'][5:-2]}/1"
    assert repr(run) == "<Run other/train>"


def test_without_a_default_the_error_says_where_to_set_an_image(sent: list[Any], tmp_path: Path):
    (tmp_path / "paddlejob/config.toml").write_text("")
    with pytest.raises(pj.PaddleJobError, match="name an image with PaddlePaddle, or set `gpu_image` in"):
        pj.submit(pj.collective("train.py", gpus=1))
    assert sent == []
