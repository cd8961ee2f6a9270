"""The pods API as it is on the wire: lists, watches that end, answers that say no."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from paddlejob.launch.finding import ByApi, ByApiOrName, TrainingIsOver
from paddlejob.launch.pods_api import ApiServer, JobPods
from paddlejob.launch.settings import read_settings
from paddlejob.launch.words import LaunchError
from tests.unit.launch.documents import ENVIRON


class Plain(ApiServer):
    """The same without TLS; the real API server is spoken to in tests/launch."""

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=30)


class Script:
    """What the server answers, one after the other; the last answer again and again."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, list[Any]]] = []
        self.asked: list[dict[str, str]] = []

    def next(self) -> tuple[int, list[Any]]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script, tmp_path: Path) -> Iterator[Plain]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            script.asked.append(query | {"path": url.path, "token": self.headers["Authorization"]})
            status, documents = script.next()
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

    (tmp_path / "token").write_text("secret\n")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield Plain("127.0.0.1", httpd.server_address[1], tmp_path / "token", tmp_path / "ca.crt")
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def pod(name: str, address: str = "", phase: str = "Running", owner: str = "job-1", **metadata: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "ownerReferences": [{"uid": owner, "controller": True}], **metadata},
        "status": {"podIP": address, "phase": phase} if address else {"phase": "Pending"},
    }


def listing(*pods: dict[str, Any]) -> tuple[int, list[Any]]:
    return 200, [{"metadata": {"resourceVersion": "7"}, "items": list(pods)}]


def events(*found: tuple[str, dict[str, Any]]) -> tuple[int, list[Any]]:
    return 200, [{"type": kind, "object": document} for kind, document in found]


def refusal(status: int, message: str) -> tuple[int, list[Any]]:
    return status, [{"kind": "Status", "message": message}]


def by_api(server: Plain) -> ByApi:
    environ = ENVIRON | {"POD_IP": "10.0.0.9", "HOSTNAME": "a"}
    return ByApi(server, environ, read_settings(environ, []))


def look(finder: Any, seconds: float = 30) -> Any:
    return finder.look(time.monotonic() + seconds)


READY = listing(pod("a", "10.0.0.9"), pod("b", "10.0.0.10"), pod("c", "10.0.0.8"))


def test_pods_are_asked_for_by_the_job_name_label_with_the_pods_own_token(server: Plain, script: Script):
    script.answers = [READY]
    assert look(by_api(server)).addresses == ("10.0.0.8", "10.0.0.9", "10.0.0.10")
    assert script.asked == [
        {
            "path": "/api/v1/namespaces/default/pods",
            "labelSelector": "job-name=paddle-cluster-job",
            "token": "Bearer secret",
        }
    ]


def test_a_watch_brings_the_last_pod(server: Plain, script: Script):
    script.answers = [
        listing(pod("a", "10.0.0.9"), pod("b")),
        events(("ADDED", pod("c", "10.0.0.8")), ("MODIFIED", pod("b", "10.0.0.10"))),
    ]
    assert look(by_api(server)).rank == 1
    assert script.asked[1]["watch"] == "1"
    assert script.asked[1]["resourceVersion"] == "7"


def test_a_watch_that_is_too_old_is_followed_by_a_new_list(server: Plain, script: Script):
    script.answers = [
        listing(pod("a", "10.0.0.9")),
        (200, [{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}]),
        READY,
    ]
    assert len(look(by_api(server)).addresses) == 3
    assert len(script.asked) == 3


def test_an_api_server_that_is_busy_is_asked_again(server: Plain, script: Script):
    script.answers = [refusal(503, "starting"), READY]
    assert len(look(by_api(server)).addresses) == 3


def test_pods_that_are_leaving_failed_or_of_an_earlier_job_are_not_in_the_group(server: Plain, script: Script):
    script.answers = [
        listing(
            pod("a", "10.0.0.9"),
            pod("b", "10.0.0.10"),
            pod("c", "10.0.0.8"),
            pod("d", "10.0.0.7", deletionTimestamp="2024-01-01T00:00:00Z"),
            pod("e", "10.0.0.6", phase="Failed"),
            pod("f", "10.0.0.5", owner="job-0"),
        )
    ]
    assert look(by_api(server)).addresses == ("10.0.0.8", "10.0.0.9", "10.0.0.10")


def test_a_pod_that_comes_after_the_others_have_succeeded_has_nothing_to_do(server: Plain, script: Script):
    script.answers = [listing(pod("a", "10.0.0.9"), pod("b", "10.0.0.10", phase="Succeeded"))]
    with pytest.raises(TrainingIsOver):
        look(by_api(server))


def test_waiting_has_an_end_that_says_who_is_missing(server: Plain, script: Script):
    script.answers = [listing(pod("a", "10.0.0.9"), pod("b"))]
    script.answers += [events()]
    script.answers += script.answers * 1000
    with pytest.raises(LaunchError, match=r"waited too long for 3 running pods.*a \(Running\), b \(Pending\)"):
        look(by_api(server), seconds=1)


def test_without_permission_the_error_brings_the_commands_that_give_it(server: Plain, script: Script):
    script.answers = [refusal(403, 'pods is forbidden: User "x" cannot list')]
    environ = ENVIRON | {"POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError) as told:
        look(ByApiOrName(server, environ, read_settings(environ, [])))
    assert "cannot list" in str(told.value)
    assert "create role paddle-job-pods --verb=list,watch --resource=pods" in str(told.value)
    assert "completionMode: Indexed" in str(told.value)


def test_without_permission_an_indexed_job_goes_by_name(server: Plain, script: Script, monkeypatch: pytest.MonkeyPatch):
    script.answers = [refusal(403, "forbidden")]
    names = {f"paddle-cluster-job-{index}.peers": f"10.0.0.{9 - index}" for index in range(3)}
    monkeypatch.setattr("paddlejob.launch.finding._address_of", names.__getitem__)
    environ = ENVIRON | {"POD_IP": "10.0.0.9", "JOB_COMPLETION_INDEX": "0", "JOB_SERVICE": "peers"}
    found = look(ByApiOrName(server, environ, read_settings(environ, [])))
    assert found.addresses == ("10.0.0.9", "10.0.0.8", "10.0.0.7")


def test_a_token_that_is_not_accepted_ends_it(server: Plain, script: Script):
    script.answers = [refusal(401, "Unauthorized")]
    with pytest.raises(LaunchError, match="does not accept this pod's token: Unauthorized"):
        look(by_api(server))


def test_an_api_server_that_is_not_there_is_tried_until_the_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "token").write_text("x")
    pods = JobPods(Plain("127.0.0.1", 1, tmp_path / "token", tmp_path / "ca"), "default", "job")
    assert list(pods.changes(time.monotonic() + 0.1)) == []
    assert capsys.readouterr().out.count("gives no answer") == 1
