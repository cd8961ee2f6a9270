"""The cache against a server that misbehaves; what a real one can do is told in tests/apiserver."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from paddlejob.kube import cache as cache_module
from paddlejob.kube import transport
from paddlejob.kube.cache import Cache
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS

from .conftest import Serve

LONG = 30.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(cache_module, "ABSENT_PAUSE", 0.02)
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.005)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def pod(name: str, version: int) -> dict[str, Any]:
    metadata = {"namespace": "ml", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata}


class Script:
    """Answers each list and each watch by the next entry of its script; the last list is repeated."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.lists = lists
        self.watches = watches
        self.watched_from: list[str] = []
        self.listed = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            self.listed += 1
            return self._list(self.lists[min(self.listed, len(self.lists)) - 1])
        self.watched_from.append(request.query["resourceVersion"])
        stream = web.StreamResponse()
        await stream.prepare(request)
        for event in self.watches.pop(0) if self.watches else [None]:
            if event is None:
                await asyncio.sleep(60)
            type_, obj = event
            await stream.write(orjson.dumps({"type": type_, "object": obj}) + b"\n")
        return stream

    def _list(self, answer: Any) -> web.Response:
        if isinstance(answer, int):
            return web.json_response({"kind": "Status", "code": answer, "reason": "x"}, status=answer)
        version, items = answer
        return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": items})


@contextlib.asynccontextmanager
async def running(serve: Serve, script: Script) -> AsyncIterator[Cache[str]]:
    async with Client(await serve(script.answer)) as client:
        cache: Cache[str] = Cache(client, PODS, lambda raw: raw["metadata"]["resourceVersion"])
        task = asyncio.create_task(cache.run())
        try:
            yield cache
        finally:
            assert not task.done(), "the cache must run until it is cancelled"
            task.cancel()
            await asyncio.wait([task])


async def test_a_stream_that_ends_is_continued_from_the_last_version_seen(serve: Serve) -> None:
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "8"}})
    script = Script([(5, [pod("a", 3)])], [[("MODIFIED", pod("a", 6)), bookmark], [None]])
    async with running(serve, script) as cache:
        await until(lambda: len(script.watched_from) == 2)
    assert script.watched_from == ["5", "8"]
    assert script.listed == 1
    assert cache.get("ml", "a") == "6"


async def test_an_error_in_the_stream_means_a_new_list_and_what_it_lacks_is_gone(serve: Serve) -> None:
    fault = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    script = Script([(5, [pod("a", 3), pod("b", 4)]), (9, [pod("a", 7)])], [[fault], [None]])
    deleted: list[str | None] = []
    async with running(serve, script) as cache:
        cache.on_change(lambda old, new: deleted.append(old) if new is None else None)
        await until(lambda: script.watched_from == ["5", "9"])
        assert cache.get("ml", "a") == "7"
        assert cache.get("ml", "b") is None
    assert deleted == ["4"]


async def test_another_error_in_the_stream_is_reported_and_means_a_new_list_too(serve: Serve) -> None:
    fault = ("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "oh"})
    script = Script([(5, []), (6, [])], [[fault], [None]])
    async with running(serve, script) as cache:
        await until(lambda: script.watched_from == ["5", "6"])
        await until(lambda: cache.reason == "")


async def test_a_resource_that_is_not_installed_is_absent_until_it_is(serve: Serve) -> None:
    script = Script([404, 404, (5, [pod("a", 3)])], [])
    async with running(serve, script) as cache:
        await cache.synced.wait()
        assert cache.absent
        assert cache.reason == ""
        await until(lambda: cache.get("ml", "a"))
        assert not cache.absent


async def test_a_resource_that_is_removed_takes_its_objects_with_it(serve: Serve) -> None:
    fault = ("ERROR", {"kind": "Status", "code": 500, "reason": "x", "message": "storage is gone"})
    script = Script([(5, [pod("a", 3)]), 404], [[fault]])
    async with running(serve, script) as cache:
        await until(lambda: cache.absent)
        assert len(cache) == 0


async def test_missing_rights_are_reported_in_words_and_tried_again(serve: Serve) -> None:
    script = Script([403, 403, (5, [])], [])
    async with running(serve, script) as cache:
        await until(lambda: "403" in cache.reason)
        assert not cache.synced.is_set()
        assert cache.last_contact == 0.0
        await cache.synced.wait()
        await until(lambda: cache.reason == "" and cache.last_contact > 0)


async def test_a_history_that_went_back_is_believed(serve: Serve) -> None:
    fault = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    script = Script([(900, [pod("a", 800), pod("b", 850)]), (20, [pod("a", 10)])], [[fault]])
    async with running(serve, script) as cache:
        await until(lambda: cache.get("ml", "a") == "10")
        await until(lambda: cache.get("ml", "b") is None)


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop(serve: Serve) -> None:
    script = Script([(5, [])], [[] for _ in range(1000)])
    async with running(serve, script):
        await asyncio.sleep(0.5)
    assert len(script.watched_from) < 20
