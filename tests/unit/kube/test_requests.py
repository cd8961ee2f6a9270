"""The requests of the client as they arrive: method, path, query, content type and body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.resource import NAMESPACES, PODS
from tests.support.scripted_cluster import Serve

POD = {"metadata": {"name": "a", "namespace": "ml"}, "spec": {}}
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}
PATH = "/api/v1/namespaces/ml/pods"
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
Send = Callable[[Client], Awaitable[Any]]


@pytest.mark.parametrize(
    ("send", "expected"),
    [
        (lambda c: c.get(PODS, "a", "ml"), ("GET", f"{PATH}/a", {}, "", None)),
        (lambda c: c.create(PODS, POD), ("POST", PATH, {}, JSON, POD)),
        (lambda c: c.create(PODS, POD, dry_run=True), ("POST", PATH, {"dryRun": "All"}, JSON, POD)),
        (
            lambda c: c.apply(PODS, POD, manager="pdj"),
            ("PATCH", f"{PATH}/a", {"fieldManager": "pdj", "force": "false"}, APPLY, POD),
        ),
        (
            lambda c: c.apply(PODS, POD, manager="pdj", force=True, dry_run=True),
            ("PATCH", f"{PATH}/a", {"fieldManager": "pdj", "force": "true", "dryRun": "All"}, APPLY, POD),
        ),
        (lambda c: c.replace(PODS, POD), ("PUT", f"{PATH}/a", {}, JSON, POD)),
        (lambda c: c.replace_status(PODS, POD), ("PUT", f"{PATH}/a/status", {}, JSON, POD)),
        (lambda c: c.patch(PODS, "a", "ml", {"x": None}), ("PATCH", f"{PATH}/a", {}, MERGE, {"x": None})),
        (
            lambda c: c.patch(PODS, "a", "ml", {}, subresource="status"),
            ("PATCH", f"{PATH}/a/status", {}, MERGE, {}),
        ),
        (lambda c: c.delete(PODS, "a", "ml"), ("DELETE", f"{PATH}/a", {}, JSON, OPTIONS)),
        (
            lambda c: c.delete(PODS, "a", "ml", uid="u", grace_seconds=0, propagation="Foreground"),
            (
                *("DELETE", f"{PATH}/a", {}, JSON),
                {
                    **OPTIONS,
                    "preconditions": {"uid": "u"},
                    "gracePeriodSeconds": 0,
                    "propagationPolicy": "Foreground",
                },
            ),
        ),
        (lambda c: c.delete(NAMESPACES, "ml"), ("DELETE", "/api/v1/namespaces/ml", {}, JSON, OPTIONS)),
        (lambda c: c.read("/version"), ("GET", "/version", {}, "", None)),
    ],
)
async def test_a_request(serve: Serve, send: Send, expected: tuple[Any, ...]) -> None:
    seen: list[tuple[Any, ...]] = []

    async def handler(request: web.Request) -> web.Response:
        body = await request.read()
        kind = request.headers.get("Content-Type", "")
        seen.append((request.method, request.path, dict(request.query), kind, orjson.loads(body) if body else None))
        return web.json_response({"metadata": {"name": "answer"}})

    async with Client(await serve(handler)) as client:
        assert await send(client) == {"metadata": {"name": "answer"}}
    assert [(*one[:3], one[3] if one[4] is not None else "", one[4]) for one in seen] == [expected]


async def test_a_list_asks_page_by_page_with_its_selectors(serve: Serve) -> None:
    queries: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        metadata = {"resourceVersion": "7"} | ({"continue": "more"} if len(queries) == 1 else {})
        return web.json_response({"metadata": metadata, "items": [{"page": len(queries)}]})

    async with Client(await serve(handler)) as client:
        found = await client.list(PODS, "ml", label_selector="a=b", field_selector="c=d")
    assert found == [{"page": 1}, {"page": 2}]
    limit = queries[0].pop("limit")
    assert queries == [
        {"labelSelector": "a=b", "fieldSelector": "c=d"},
        {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": limit, "continue": "more"},
    ]


async def test_a_watch_starts_at_its_version_and_ends_by_itself(serve: Serve) -> None:
    queries: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        lines = [{"type": "ADDED", "object": POD}, {"type": "BOOKMARK", "object": {}}]
        return web.Response(body=b"".join(orjson.dumps(line) + b"\n\n" for line in lines))

    opened: list[bool] = []
    async with Client(await serve(handler)) as client:
        stream = client.watch(PODS, "ml", version="9", label_selector="a=b", opened=lambda: opened.append(True))
        events = [event async for event in stream]
    assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
    assert events[0].object == POD
    assert opened == [True]
    (query,) = queries
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "9",
        "timeoutSeconds": "300",
        "labelSelector": "a=b",
    }


@pytest.mark.parametrize("name", ["create", "replace"])
async def test_an_object_without_a_namespace_is_not_sent(name: str) -> None:
    client = Client.__new__(Client)
    with pytest.raises(ValueError, match="namespace"):
        await getattr(client, name)(PODS, {"metadata": {"name": "a"}})
