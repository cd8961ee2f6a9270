"""Credentials: kubeconfig files, credential plugins, service accounts."""

from __future__ import annotations

import base64
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from paddlejob.errors import NoCredentials, Unreachable
from paddlejob.kube import access as access_module
from paddlejob.kube.access import find_access, in_cluster
from paddlejob.kube.client import Client
from paddlejob.kube.kubeconfig import from_kubeconfig
from paddlejob.kube.resource import PODS

from .certificates import Authority, new_authority

WriteConfig = Callable[..., str]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return new_authority(tmp_path)


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def write_config(tmp_path: Path) -> WriteConfig:
    def write(
        name: str = "config",
        *,
        cluster: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
        **context: str,
    ) -> str:
        file = tmp_path / name
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster or {"server": "http://127.0.0.1:8001"}}],
            "users": [{"name": name, "user": user or {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        }
        file.write_text(yaml.safe_dump(config))
        return str(file)

    return write


def plugin(tmp_path: Path, body: str) -> dict[str, Any]:
    """A credential plugin that is a Python program."""
    program = tmp_path / "plugin.py"
    program.write_text(body)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(program)],
            "env": [{"name": "REALM", "value": "test"}],
            "installHint": "Install the plugin from the shop.",
            "interactiveMode": "Never",
        }
    }


