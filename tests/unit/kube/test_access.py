"""Credentials: kubeconfig files, credential plugins, service accounts."""

from __future__ import annotations

import base64
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from paddlejob.errors import NoCredentials, Unreachable
from paddlejob.kube import access as access_module
from paddlejob.kube.access import Access, Credential, client_tls, find_access, in_cluster
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
    variables = "KUBECONFIG KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT HTTP_PROXY HTTPS_PROXY NO_PROXY"
    for name in variables.split():
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("paddlejob.kube.transport.FIRST_BACKOFF", 0.001)


@pytest.fixture
def write_config(tmp_path: Path) -> WriteConfig:
    def write(name: str = "config", *, cluster: Any = None, user: Any = None, **context: str) -> str:
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": "http://127.0.0.1:8001", **(cluster or {})}}],
            "users": [{"name": name, "user": user or {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        }  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(config))
        return str(file)

    return write


def plugin(tmp_path: Path, body: str) -> dict[str, Any]:
    """A credential plugin that is a Python program."""
    program = tmp_path / "plugin.py"
    program.write_text(body)
    return {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(program)],
        "env": [{"name": "REALM", "value": "test"}], "installHint": "Install the plugin from the shop.",
        "interactiveMode": "Never",
    }}  # fmt: skip


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


def lasting(tmp_path: Path, seconds: float = 3600) -> dict[str, Any]:
    """A plugin whose tokens expire."""
    expiry = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return plugin(tmp_path, COUNTING_PLUGIN % ("t", f'status["expirationTimestamp"] = "{expiry}"'))


def certified(tmp_path: Path, cert: Path, key: Path) -> dict[str, Any]:
    """A plugin that gives a certificate."""
    gives = (
        f'status = {{"clientCertificateData": open({str(cert)!r}).read(), "clientKeyData": open({str(key)!r}).read()}}'
    )
    return plugin(tmp_path, COUNTING_PLUGIN % ("t", gives))


async def test_the_server_and_the_namespace_are_those_of_the_context(write_config: WriteConfig) -> None:
    access = from_kubeconfig(write_config(user={"token": "secret"}, namespace="ml"))
    assert (access.server, access.namespace) == ("http://127.0.0.1:8001", "ml")
    assert Access("https://api.test/").server == "https://api.test"


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "secret"}, "Bearer secret"),
        ({}, ""),
        ({"username": "ada", "password": "x"}, "Basic " + base64.b64encode(b"ada:x").decode()),
    ],
)
async def test_the_credentials_of_the_user_are_sent(write_config: WriteConfig, user: Any, header: str) -> None:
    assert await from_kubeconfig(write_config(user=user)).authorization() == header


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({"token": "secret"}, ()),
        ({"as": "ada"}, (("Impersonate-User", "ada"),)),
        (
            {"as": "ada", "as-groups": ["dev", "ml"], "as-uid": "7", "as-user-extra": {"example.org/a b": ["x", "y"]}},
            (
                ("Impersonate-User", "ada"),
                ("Impersonate-Group", "dev"),
                ("Impersonate-Group", "ml"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Extra-example.org%2Fa%20b", "x"),
                ("Impersonate-Extra-example.org%2Fa%20b", "y"),
            ),
        ),
    ],
)
def test_requests_are_made_on_behalf_of_the_user_that_the_file_names(
    write_config: WriteConfig, user: Any, headers: tuple[tuple[str, str], ...]
) -> None:
    assert from_kubeconfig(write_config(user=user)).impersonation == headers


@pytest.mark.parametrize("user", [{"as-groups": ["system:masters"]}, {"as-uid": "7"}, {"as-user-extra": {"a": ["b"]}}])
def test_a_group_without_a_user_is_an_error(write_config: WriteConfig, user: Any) -> None:
    with pytest.raises(NoCredentials, match="as-groups, as-uid and as-user-extra need `as`"):
        from_kubeconfig(write_config(user=user))


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


