"""Who may read the metrics, and over which connection."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from paddlejob.errors import BadInput
from paddlejob.kube.client import Client
from paddlejob.operator import main
from paddlejob.operator.health import Health, is_loopback, serving
from paddlejob.operator.main import Options
from paddlejob.operator.metrics import Metrics, access
from paddlejob.operator.metrics.access import MetricsAccess
from paddlejob.operator.metrics.certificate import Certificate
from tests.support.operator_process import free_port
from tests.support.scripted_cluster import Serve
from tests.unit.kube.certificates import new_authority

PROMETHEUS = {"username": "system:serviceaccount:monitoring:prometheus", "uid": "1", "groups": ["system:authenticated"]}


class Reviews:
    """An API server that knows the tokens `good` and `narrow`, and permits the first to read metrics."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.code = 201

    async def respond(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        if self.code != 201:
            failed = {"kind": "Status", "code": self.code, "reason": "Forbidden", "message": "may not create"}
            return web.json_response(failed, status=self.code)
        if body["kind"] == "TokenReview":
            token = body["spec"]["token"]
            user = PROMETHEUS if token == "good" else {"username": "intruder"}
            status = {"authenticated": True, "user": user} if token in ("good", "narrow") else {"error": "expired"}
        else:
            assert body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            status = {"allowed": body["spec"]["user"] == PROMETHEUS["username"]}
        return web.json_response({**body, "status": status}, status=201)


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        ("", 401, "send a bearer token"),
        ("Basic Zm9vOmJhcg==", 401, "send a bearer token"),
        ("Bearer ", 401, "send a bearer token"),
        ("Bearer stolen", 401, "does not accept the token"),
        ("Bearer narrow", 403, "intruder may not get /metrics; permit it by a ClusterRole"),
    ],
)
async def test_a_scraper_that_is_unknown_or_not_permitted_gets_no_metrics(
    serve: Serve, header: str, code: int, message: str
):
    async with Client(await serve(Reviews().respond)) as client:
        denial = await MetricsAccess(client).denial(header)
    assert denial is not None
    assert denial.code == code
    assert message in denial.message


async def test_a_permitted_scraper_is_remembered_for_a_minute(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    reviews = Reviews()
    async with Client(await serve(reviews.respond)) as client:
        metrics_access = MetricsAccess(client)
        for _ in range(3):
            assert await metrics_access.denial("Bearer good") is None
        assert [one["kind"] for one in reviews.asked] == ["TokenReview", "SubjectAccessReview"]
        assert reviews.asked[1]["spec"]["groups"] == PROMETHEUS["groups"], "a group may be what is permitted"
        for _ in range(2):
            assert await metrics_access.denial("Bearer narrow") is not None
        assert len(reviews.asked) == 6, "a denial is not remembered: permissions may be granted at any time"
        monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
        fresh = MetricsAccess(client)
        for _ in range(2):
            assert await fresh.denial("Bearer good") is None
        assert len(reviews.asked) == 10


async def test_tokens_of_many_scrapers_do_not_pile_up(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(access, "MOST_REMEMBERED", 1)
    reviews = Reviews()
    async with Client(await serve(reviews.respond)) as client:
        metrics_access = MetricsAccess(client)
        for token in ("good", "good  ", "good"):
            assert await metrics_access.denial(f"Bearer {token}") is None
        assert len(reviews.asked) == 6


async def test_if_tokens_cannot_be_checked_the_response_and_the_log_say_what_is_missing(
    serve: Serve, caplog: pytest.LogCaptureFixture
):
    reviews = Reviews()
    reviews.code = 403
    async with Client(await serve(reviews.respond)) as client:
        metrics_access = MetricsAccess(client)
        for _ in range(2):
            denial = await metrics_access.denial("Bearer good")
            assert denial is not None
            assert denial.code == 503
            assert "bind the operator's service account to the ClusterRole system:auth-delegator" in denial.message
        assert caplog.text.count("system:auth-delegator") == 1, "logged once, not at every scrape"
        reviews.code = 201
        assert await metrics_access.denial("Bearer good") is None


async def scraped(address: str, tls: ssl.SSLContext | bool = True, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers, ssl=tls) as response:
        return response.status, await response.text()


def directory_with(tmp_path: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """A mounted certificate of a new authority, and what a client needs to trust it."""
    (tmp_path / name).mkdir()
    authority = new_authority(tmp_path / name)
    certificate, key = authority.issue("metrics")
    directory = tmp_path / "mounted"
    directory.mkdir(exist_ok=True)
    (directory / "tls.crt").write_bytes(certificate.read_bytes())
    (directory / "tls.key").write_bytes(key.read_bytes())
    return directory, ssl.create_default_context(cafile=str(tmp_path / name / "ca.crt"))


async def test_the_endpoint_asks_for_a_token_over_https_and_the_probes_do_not(serve: Serve, tmp_path: Path):
    directory, trusting = directory_with(tmp_path, "first")
    metrics, probes = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    async with (
        Client(await serve(Reviews().respond)) as client,
        serving(
            Health(),
            Metrics().registry,
            metrics,
            probes,
            access=MetricsAccess(client),
            tls=Certificate(str(directory)).tls,
        ),
    ):
        assert (await scraped(f"https://{metrics}/metrics", trusting))[0] == 401
        code, text = await scraped(f"https://{metrics}/metrics", trusting, "good")
        assert code == 200
        assert "paddlejob_build_info" in text
        assert await scraped(f"http://{probes}/readyz") == (200, "ok")


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    directory, trusting_first = directory_with(tmp_path, "first")
    certificate = Certificate(str(directory))
    metrics = f"127.0.0.1:{free_port()}"
    async with serving(Health(), Metrics().registry, metrics, "0", tls=certificate.tls):
        assert (await scraped(f"https://{metrics}/metrics", trusting_first))[0] == 200
        _, trusting_second = directory_with(tmp_path, "second")
        certificate.renew()
        assert (await scraped(f"https://{metrics}/metrics", trusting_second))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await scraped(f"https://{metrics}/metrics", trusting_first)
        (directory / "tls.crt").write_text("half written")
        certificate.renew()
        assert "the old one stays" in caplog.text
        assert (await scraped(f"https://{metrics}/metrics", trusting_second))[0] == 200


@pytest.mark.parametrize("present", [True, False], ids=["no certificate", "no files"])
def test_a_certificate_that_cannot_be_used_is_an_error_with_its_files(tmp_path: Path, present: bool):
    if present:
        for name in ("tls.crt", "tls.key"):
            (tmp_path / name).write_text("no certificate")
    with pytest.raises(BadInput, match=r"--metrics-certificate: .*tls\.crt"):
        Certificate(str(tmp_path))


@pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.1:8080"])
async def test_tokens_are_not_asked_for_over_an_open_connection(serve: Serve, address: str):
    reached = await serve(Reviews().respond)
    with pytest.raises(BadInput, match="tokens would be sent without encryption; set --metrics-certificate"):
        await main.run(reached, Options(metrics=address, metrics_auth=True))


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "0"])
def test_loopback_needs_no_encryption(address: str):
    assert is_loopback(address)