COUNTING_PLUGIN = """
import json, os, pathlib
count = pathlib.Path(__file__).with_name("count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {"token": f"%s-{os.environ['REALM']}-{number}"}
%s
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


async def test_a_token_and_a_namespace_are_read(write_config: WriteConfig) -> None:
    access = from_kubeconfig(write_config(user={"token": "secret"}, namespace="ml"))
    assert access.server == "http://127.0.0.1:8001"
    assert access.namespace == "ml"
    assert await access.authorization() == "Bearer secret"


async def test_a_user_without_credentials_sends_no_header(write_config: WriteConfig) -> None:
    assert await from_kubeconfig(write_config()).authorization() == ""


async def test_a_name_and_a_password_are_sent_as_such(write_config: WriteConfig) -> None:
    access = from_kubeconfig(write_config(user={"username": "ada", "password": "x"}))
    assert await access.authorization() == "Basic " + base64.b64encode(b"ada:x").decode()


async def test_of_a_list_of_files_the_first_one_to_set_a_thing_wins(write_config: WriteConfig) -> None:
    first = write_config("first", user={"token": "1"})
    second = write_config("second", user={"token": "2"})
    files = os.pathsep.join([first, "/nowhere/at/all", second])
    assert await from_kubeconfig(files).authorization() == "Bearer 1"
    assert await from_kubeconfig(files, "second").authorization() == "Bearer 2"


async def test_a_token_file_is_read_again_as_it_changes(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.kube.kubeconfig.REREAD_SECONDS", 0.0)
    (tmp_path / "token").write_text("old\n")
    access = from_kubeconfig(write_config(user={"tokenFile": "token"}))
    assert await access.authorization() == "Bearer old"
    (tmp_path / "token").write_text("new\n")
    assert await access.authorization() == "Bearer new"


async def test_after_the_current_context_has_changed_the_token_is_still_that_of_the_server(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.kube.kubeconfig.REREAD_SECONDS", 0.0)
    for name in ("first", "second"):
        (tmp_path / f"token-of-{name}").write_text(name)
    files = [write_config(name, user={"tokenFile": f"token-of-{name}"}) for name in ("first", "second")]
    paths = os.pathsep.join(files)
    access = from_kubeconfig(paths)
    assert (access.context, await access.authorization()) == ("first", "Bearer first")
    file = tmp_path / "first"
    file.write_text(file.read_text().replace("current-context: first", "current-context: second"))
    assert from_kubeconfig(paths).context == "second"
    assert await access.authorization() == "Bearer first"


async def test_a_plugin_runs_once_and_again_when_its_token_expires(write_config: WriteConfig, tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    lasting = COUNTING_PLUGIN % ("t", f'status["expirationTimestamp"] = "{soon}"')
    access = from_kubeconfig(write_config(user=plugin(tmp_path, lasting)))
    assert [await access.authorization() for _ in range(3)] == ["Bearer t-test-1"] * 3

    assert await access.renew("Bearer t-test-1"), "a 401 runs it before its time"
    assert await access.authorization() == "Bearer t-test-2"
    assert await access.renew("Bearer t-test-1"), "the rejected one is replaced already"
    assert await access.authorization() == "Bearer t-test-2"


async def test_a_plugin_whose_token_has_expired_is_run_for_the_next_request(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    lasting = COUNTING_PLUGIN % ("t", f'status["expirationTimestamp"] = "{soon}"')
    access = from_kubeconfig(write_config(user=plugin(tmp_path, lasting)))
    now = access_module.time.monotonic()
    monkeypatch.setattr(access_module.time, "monotonic", lambda: now + 3590)
    assert await access.authorization() == "Bearer t-test-2"


def test_a_plugin_that_fails_is_quoted_with_its_install_hint(write_config: WriteConfig, tmp_path: Path) -> None:
    broken = plugin(tmp_path, "import sys; sys.exit('your session is over')")
    with pytest.raises(NoCredentials) as raised:
        from_kubeconfig(write_config(user=broken))
    assert "your session is over" in str(raised.value)
    assert "plugin.py" in str(raised.value)
    assert "Install the plugin from the shop." in str(raised.value)


def test_a_plugin_that_is_not_installed_is_named(write_config: WriteConfig) -> None:
    missing = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}
    with pytest.raises(NoCredentials, match="no-such-plugin"):
        from_kubeconfig(write_config(user=missing))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("{", "not a usable kubeconfig"),
        ("plain text", "not a usable kubeconfig"),
        ("clusters: []", "no current-context"),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []", "name x"),
    ],
)
def test_an_unusable_file_is_named_with_the_reason(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "broken"
    file.write_text(content)
    with pytest.raises(NoCredentials, match=message) as raised:
        from_kubeconfig(str(file))
    assert str(file) in str(raised.value)


def test_a_proxy_comes_from_the_file_or_the_environment_but_not_for_loopback(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "inside.test")
    away = {"server": "https://api.test"}
    assert from_kubeconfig(write_config(cluster=away)).proxy == "http://proxy.test:3128"
    assert from_kubeconfig(write_config(cluster=away | {"proxy-url": "http://own:1"})).proxy == "http://own:1"
    assert from_kubeconfig(write_config(cluster={"server": "https://inside.test"})).proxy is None
    assert from_kubeconfig(write_config(cluster={"server": "https://127.0.0.1:1"})).proxy is None
    with pytest.raises(NoCredentials, match="use an http or https proxy"):
        from_kubeconfig(write_config(cluster=away | {"proxy-url": "socks5://own:1"}))


def test_a_context_that_does_not_exist_is_named(write_config: WriteConfig) -> None:
    with pytest.raises(NoCredentials, match="other"):
        from_kubeconfig(write_config(), "other")


def test_without_any_configuration_the_error_says_what_to_set() -> None:
    with pytest.raises(NoCredentials, match="set KUBECONFIG"):
        find_access()


async def test_the_environment_names_the_file(write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", write_config(user={"token": "from-env"}))
    assert await find_access().authorization() == "Bearer from-env"


@pytest.fixture
def account(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "token").write_text("one")
    (tmp_path / "namespace").write_text("paddle-system")
    return tmp_path


async def test_inside_a_cluster_the_service_account_is_used_and_its_token_may_rotate(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "REREAD_SECONDS", 0.0)
    access = in_cluster(account)
    assert access.server == "https://[fd00::1]:6443"
    assert access.namespace == "paddle-system"
    assert await access.authorization() == "Bearer one"
    (account / "token").write_text("two")
    assert await access.authorization() == "Bearer two"


async def test_ca_certificates_that_rotate_are_added(
    account: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(access_module, "REREAD_SECONDS", 0.0)
    access = in_cluster(account)
    assert access.tls is not None
    before = access.tls.get_ca_certs()
    (account / "ca.crt").write_bytes(new_authority(tmp_path_factory.mktemp("new")).file.read_bytes())
    await access.authorization()
    assert len(access.tls.get_ca_certs()) == len(before) + 1
    await access.authorization()
    assert len(access.tls.get_ca_certs()) == len(before) + 1, "each once"


def test_a_service_account_that_is_not_mounted_is_an_error_with_a_remedy(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(NoCredentials, match="automountServiceAccountToken"):
        in_cluster(account)


@pytest.fixture
async def tls_server(authority: Authority) -> AsyncIterator[str]:
    """Says who the client is by its certificate; its own names are 127.0.0.1 and api.test."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.load_cert_chain(*authority.issue("server", "api.test"))

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert") or {}
        names = [value for part in peer.get("subject", ()) for _, value in part]
        return web.json_response({"client": names})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def embedded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


