"""Lines of a log to the last one, what an informer finds by index and asks for, and a plugin whose token expires."""

from __future__ import annotations

import json
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from paddlejob.errors import NoCredentials
from paddlejob.kube.access import client_tls
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.kubeconfig import from_kubeconfig
from paddlejob.kube.resource import PODS, Object
from paddlejob.kube.transport import Request

from .conftest import Serve


@pytest.mark.parametrize(
    ("text", "lines"),
    [("a\nb\n", [b"a", b"b"]), ("a\nb", [b"a", b"b"]), ("", []), ("a\n\nb\n", [b"a", b"", b"b"])],
)
async def test_the_last_line_of_a_log_counts_also_without_its_end(serve: Serve, text: str, lines: list[bytes]) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=text)

    async with Client(await serve(handler)) as client, aclosing(client.lines(PODS, "a", "ml", "log")) as found:
        assert [line async for line in found] == lines


def pod(name: str, node: str, version: int = 5) -> Object:
    metadata = {"namespace": "ml", "name": name, "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"nodeName": node}}


def test_an_informer_finds_objects_by_index_and_reports_every_change() -> None:
    informer = Informer(
        Client.__new__(Client),
        PODS,
        lambda raw: (raw["metadata"]["name"], raw["spec"]["nodeName"]),
        index=lambda value: [value[1]],
    )
    seen: list[Any] = []
    informer.add_event_handler(lambda old, new: seen.append((old, new)))
    for one in (pod("a", "n1"), pod("b", "n1"), pod("c", "n2")):
        informer.record_write(one)
    assert informer.by_index("n1") == [("a", "n1"), ("b", "n1")]
    assert informer.by_index("n3") == []
    informer.record_write(pod("a", "n2", version=6))
    assert informer.by_index("n1") == [("b", "n1")]
    assert seen[-1] == (("a", "n1"), ("a", "n2"))


@pytest.mark.parametrize(
    ("method", "writes", "idempotent"),
    [("GET", False, True), ("DELETE", True, True), ("POST", True, False), ("PATCH", True, False), ("PUT", True, False)],
)
def test_what_may_be_sent_twice_and_what_needs_the_lease(method: str, writes: bool, idempotent: bool) -> None:
    request = Request("verb", PODS, method, "/api/v1/pods")
    assert (request.writes, request.idempotent, str(request)) == (writes, idempotent, "verb /api/v1/pods")


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> str:
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "http://api.example.com", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [context],
    }
    (folder / "config").write_text(json.dumps(document))
    return str(folder / "config")


def plugin(folder: Path, expires_in: float) -> dict[str, Any]:
    """A credential plugin that counts its runs."""
    expiry = (datetime.now(UTC) + timedelta(seconds=expires_in)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"token": "t", "expirationTimestamp": expiry}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\necho x >> {folder}/runs\necho '{json.dumps(answer)}'\n")
    script.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "args": []}}


@pytest.mark.parametrize(
    ("expires_in", "used_for"), [(1000, 940), (200, 150), (-50, 1)], ids=["a minute early", "a quarter early", "past"]
)
async def test_a_token_is_renewed_a_while_before_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expires_in: float, used_for: float
) -> None:
    begun = time.monotonic()
    access = from_kubeconfig(kubeconfig(tmp_path, plugin(tmp_path, expires_in)))
    read = time.monotonic()

    async def runs_after(moment: float) -> int:
        with monkeypatch.context() as patched:
            patched.setattr("paddlejob.kube.access.time.monotonic", lambda: moment)
            await access.authorization()
        return len((tmp_path / "runs").read_text().split())

    before = await runs_after(begun + used_for - 2)
    assert await runs_after(read + used_for + 2) == before + 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_loopback_is_reached_without_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert from_kubeconfig(kubeconfig(tmp_path, {}, server=f"http://{host}:6443")).proxy is None
    assert from_kubeconfig(kubeconfig(tmp_path, {}, server="http://128.0.0.1")).proxy == "http://proxy:3128"


@pytest.mark.parametrize(("proxy", "used"), [("http://a:1", True), ("https://a:1", True), ("socks5://a:1", False)])
def test_only_http_proxies_are_supported(tmp_path: Path, proxy: str, used: bool) -> None:
    path = kubeconfig(tmp_path, {}, **{"proxy-url": proxy})
    if used:
        assert from_kubeconfig(path).proxy == proxy
        return
    with pytest.raises(NoCredentials, match=r"the proxy socks5://a:1 is not supported; use an http or https proxy"):
        from_kubeconfig(path)


def test_a_file_of_certificates_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match=r"No such file.*; check .*/ca\.crt"):
        client_tls(ca_file=str(tmp_path / "ca.crt"))
