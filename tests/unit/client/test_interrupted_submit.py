"""Ctrl-C while code is stored: a job whose pods would wait for it forever does not stay behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from paddlejob.client.submit.code import create_config_maps
from paddlejob.client.submit.submission import Submission
from paddlejob.code.archive import pack
from paddlejob.kube.client import Client
from tests.support.builders import document
from tests.unit.kube.conftest import Serve, serve

__all__ = ["serve"]


async def test_the_job_is_deleted(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    storing, asked = asyncio.Event(), []

    async def handle(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path.rpartition('/')[2]}")
        if request.path.endswith("configmaps"):
            storing.set()
            await asyncio.sleep(600)
        job = document("mnist")
        return web.json_response({**job, "metadata": {**job["metadata"], "uid": "u-1"}})

    async with Client(await serve(handle)) as client:
        submission = Submission((document("mnist"),))
        task = asyncio.create_task(create_config_maps(client, submission, pack(str(tmp_path))))
        await storing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asked == ["GET mnist", "POST configmaps", "DELETE mnist"]