async def test_a_client_certificate_is_shown_whether_in_files_or_embedded(
    authority: Authority, tls_server: str, write_config: WriteConfig
) -> None:
    cert, key = authority.issue("ada")
    files = write_config(
        "files",
        cluster={"server": tls_server, "certificate-authority": "ca.crt"},
        user={"client-certificate": cert.name, "client-key": key.name},
    )
    inside = write_config(
        "inside",
        cluster={"server": tls_server, "certificate-authority-data": embedded(authority.file)},
        user={"client-certificate-data": embedded(cert), "client-key-data": embedded(key)},
    )
    for config in (files, inside):
        async with Client(from_kubeconfig(config)) as client:
            assert await client.get(PODS, "a", "ml") == {"client": ["ada"]}


async def test_a_plugin_may_give_a_certificate(
    authority: Authority, tls_server: str, write_config: WriteConfig, tmp_path: Path
) -> None:
    cert, key = authority.issue("robot")
    gives = f"""status = {{"clientCertificateData": open({str(cert)!r}).read(),
    "clientKeyData": open({str(key)!r}).read()}}"""
    config = write_config(
        cluster={"server": tls_server, "certificate-authority": "ca.crt"},
        user=plugin(tmp_path, COUNTING_PLUGIN % ("t", gives)),
    )
    async with Client(from_kubeconfig(config)) as client:
        assert await client.get(PODS, "a", "ml") == {"client": ["robot"]}


async def test_a_server_of_another_authority_is_rejected_unless_verification_is_off(
    tls_server: str, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.kube.transport.FIRST_BACKOFF", 0.001)
    async with Client(from_kubeconfig(write_config("strict", cluster={"server": tls_server}))) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.get(PODS, "a", "ml")
    loose = write_config("loose", cluster={"server": tls_server, "insecure-skip-tls-verify": True})
    async with Client(from_kubeconfig(loose)) as client:
        assert await client.get(PODS, "a", "ml") == {"client": []}


async def test_the_name_on_the_servers_certificate_may_be_given(
    authority: Authority, tls_server: str, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.kube.transport.FIRST_BACKOFF", 0.001)
    cluster = {"server": tls_server, "certificate-authority": "ca.crt", "tls-server-name": "api.test"}
    async with Client(from_kubeconfig(write_config("named", cluster=cluster))) as client:
        assert await client.get(PODS, "a", "ml") == {"client": []}
    other = write_config("other", cluster=cluster | {"tls-server-name": "another.test"})
    async with Client(from_kubeconfig(other)) as client:
        with pytest.raises(Unreachable, match=r"another\.test"):
            await client.get(PODS, "a", "ml")