async def test_a_plugin_runs_once_and_again_when_its_token_is_rejected(
    write_config: WriteConfig, tmp_path: Path
) -> None:
    access = from_kubeconfig(write_config(user=lasting(tmp_path)))
    assert [await access.authorization() for _ in range(3)] == ["Bearer t-test-1"] * 3
    for _ in range(2):
        assert await access.renew("Bearer t-test-1"), (
            "at first it runs again, then the rejected one is replaced already"
        )
        assert await access.authorization() == "Bearer t-test-2"


@pytest.mark.parametrize(
    ("expires_in", "used_for"), [(1000, 940), (200, 150), (-50, 1)], ids=["a minute early", "a quarter early", "past"]
)
async def test_a_token_is_renewed_a_while_before_it_expires(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expires_in: float, used_for: float
) -> None:
    begun = time.monotonic()
    access = from_kubeconfig(write_config(user=lasting(tmp_path, expires_in)))
    read = time.monotonic()

    async def used_at(moment: float) -> str:
        with monkeypatch.context() as patched:
            patched.setattr("paddlejob.kube.access.time.monotonic", lambda: moment)
            return await access.authorization()

    before = await used_at(begun + used_for - 2)
    assert await used_at(read + used_for + 2) != before


async def test_a_credential_without_an_expiry_is_fetched_once() -> None:
    fetched: list[int] = []

    def fetch() -> Credential:
        fetched.append(1)
        return Credential(f"Bearer {len(fetched)}")

    access = Access("http://api.test", fetch=fetch)
    assert [await access.authorization() for _ in range(2)] == ["Bearer 1"] * 2
    assert await access.renew("Bearer 1")
    assert await access.authorization() == "Bearer 2"
    expired = Access("http://api.test", fetch=fetch, credential=Credential("Bearer old", expires_at=0.0))
    assert await expired.authorization() == "Bearer 3"


async def test_a_rejected_credential_that_stays_the_same_is_not_sent_again() -> None:
    access = Access("http://api.test", fetch=lambda: Credential("Bearer same"))
    assert await access.authorization() == "Bearer same"
    assert not await access.renew("Bearer same")


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


@pytest.mark.parametrize(
    ("cluster", "proxy"),
    [
        ({"server": "https://api.test"}, "http://proxy.test:3128"),
        ({"server": "https://128.0.0.1"}, "http://proxy.test:3128"),
        ({"server": "http://api.test"}, None),
        ({"server": "https://api.test", "proxy-url": "http://own:1"}, "http://own:1"),
        ({"server": "https://api.test", "proxy-url": "https://own:1"}, "https://own:1"),
        ({"server": "https://inside.test"}, None),
        ({"server": "https://127.0.0.1:1"}, None),
        ({"server": "https://127.8.8.8:6443"}, None),
        ({"server": "https://[::1]:6443"}, None),
        ({"server": "https://localhost:6443"}, None),
    ],
)
def test_a_proxy_comes_from_the_file_or_the_environment_but_not_for_loopback(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch, cluster: dict[str, str], proxy: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "inside.test")
    assert from_kubeconfig(write_config(cluster=cluster)).proxy == proxy


def test_only_http_proxies_are_supported(write_config: WriteConfig) -> None:
    with pytest.raises(NoCredentials, match=r"the proxy socks5://a:1 is not supported; use an http or https proxy"):
        from_kubeconfig(write_config(cluster={"proxy-url": "socks5://a:1"}))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({}, "set KUBECONFIG"),
        ({"context": "one"}, r"\.kube/config: no such file; set KUBECONFIG"),
        ({"kubeconfig": "/absent"}, "absent: no such file"),
    ],
)
def test_without_a_file_the_error_names_the_one_that_is_missing(chosen: dict[str, str], message: str) -> None:
    with pytest.raises(NoCredentials, match=message):
        find_access(**chosen)


