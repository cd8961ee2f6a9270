"""Which credentials are used where several are at hand, and what is said where none are usable."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import yaml

from paddlejob.errors import NoCredentials, Unreachable
from paddlejob.kube import access as access_module
from paddlejob.kube.access import Access, Credential, client_tls, find_access, in_cluster
from paddlejob.kube.client import Client
from paddlejob.kube.kubeconfig import from_kubeconfig
from paddlejob.kube.resource import PODS

from .certificates import new_authority
from .test_access import COUNTING_PLUGIN, plugin


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    return tmp_path / "home"


def config(file: Path, token: str, server: str = "http://127.0.0.1:8001", **more: object) -> str:
    content = {
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": server}}],
        "users": [{"name": "one", "user": {"token": token} | more}],
        "contexts": [{"name": name, "context": {"cluster": "one", "user": "one"}} for name in ("one", "two")],
    }
    file.write_text(yaml.safe_dump(content))
    return str(file)


async def token(access: Access) -> str:
    return (await access.authorization()).removeprefix("Bearer ")


async def test_a_file_that_is_named_wins_over_the_environment_and_that_over_the_home_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config(home / ".kube" / "config", "of-home")
    assert await token(find_access()) == "of-home"
    assert await token(find_access(context="two")) == "of-home"
    monkeypatch.setenv("KUBECONFIG", config(tmp_path / "env", "of-env"))
    assert await token(find_access()) == "of-env"
    assert await token(find_access(config(tmp_path / "named", "named"))) == "named"


def account(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    new_authority(folder)
    (folder / "token").write_text("of-pod\n")
    return folder


async def test_a_pod_uses_its_service_account_unless_it_has_a_kubeconfig(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(access_module.in_cluster, "__defaults__", (account(tmp_path, monkeypatch),))
    access = find_access()
    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "default")
    assert await token(access) == "of-pod"
    config(home / ".kube" / "config", "of-home")
    assert await token(find_access()) == "of-home"


def test_a_context_without_a_file_names_the_file_that_is_missing(home: Path):
    with pytest.raises(NoCredentials, match=r"\.kube/config: no such file; set KUBECONFIG"):
        find_access(context="one")


def test_a_file_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(NoCredentials, match="absent: no such file"):
        find_access(str(tmp_path / "absent"))


def test_outside_a_cluster_there_is_no_service_account():
    with pytest.raises(NoCredentials, match="not running in a cluster"):
        in_cluster()


def test_an_empty_token_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mounted = account(tmp_path, monkeypatch)
    (mounted / "token").write_text(" \n")
    with pytest.raises(NoCredentials, match="token is empty"):
        in_cluster(mounted)


def test_certificates_that_cannot_be_loaded_are_named(tmp_path: Path):
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(NoCredentials, match=r"cannot be loaded: .*; check .*ca\.crt, .*me\.crt$"):
        client_tls(ca_file=str(tmp_path / "ca.crt"), cert_file=str(tmp_path / "me.crt"))


def test_names_and_authorities_are_verified_unless_that_is_turned_off():
    assert client_tls().verify_mode is ssl.CERT_REQUIRED
    assert client_tls().check_hostname
    assert not client_tls().verify_flags & ssl.VERIFY_X509_STRICT
    loose = client_tls(verify=False)
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)


async def test_a_slash_at_the_end_of_the_address_does_no_harm():
    assert Access("https://api.test/").server == "https://api.test"


async def test_a_credential_is_fetched_when_it_has_expired_and_not_before():
    fetched: list[int] = []

    def fetch() -> Credential:
        fetched.append(1)
        return Credential(f"Bearer {len(fetched)}")

    access = Access("http://api.test", fetch=fetch)
    assert [await token(access), await token(access)] == ["1", "1"]
    assert not await access.renew("Bearer 0") or await token(access) == "1", "another request renewed it already"
    assert await access.renew("Bearer 1")
    assert await token(access) == "2"
    expired = Access("http://api.test", fetch=fetch, credential=Credential("Bearer old", expires_at=0.0))
    assert await token(expired) == "3"


async def test_a_rejected_credential_that_stays_the_same_is_not_sent_again():
    access = Access("http://api.test", fetch=lambda: Credential("Bearer same"))
    assert await token(access) == "same"
    assert not await access.renew("Bearer same")


async def test_the_certificate_of_a_plugin_is_replaced_when_it_is_run_again(tmp_path: Path):
    authority = new_authority(tmp_path)
    cert, key = authority.issue("robot")
    gives = f"""status = {{"clientCertificateData": open({str(cert)!r}).read(),
    "clientKeyData": open({str(key)!r}).read()}}"""
    user = plugin(tmp_path, COUNTING_PLUGIN % ("t", gives))
    access = from_kubeconfig(config(tmp_path / "config", "", "https://127.0.0.1:1", **user))
    assert not await access.renew("")
    assert (tmp_path / "count").read_text() == "2", "it ran again"
    (tmp_path / key).write_text("no key")
    with pytest.raises(NoCredentials, match="certificate"):
        await access.renew("")


async def test_an_error_names_the_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.kube.transport.FIRST_BACKOFF", 0.001)
    access = Access("http://127.0.0.1:1")
    async with Client(access) as client:
        assert client.access is access
        with pytest.raises(Unreachable, match=r"is the API server http://127\.0\.0\.1:1 up and reachable\?"):
            await client.get(PODS, "a", "ml")
