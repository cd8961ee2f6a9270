"""The informer against a server that misbehaves; tests/apiserver runs it against a real one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web

from paddlejob.kube import informer as informer_module
from paddlejob.kube import transport
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import PODS
from tests.support.scripted_cluster import Serve
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "FIRST_BACKOFF", 0.005)
    monkeypatch.setattr(informer_module, "ABSENT_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.005)


def pod(name: str, version: int) -> dict[str, Any]:
    metadata = {"namespace": "ml", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata}


class Script:
    """Responds to each list and each watch with the next entry of its script; the last list is repeated."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.lists = lists
        self.watches = watches
        self.watched_from: list[str] = []
        self.accepted: list[str] = []
        self.listed = 0

    async def respond(self, request: web.Request) -> web.StreamResponse:
        self.accepted.append(request.headers["Accept"])
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

    def _list(self, entry: Any) -> web.Response:
        if isinstance(entry, int):
            return web.json_response({"kind": "Status", "code": entry, "reason": "x"}, status=entry)
        version, items = entry
        return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": items})


@contextlib.asynccontextmanager
async def running(serve: Serve, script: Script, **options: Any) -> AsyncIterator[Informer[str]]:
    async with Client(await serve(script.respond)) as client:
        informer: Informer[str] = Informer(client, PODS, lambda raw: raw["metadata"]["resourceVersion"], **options)
        task = asyncio.create_task(informer.run())
        try:
            yield informer
        finally:
            assert not task.done(), "the informer must run until it is cancelled"
            task.cancel()
            await asyncio.wait([task])


async def test_an_optional_resource_is_used_in_the_version_that_is_served(serve: Serve) -> None:
    script = Script([404, (5, [pod("a", 3)])], [[None]])
    async with running(serve, script, optional=True, versions=("v1", "v0")) as informer:
        await until(informer.synced.is_set)
        assert (informer.resource.version, informer.absent, len(informer)) == ("v0", False, 1)


async def test_a_resource_that_is_served_in_no_version_is_absent_until_it_is_installed_and_never_an_error(serve: Serve):
    script, seen = Script([404, 404, 404, 404, (5, [pod("a", 3)])], [[None]]), set[str]()

    def installed() -> bool:
        seen.add(informer.last_error)
        return informer.synced.is_set() and not informer.absent

    async with running(serve, script, optional=True, versions=("v1", "v0")) as informer:
        await until(informer.synced.is_set)
        assert informer.absent
        await until(installed)
        assert (script.listed, list(informer), seen) == (5, ["3"], {""})


async def test_an_optional_resource_that_may_not_be_read_keeps_no_operator_from_starting(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script([403, 403, (5, [pod("a", 3)]), 403], [[], [None]])
    async with running(serve, script, optional=True) as informer:
        await until(informer.synced.is_set)
        assert informer.absent
        assert "may not be read" in caplog.text
        await until(lambda: not informer.absent)
        assert len(informer) == 1


async def test_an_optional_resource_stays_as_it_was_when_its_permission_is_lost(serve: Serve) -> None:
    gone = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    script = Script([(5, [pod("a", 3)]), 403], [[gone]])
    async with running(serve, script, optional=True) as informer:
        await until(lambda: script.listed > 2)
        assert (informer.absent, len(informer)) == (False, 1)
        assert informer.last_error


async def test_a_watch_that_ends_is_continued_from_the_last_version_seen(serve: Serve) -> None:
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "8"}})
    script = Script([(5, [pod("a", 3)])], [[("MODIFIED", pod("a", 6)), bookmark], [None]])
    async with running(serve, script) as informer:
        await until(lambda: len(script.watched_from) == 2)
    assert script.watched_from == ["5", "8"]
    assert script.listed == 1
    assert informer.get("ml", "a") == "6"


async def test_an_expired_watch_means_a_new_list_and_objects_that_it_lacks_are_deleted(serve: Serve) -> None:
    error = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    script = Script([(5, [pod("a", 3), pod("b", 4)]), (9, [pod("a", 7)])], [[error], [None]])
    deleted: list[str | None] = []
    async with running(serve, script) as informer:
        informer.add_event_handler(lambda old, new: deleted.append(old) if new is None else None)
        await until(lambda: script.watched_from == ["5", "9"])
        assert informer.get("ml", "a") == "7"
        assert informer.get("ml", "b") is None
    assert deleted == ["4"]


