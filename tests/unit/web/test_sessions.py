"""How a browser gets in: links that work once, and sessions that end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.state.store import JobStore
from paddlejob.web import sessions as sessions_module
from paddlejob.web.app import WebApp
from paddlejob.web.sessions import MOST_SESSIONS, SESSION_SECONDS, Sessions, announced, running_servers
from tests.support.web_jobs import JOB, WebClient, log_in, refusal, stored

URL = "http://127.0.0.1:8700/"
KILLED = """
import os, sys
from pathlib import Path
from paddlejob.web.sessions import announced
with announced(Path(sys.argv[1]), "http://127.0.0.1:1/"):
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(sessions_module.time, "monotonic", lambda: now[0])
    return now


def works(sessions: Sessions, secret: str) -> bool:
    with sessions.request(secret) as known:
        return known


async def test_a_link_works_once(stranger: WebClient, web_app: WebApp):
    token = web_app.access.sessions.new_token()
    header = {"Authorization": await log_in(stranger, token)}
    assert (await stranger.get("/api/jobs", headers=header)).status == 200
    status, message = await refusal(stranger, "POST", "/api/session", json={"token": token})
    assert (status, "pdj web --url" in message) == (401, True)
    assert (await stranger.get("/api/jobs", headers=header)).status == 200, "who came first stays"


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": "x" * 5000}, {"token": None}, {"token": ["x"]}])
async def test_a_wrong_token_starts_no_session(stranger: WebClient, web_app: WebApp, body: dict[str, Any]):
    web_app.access.sessions.new_token()
    assert (await refusal(stranger, "POST", "/api/session", json=body))[0] == 401


async def test_no_secret_is_in_a_cookie_or_a_url(stranger: WebClient, web_app: WebApp):
    answer = await stranger.post("/api/session", json={"token": web_app.access.sessions.new_token()})
    assert "Set-Cookie" not in answer.headers
    secret = (await answer.json())["secret"]
    for name in ("session", "pdj-session", "pdj-web-8700"):
        assert (await stranger.get("/api/jobs", cookies={name: secret})).status == 401
    assert (await stranger.get("/api/jobs", params={"session": secret, "token": secret})).status == 401


async def test_a_page_of_another_site_cannot_use_a_token(stranger: WebClient, web_app: WebApp):
    token = web_app.access.sessions.new_token()
    for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}):
        assert (await refusal(stranger, "POST", "/api/session", json={"token": token}, headers=headers))[0] == 403
    assert (await refusal(stranger, "POST", "/api/session", data={"token": token}))[0] == 415
    await log_in(stranger, token)


def test_a_session_ends_some_time_after_its_last_request(clock: list[float]):
    sessions = Sessions()
    secret = sessions.start(sessions.new_token())
    assert secret
    for _ in range(3):
        clock[0] += SESSION_SECONDS
        assert works(sessions, secret)
    clock[0] += SESSION_SECONDS + 1
    assert not works(sessions, secret)
    clock[0] -= SESSION_SECONDS
    assert not works(sessions, secret), "for good"


def test_a_session_lasts_as_long_as_a_stream_of_it(clock: list[float]):
    sessions = Sessions()
    secret = sessions.start(sessions.new_token())
    assert secret
    with sessions.request(secret):
        clock[0] += 10 * SESSION_SECONDS
        assert works(sessions, secret)
        clock[0] += 10 * SESSION_SECONDS
    assert works(sessions, secret)


def test_sessions_are_limited_and_the_least_used_one_ends():
    sessions = Sessions()
    started = [sessions.start(sessions.new_token()) or "" for _ in range(MOST_SESSIONS)]
    assert works(sessions, started[0])
    assert sessions.start(sessions.new_token())
    assert works(sessions, started[0]) and not works(sessions, started[1])


def test_another_process_makes_links_that_work_once(tmp_path: Path):
    with announced(tmp_path / "web", URL) as folder:
        sessions = Sessions(folder)
        (server,) = running_servers(tmp_path / "web")
        address, _, token = server.new_link().partition("#token=")
        assert address == URL
        assert sessions.start(token) and not sessions.start(token)
        for name in ("url", "lock", "../other", ""):
            assert not sessions.start(name)
    assert running_servers(tmp_path / "web") == []
    assert list((tmp_path / "web").iterdir()) == []


def test_only_the_user_can_make_links(tmp_path: Path):
    (tmp_path / "web").mkdir(mode=0o777)
    with announced(tmp_path / "web", URL) as folder:
        (server,) = running_servers(tmp_path / "web")
        token = server.new_link().partition("#token=")[2]
        assert {path.stat().st_mode & 0o077 for path in (folder, folder.parent)} == {0}
        assert not [path for path in folder.iterdir() if token in path.name + path.read_text()]


def test_a_server_that_was_killed_is_not_found(tmp_path: Path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "web")], check=False)
    assert len(list((tmp_path / "web").iterdir())) == 1
    assert running_servers(tmp_path / "web") == []
    assert list((tmp_path / "web").iterdir()) == []


async def test_two_servers_share_no_secret(client: WebClient, store: JobStore):
    stored(store)
    other = Sessions()
    secret = other.start(other.new_token())
    assert (await refusal(client, "GET", JOB, headers={"Authorization": f"Bearer {secret}"}))[0] == 401
    assert (await refusal(client, "POST", "/api/session", json={"token": other.new_token()}))[0] == 401
