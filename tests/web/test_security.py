"""Who gets in, and what strangers can do: requests of programs, and pages with hostile names, logs and metrics."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.pdj import Pdj, wait
from tests.support.web import PATIENCE, Server, keep, page_of, serving

expect.set_options(timeout=PATIENCE)
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1<\\/script>"
PATHS = (
    "/api/jobs",
    "/api/stream",
    "/api/machine",
    "/api/jobs/local/default/light",
    "/api/jobs/local/default/light/logs",
)


def ended_job(pdj: Pdj, name: str = "light", text: str = "hello") -> None:
    done = pdj("run", pdj.write(name, command=["echo", text]))
    assert done.returncode == 0, done.stderr


def test_without_a_session_nothing_is_shown(quiet_server: Server):
    for path in PATHS:
        status, _, body = quiet_server.request("GET", path)
        assert status == 401, path
        assert b"light" not in body
    assert quiet_server.request("GET", "/")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8700", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1", ""]
)
def test_another_host_is_refused_even_with_a_session(quiet_server: Server, host: str):
    session = quiet_server.session
    for path in ("/", "/api/jobs", "/static/app.js"):
        assert quiet_server.request("GET", path, Host=host, Authorization=session)[0] in (400, 421), path
    assert quiet_server.request("POST", "/api/session", {"token": "x"}, Host=host)[0] in (400, 421)


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "localhost:9000"])
def test_the_machines_own_names_are_accepted_also_through_a_tunnel(quiet_server: Server, host: str):
    given = {"Host": host.format(port=quiet_server.port), "Authorization": quiet_server.session}
    assert quiet_server.request("GET", "/api/jobs", **given)[0] == 200


@pytest.mark.full
def test_a_post_of_another_origin_changes_nothing(pdj: Pdj, server: Server):
    ended_job(pdj)
    session, path = server.session, "/api/jobs/local/default/light/delete"
    own = f"http://127.0.0.1:{server.port}"
    refused = [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": own, "Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
    ]
    for headers in refused:
        assert server.request("POST", path, {}, Authorization=session, **headers)[0] == 403, headers
    assert server.request("POST", path, {}, Authorization=session, Origin=own, Content_Type="text/plain")[0] == 415
    assert server.request("POST", path, {}, Origin=own)[0] == 401
    assert server.request("GET", path, Authorization=session)[0] == 405
    assert pdj.folder_of("light").path.exists()
    assert server.request("POST", path, {}, Authorization=session, Origin=own)[0] == 200
    wait(lambda: not pdj.folder_of("light").path.exists(), lambda: "the job to be deleted")


def test_a_get_of_another_origin_learns_nothing(quiet_server: Server):
    session = quiet_server.session
    status, headers, body = quiet_server.request("GET", "/api/jobs", Authorization=session, Sec_Fetch_Site="cross-site")
    assert status == 403 and b"light" not in body
    assert "access-control-allow-origin" not in headers


@pytest.mark.full
def test_a_read_only_server_changes_nothing(pdj: Pdj, browser: Browser):
    ended_job(pdj)
    with serving(pdj, "--read-only") as server:
        answer = server.request("POST", "/api/jobs/local/default/light/delete", {}, Authorization=server.session)
        assert answer[0] == 403 and b"--read-only" in answer[2]
        with page_of(browser, server) as page:
            page.locator("tr[data-job] a").click()
            expect(page.locator("h1")).to_have_text("light")
            expect(page.locator("[data-action]")).to_have_count(0)
    assert pdj.folder_of("light").path.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/__init__.py",
        "/static/index.html",
        "/api/jobs/local/..%2f..%2f..%2fetc/passwd/logs",
        "/api/jobs/local/default/..%2f..%2f..%2f..%2fsecret/logs/download",
        "/api/jobs/local/default/light/logs/download?replica=..%2f..%2frun.json",
        "/api/jobs/local/default/light/logs/download?replica=worker-0%2f..%2f..&attempt=1",
        "/api/jobs/local/default/light/logs/download?attempt=..%2f1",
        "/api/jobs/local/default/light/logs/search?q=TOKEN&replica=run.json",
        "/api/jobs/cluster/default/light",
        "/api/jobs/local/default/.light",
    ],
)
def test_no_url_leads_out_of_the_logs_of_a_job(quiet_server: Server, path: str):
    status, _, body = quiet_server.request("GET", path, Authorization=quiet_server.session)
    assert status in (400, 404), (status, body)
    assert b"TOP-SECRET" not in body and b"Traceback" not in body


@pytest.mark.full
def test_a_symbolic_link_among_the_logs_is_not_followed(pdj: Pdj, server: Server):
    ended_job(pdj)
    (pdj.folder / "secret").write_text("TOP-SECRET")
    logs = pdj.folder_of("light").path / "logs" / "attempt-1"
    (logs / "light-worker-7.log").symlink_to(pdj.folder / "secret")
    body = server.request("GET", "/api/jobs/local/default/light/logs/download", Authorization=server.session)[2]
    assert b"hello" in body and b"TOP-SECRET" not in body


def test_hostile_names_logs_and_metrics_are_shown_as_text(pdj: Pdj, server: Server, browser: Browser, tmp_path: Path):
    program = f"print({HOSTILE!r}, flush=True)\nprint('step 1/2 loss=0.5 <b>=1', flush=True)\nprint('\\x1b]0;x\\x07ok')"
    (pdj.folder / "train.py").write_text(program)
    pattern = r"step (?P<step>\d+)/\d+ loss=(?P<loss>\S+)"
    done = pdj("run", pdj.write(command=["python", "train.py"], progress={"pattern": pattern}))
    assert done.returncode == 0, done.stderr
    folder = pdj.folder_of("job").path
    status = json.loads((folder / "status.json").read_text())
    status["message"] = status["reason"] = HOSTILE
    status["progress"]["metrics"][HOSTILE] = 1.0
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "events.jsonl").open("a").write(
        json.dumps({"time": HOSTILE, "reason": HOSTILE, "message": f"{HOSTILE}\n{HOSTILE}", "warning": True}) + "\n"
    )
    named = folder.with_name("<img src=x onerror=window.hacked=1>")
    named.mkdir()
    (named / "job.json").write_text("{}")
    with page_of(browser, server) as page:
        expect(page.locator("tr[data-job]")).to_have_count(2)
        expect(page.locator("tbody")).to_contain_text("<img src=x onerror=window.hacked=1>")
        keep(page, "hostile-jobs", tmp_path)
        page.locator('tr[data-job="job"] a').click()
        expect(page.locator("#why")).to_contain_text("<img src=x")
        expect(page.locator(".facts")).to_contain_text("<img src=x")
        expect(page.locator("#events")).to_contain_text("<script>")
        keep(page, "hostile-job", tmp_path)
        page.keyboard.press("l")
        expect(page.locator(".line").first).to_contain_text("<script>")
        page.get_by_label("Search").fill("<img")
        expect(page.locator("mark").first).to_have_text("<img")
        page.goto(f"{server.address}#/job/local/default/%3Cimg%20src=x%20onerror=window.hacked=1%3E")
        expect(page.locator("h1")).to_contain_text("<img")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script").count() == 0


def test_the_page_has_a_policy_that_forbids_inline_scripts_and_other_hosts(quiet_server: Server):
    for path in ("/", "/static/app.js", "/api/jobs", "/nothing"):
        _, headers, _ = quiet_server.request("GET", path, Authorization=quiet_server.session)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


@pytest.mark.full
def test_a_thousand_connections_are_harmless(pdj: Pdj, server: Server):
    ended_job(pdj)
    session = server.session
    request = f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: {session}\r\n\r\n".encode()
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(1000)]
    try:
        for connection in connections[:500]:
            connection.sendall(request)
        answers = [connection.recv(4096) for connection in connections[:500]]
        assert sum(b" 200 " in answer for answer in answers) == 256
        assert sum(b" 503 " in answer for answer in answers) == 500 - 256
        assert server.request("GET", "/api/jobs", Authorization=session)[0] == 200
    finally:
        for connection in connections:
            connection.close()
    wait(lambda: server.request("GET", "/api/machine", Authorization=session)[0] == 200, lambda: "an answer")
    wait(lambda: open_files(server) < 60, lambda: f"connections to be closed: {open_files(server)} are open")


def open_files(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@pytest.mark.full
def test_a_browser_that_goes_away_in_the_middle_of_a_stream_leaves_nothing(pdj: Pdj, server: Server):
    (pdj.folder / "loud.py").write_text("import os\nwhile not os.path.exists('enough'): print('x' * 200, flush=True)")
    assert pdj("run", "--detach", pdj.write(command=["python", "loud.py"])).returncode == 0
    pdj.until("job", phase="Running")
    session = server.session
    before = open_files(server)
    for path in ("/logs/stream", "/stream", "/logs/download"):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        target = f"/api/jobs/local/default/job{path}"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {session}\r\n\r\n".encode())
        assert b"200 OK" in connection.recv(1000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()
    wait(lambda: open_files(server) <= before, lambda: f"{before} open files, but there are {open_files(server)}")
    (pdj.folder / "enough").touch()
    pdj.until("job", phase="Completed")


@pytest.mark.full
def test_ctrl_c_ends_the_server_although_pages_are_open_and_a_large_log_is_being_read(pdj: Pdj, browser: Browser):
    ended_job(pdj)
    pdj.folder_of("light").log(1, "light-worker-0").write_text("step 1/9 loss=0.5 and some more text\n" * 400_000)
    with serving(pdj) as server, page_of(browser, server) as page:
        page.locator("tr[data-job] a").click()
        expect(page.locator('[data-metric="loss"]')).to_be_visible()
        os.kill(server.process.pid, signal.SIGINT)
        started = time.monotonic()
        assert server.process.wait(timeout=30) == 0
        assert time.monotonic() - started < 10
        expect(page.locator("#banner")).to_contain_text("lost")
    assert pdj.processes() == []


def test_a_port_in_use_is_an_error_with_a_remedy(ended: Pdj, quiet_server: Server):
    done = ended("web", "--no-browser", "--port", str(quiet_server.port))
    assert done.returncode != 0
    assert "choose another --port" in done.stderr


@pytest.mark.full
def test_listening_beyond_loopback_warns(pdj: Pdj):
    process = pdj.start("web", "--no-browser", "--port", "0", "--host", "0.0.0.0")
    assert process.stdout
    lines = [process.stdout.readline()]
    while "http://" not in lines[-1] or "ssh" in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    assert any("warning: 0.0.0.0 can be reached from other machines" in line for line in lines)
    found = re.search(r"http://\S+:(\d+)/#token=(\S+)", lines[-1])
    assert found
    server = Server(f"http://127.0.0.1:{found[1]}/", process, pdj.state)
    assert server.request("GET", "/", Host="evil.example")[0] == 421
    own = f"10.1.2.3:{found[1]}"
    assert server.request("POST", "/api/session", {"token": found[2]}, Host=own, Origin=f"http://{own}")[0] == 200
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=30) == 0