async def test_another_error_in_a_watch_is_reported_and_means_a_new_list_too(serve: Serve) -> None:
    error = ("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "oh"})
    script = Script([(5, []), (6, [])], [[error], [None]])
    async with running(serve, script) as informer:
        await until(lambda: script.watched_from == ["5", "6"])
        await until(lambda: informer.last_error == "")


async def test_an_optional_resource_that_is_removed_takes_its_objects_with_it(serve: Serve) -> None:
    error = ("ERROR", {"kind": "Status", "code": 500, "reason": "x", "message": "storage is gone"})
    script = Script([(5, [pod("a", 3)]), 404], [[error]])
    async with running(serve, script, optional=True) as informer:
        await until(lambda: informer.absent)
        assert len(informer) == 0


@pytest.mark.parametrize("where", ["list", "watch"])
async def test_a_core_resource_that_is_not_found_keeps_its_objects_and_is_an_error(serve: Serve, where: str) -> None:
    """A load balancer without a backend responds with 404, which says nothing about the pods."""
    code = 500 if where == "list" else 404
    error = ("ERROR", {"kind": "Status", "code": code, "reason": "x", "message": "no backend"})
    script = Script([(5, [pod("a", 3)]), *[404] * 5, (9, [pod("a", 7)])], [[error], [None]])
    seen: list[tuple[int, str]] = []
    async with running(serve, script) as informer:
        informer.add_event_handler(lambda old, new: seen.append((len(informer), informer.last_error)))
        await until(lambda: "404" in informer.last_error)
        assert informer.get("ml", "a") == "3"
        assert not informer.absent
        assert informer.failing_since is not None
        await until(lambda: informer.get("ml", "a") == "7")
        await until(lambda: informer.last_error == "" and informer.failing_since is None)
    assert all(count == 1 for count, _ in seen), "the pod was never missing"


async def test_a_core_resource_that_is_not_found_at_first_is_not_synced(serve: Serve) -> None:
    """Without the pods, jobs that run would look as if they had lost them."""
    script = Script([404, 404, (5, [pod("a", 3)])], [])
    async with running(serve, script) as informer:
        await until(lambda: "404" in informer.last_error)
        assert not informer.synced.is_set()
        await informer.synced.wait()
        assert informer.get("ml", "a") == "3"


async def test_a_list_whose_pages_expire_is_read_in_one_page(serve: Serve) -> None:
    """On a busy cluster every list in pages takes longer than etcd keeps its history."""
    asked: list[bool] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await asyncio.sleep(60)
        asked.append("limit" in request.query)
        if "continue" in request.query:
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
        more = {"continue": "token"} if "limit" in request.query else {}
        items = [pod("a", 3)] if more else [pod("a", 3), pod("b", 4)]
        return web.json_response({"metadata": {"resourceVersion": "5", **more}, "items": items})

    async with Client(await serve(respond)) as client:
        informer: Informer[str] = Informer(client, PODS, lambda raw: raw["metadata"]["name"])
        task = asyncio.create_task(informer.run())
        await until(lambda: informer.synced.is_set() or len(asked) > 20)
        task.cancel()
        await asyncio.wait([task])
    assert sorted(informer) == ["a", "b"]
    assert asked == [True, True, False]


async def test_missing_permissions_are_reported_and_retried(serve: Serve) -> None:
    script = Script([403, 403, (5, [])], [])
    async with running(serve, script) as informer:
        await until(lambda: "403" in informer.last_error)
        assert not informer.synced.is_set()
        assert informer.last_contact == 0.0
        await informer.synced.wait()
        await until(lambda: informer.last_error == "" and informer.last_contact > 0)


async def test_resource_versions_that_went_back_are_accepted(serve: Serve) -> None:
    error = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    script = Script([(900, [pod("a", 800), pod("b", 850)]), (20, [pod("a", 10)])], [[error]])
    async with running(serve, script) as informer:
        await until(lambda: informer.get("ml", "a") == "10")
        await until(lambda: informer.get("ml", "b") is None)


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop(serve: Serve) -> None:
    script = Script([(5, [])], [[] for _ in range(1000)])
    async with running(serve, script):
        await asyncio.sleep(0.5)
    assert len(script.watched_from) < 20


async def test_objects_that_are_ignored_are_not_stored_and_one_that_comes_to_be_is_removed(serve: Serve) -> None:
    theirs, became_theirs = pod("theirs", 2), pod("a", 6)
    for one in (theirs, became_theirs):
        one["metadata"]["labels"] = {"theirs": "yes"}
    later = [("MODIFIED", became_theirs), ("ADDED", pod("b", 7)), ("DELETED", {**theirs}), None]
    script = Script([(5, [theirs, pod("a", 3)])], [later])
    async with running(serve, script, ignore=lambda obj: "labels" in obj["metadata"]) as informer:
        await until(lambda: informer.get("ml", "b"))
        assert list(informer) == ["7"]


@pytest.mark.parametrize(("metadata_only", "accepted"), [(False, ""), (True, ";as=PartialObjectMetadata")])
async def test_only_an_informer_of_metadata_asks_for_no_more(serve: Serve, metadata_only: bool, accepted: str) -> None:
    script = Script([(5, [pod("a", 3)])], [[None]])
    async with running(serve, script, metadata_only=metadata_only):
        await until(lambda: script.watched_from)
    suffix = ";g=meta.k8s.io;v=v1" if accepted else ""
    assert script.accepted == [
        f"application/json{accepted}{'List' if accepted else ''}{suffix}",
        f"application/json{accepted}{suffix}",
    ]


async def test_a_resource_that_is_absent_counts_as_contact_and_is_asked_for_now_and_then(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(informer_module, "ABSENT_RETRY_SECONDS", 3600.0)
    script = Script([500, 404], [])
    began = time.monotonic()
    async with running(serve, script, optional=True) as informer:
        await until(lambda: informer.absent)
        await asyncio.sleep(0.1)
        assert script.listed == 2, "and not again for an hour"
        assert (informer.last_error, informer.failing_since) == ("", None)
        assert informer.last_contact >= began


async def test_since_when_a_list_fails_is_known_until_it_succeeds(serve: Serve):
    script = Script([500, 500, (5, [pod("a", 3)])], [])
    async with running(serve, script) as informer:
        await until(lambda: informer.last_error)
        first = informer.failing_since
        assert first is not None
        await until(lambda: script.listed == 2)
        assert informer.failing_since in (first, None), "since the first failure"
        await until(lambda: informer.get("ml", "a"))
        await until(lambda: informer.failing_since is None)


async def test_an_overloaded_server_does_not_have_to_list_everything_again(serve: Serve):
    """Overload ends a watch; the version is still good."""
    busy = ("ERROR", {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "busy"})
    script = Script([(5, [])], [[busy], [None]])
    async with running(serve, script):
        await until(lambda: len(script.watched_from) == 2)
    assert script.watched_from == ["5", "5"]
    assert script.listed == 1


def test_our_own_writes_and_deletions_are_seen_before_the_watch_reports_them():
    informer = Informer(
        Client.__new__(Client), PODS, lambda raw: raw["metadata"]["uid"], index=lambda value: [value[:5]]
    )
    seen: list[tuple[str | None, str | None]] = []
    informer.add_event_handler(lambda old, new: seen.append((old, new)))
    informer.record_write(pod("a", 5))
    assert (informer.get("ml", "a"), len(informer), list(informer)) == ("uid-a", 1, ["uid-a"])
    assert (informer.by_index("uid-a"), informer.by_index("uid-b")) == (["uid-a"], [])
    informer.record_delete("ml", "a", "another uid")
    assert informer.get("ml", "a") == "uid-a"
    informer.record_delete("ml", "a", "uid-a")
    informer.record_write(pod("a", 5))
    assert informer.get("ml", "a") is None
    assert seen == [(None, "uid-a"), ("uid-a", None)]
