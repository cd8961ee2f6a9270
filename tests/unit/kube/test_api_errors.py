"""Which exception a response becomes, and what a server serves."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from paddlejob import errors
from paddlejob.kube.api_errors import api_error, is_retriable
from paddlejob.kube.client import Client
from paddlejob.kube.discovery import Discovery
from paddlejob.kube.resource import Resource
from tests.support.scripted_cluster import Serve


def body(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Overloaded),
        (503, "ServiceUnavailable", errors.Overloaded),
        (500, "InternalError", errors.ApiError),
    ],
)
def test_each_code_has_its_exception(code: int, reason: str, kind: type[Exception]) -> None:
    error = api_error(code, body(reason=reason, message="why"), {}, "GET pods")
    assert type(error) is kind
    assert (error.code, error.reason) == (code, reason)
    assert str(error).startswith("GET pods: why")


def test_a_status_in_a_watch_has_a_code_of_its_own() -> None:
    error = api_error(200, body(code=410, reason="Expired", message="old"), {}, "watch")
    assert type(error) is errors.Gone and error.code == 410


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no message"), (b" a proxy \n", "a proxy"), (b'["x"]', '["x"]'), (b'{"kind": "Pod"}', '{"kind": "Pod"}')],
)
def test_a_response_that_is_no_status_is_quoted(content: bytes, message: str) -> None:
    error = api_error(502, content, {}, "GET pods")
    assert (error.code, error.reason) == (502, "Unknown")
    assert f"GET pods: {message}" in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"), [({}, None), ({"Retry-After": "3"}, 3.0), ({"Retry-After": "-1"}, 0.0),
                            ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 1.0)],
)  # fmt: skip
@pytest.mark.parametrize("code", [429, 503, 500])
def test_only_a_server_that_did_nothing_and_says_when_is_asked_again(
    code: int, header: dict[str, str], seconds: float | None
) -> None:
    error = api_error(code, b"", header, "GET pods")
    assert error.retry_after == seconds
    assert is_retriable(error) is (code != 500 and bool(header))


async def test_discovery_reads_each_version_once_and_knows_no_subresources(serve: Serve) -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/apis/old/v1":
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        if request.path == "/api/v1":
            listed = [{"name": "namespaces", "kind": "Namespace", "namespaced": False}]
            return web.json_response({"resources": listed})
        scale = {"name": "deployments/scale", "kind": "Scale", "namespaced": True}
        listed = [{"name": "deployments", "kind": "Deployment", "namespaced": True}, scale]
        return web.json_response({"resources": listed})

    async with Client(await serve(handler)) as client:
        discovery = Discovery(client)
        for _ in range(2):
            assert await discovery.resource("apps/v1", "Deployment") == Resource(
                "apps", "v1", "deployments", True, "Deployment"
            )
            assert await discovery.resource("apps/v1", "Scale") is None
            assert await discovery.resource("v1", "Namespace") == Resource("", "v1", "namespaces", False, "Namespace")
            assert await discovery.resource("old/v1", "Thing") is None
    assert asked == ["/apis/apps/v1", "/api/v1", "/apis/old/v1"]
