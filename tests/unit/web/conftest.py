"""A server of pages with one target: jobs in a directory of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.web.access import AccessControl
from paddlejob.web.app import WebApp
from paddlejob.web.job_list import JobList
from tests.support.serving import api, serve, server, target
from tests.support.web_jobs import WebClient, log_in

__all__ = ["api", "serve", "server", "target"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobStore:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    return JobStore()


@pytest.fixture
def web_app(store: JobStore) -> WebApp:
    return WebApp([JobList(LocalTarget(store))], AccessControl("127.0.0.1"))


@pytest.fixture
async def stranger(web_app: WebApp) -> AsyncIterator[WebClient]:
    """Without a session."""
    async with TestClient(TestServer(web_app.build())) as made:
        yield made


@pytest.fixture
async def client(stranger: WebClient, web_app: WebApp) -> WebClient:
    """With the session of a page."""
    stranger.session.headers["Authorization"] = await log_in(stranger, web_app.access.sessions.new_token())
    return stranger