def test_a_context_that_does_not_exist_is_named(write_config: WriteConfig) -> None:
    with pytest.raises(NoCredentials, match="other"):
        from_kubeconfig(write_config(), "other")


async def test_a_file_that_is_named_wins_over_the_environment_that_over_the_home_directory_and_that_over_the_pod(
    write_config: WriteConfig, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def token(**chosen: str) -> str:
        return (await find_access(**chosen).authorization()).removeprefix("Bearer ")

    monkeypatch.setattr(access_module.in_cluster, "__defaults__", (account,))
    assert await token() == "one"
    file = write_config("home/.kube/config", user={"token": "of-home"})
    assert await token() == await token(context="home/.kube/config") == "of-home"
    monkeypatch.setenv("KUBECONFIG", write_config("env", user={"token": "of-env"}))
    assert await token() == "of-env"
    assert await token(kubeconfig=file) == "of-home"


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


def test_outside_a_cluster_there_is_no_service_account() -> None:
    with pytest.raises(NoCredentials, match="not running in a cluster"):
        in_cluster()


def test_the_port_and_the_namespace_of_a_pod_have_defaults(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    (account / "namespace").unlink()
    assert (in_cluster(account).server, in_cluster(account).namespace) == ("https://10.0.0.1:443", "default")


def test_an_empty_token_is_an_error(account: Path) -> None:
    (account / "token").write_text(" \n")
    with pytest.raises(NoCredentials, match="token is empty"):
        in_cluster(account)


def test_a_service_account_that_is_not_mounted_is_an_error_with_a_remedy(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(NoCredentials, match="automountServiceAccountToken"):
        in_cluster(account)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_loaded_are_named(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "ca.crt").write_text(content)
    with pytest.raises(NoCredentials, match=r"cannot be loaded: .*; check .*ca\.crt, .*me\.crt$"):
        client_tls(ca_file=str(tmp_path / "ca.crt"), cert_file=str(tmp_path / "me.crt"))


def test_names_and_authorities_are_verified_unless_that_is_turned_off() -> None:
    assert client_tls().verify_mode is ssl.CERT_REQUIRED
    assert client_tls().check_hostname
    assert not client_tls().verify_flags & ssl.VERIFY_X509_STRICT
    loose = client_tls(verify=False)
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)


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
    cluster = {"server": tls_server, "certificate-authority": "ca.crt"}
    access = from_kubeconfig(write_config(cluster=cluster, user=certified(tmp_path, cert, key)))
    async with Client(access) as client:
        assert await client.get(PODS, "a", "ml") == {"client": ["robot"]}
    assert not await access.renew("")
    assert (tmp_path / "count").read_text() == "2", "it ran again"
    key.write_text("no key")
    with pytest.raises(NoCredentials, match="certificate"):
        await access.renew("")


async def test_a_server_of_another_authority_is_rejected_unless_verification_is_off(
    tls_server: str, write_config: WriteConfig
) -> None:
    async with Client(from_kubeconfig(write_config("strict", cluster={"server": tls_server}))) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.get(PODS, "a", "ml")
    loose = write_config("loose", cluster={"server": tls_server, "insecure-skip-tls-verify": True})
    async with Client(from_kubeconfig(loose)) as client:
        assert await client.get(PODS, "a", "ml") == {"client": []}


async def test_the_name_on_the_servers_certificate_may_be_given(
    authority: Authority, tls_server: str, write_config: WriteConfig
) -> None:
    cluster = {"server": tls_server, "certificate-authority": "ca.crt", "tls-server-name": "api.test"}
    async with Client(from_kubeconfig(write_config("named", cluster=cluster))) as client:
        assert await client.get(PODS, "a", "ml") == {"client": []}
    other = write_config("other", cluster=cluster | {"tls-server-name": "another.test"})
    async with Client(from_kubeconfig(other)) as client:
        with pytest.raises(Unreachable, match=r"another\.test"):
            await client.get(PODS, "a", "ml")
