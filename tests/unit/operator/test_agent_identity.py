"""Which pod an agent is in, and by which certificate it knows the operator."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from paddlejob import contract
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.operator.agents.authority import load_serving_certificate, stored_authority
from paddlejob.operator.agents.gate import AgentGate
from paddlejob.operator.agents.identity import REMEMBERED_SECONDS, Denied, Identity
from paddlejob.operator.informers import Informers
from paddlejob.operator.manifests import SECRET_NAME
from tests.support.scripted_cluster import ScriptedCluster, failure

REVIEWS = ("POST", "tokenreviews")
SECRET = f"paddle-system/secrets/{SECRET_NAME}"


def token(pod: str = "mnist-worker-0", namespace: str = "default", uid: str = "", audience: str = "") -> str:
    """Readable as one of the API server's, with a signature that only the scripted one knows."""
    about = {"namespace": namespace, "pod": {"name": pod, "uid": uid or f"uid-of-{pod}"}}
    claims = {"aud": [audience or contract.AGENT_AUDIENCE], "kubernetes.io": about}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


def review(**changes: Any) -> tuple[int, dict[str, Any]]:
    pod = {"authentication.kubernetes.io/pod-name": ["mnist-worker-0"]}
    uid = {"authentication.kubernetes.io/pod-uid": ["uid-of-mnist-worker-0"]}
    user = {"username": "system:serviceaccount:default:default", "extra": {**pod, **uid}}
    status = {"authenticated": True, "audiences": [contract.AGENT_AUDIENCE], "user": user, **changes}
    return 201, {"kind": "TokenReview", "status": status}


class Stage:
    def __init__(self, client: Client, api: ScriptedCluster) -> None:
        self.api = api
        self.now = 100.0
        self.informers = Informers(client, None)
        self.informers.record_write(PODS, api.add_pod())
        self.identity = Identity(client, self.informers, lambda: self.now)
        api.answers[REVIEWS] = review()

    @property
    def reviews(self) -> int:
        return len(self.api.written("POST", "tokenreviews"))

    async def code(self, authorization: str) -> int:
        try:
            await self.identity.of(authorization)
        except Denied as denied:
            return denied.code
        return 200


@pytest.fixture
def stage(client: Client, api: ScriptedCluster) -> Stage:
    return Stage(client, api)


async def test_the_token_of_a_replica_is_checked_by_the_api_server_and_then_remembered(stage: Stage):
    caller = await stage.identity.of(f"Bearer {token()}")
    assert (caller.job, caller.pod.uid) == (("default", "mnist"), "uid-of-mnist-worker-0")
    await stage.identity.of(f"Bearer {token()}")
    assert stage.reviews == 1
    assert stage.api.asked[0].body["spec"]["audiences"] == [contract.AGENT_AUDIENCE]
    stage.now += REMEMBERED_SECONDS
    await stage.identity.of(f"Bearer {token()}")
    assert stage.reviews == 2


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", 401),
        ("Basic abc", 401),
        ("Bearer nonsense", 401),
        ("Bearer a.!!!.c", 401),
        (f"Bearer {'x' * 9000}", 401),
        (f"Bearer {token(audience='https://kubernetes.default.svc')}", 401),
        (f"Bearer {token('stranger')}", 404),
        (f"Bearer {token(namespace='other')}", 404),
        (f"Bearer {token(uid='that-of-an-earlier-pod')}", 404),
    ],
)
async def test_tokens_that_name_no_replica_are_denied_without_a_request(stage: Stage, authorization: str, code: int):
    assert (await stage.code(authorization), stage.reviews) == (code, 0)


@pytest.mark.parametrize(
    "answer",
    [
        review(authenticated=False),
        review(audiences=["another"]),
        review(user={"username": "system:serviceaccount:other:default", "extra": {}}),
        review(user={"username": "somebody"}),
        review(
            user={
                "username": "system:serviceaccount:default:default",
                "extra": {
                    "authentication.kubernetes.io/pod-name": ["mnist-worker-1"],
                    "authentication.kubernetes.io/pod-uid": ["uid-of-mnist-worker-1"],
                },
            }
        ),
    ],
)
async def test_a_token_that_claims_another_pod_than_it_is_of_is_denied(stage: Stage, answer: Any):
    stage.api.answers[REVIEWS] = answer
    assert await stage.code(f"Bearer {token()}") == 401


async def test_the_token_of_a_pod_that_is_gone_is_worth_nothing_although_it_was_accepted(stage: Stage):
    assert await stage.code(f"Bearer {token()}") == 200
    stage.informers.record_delete(PODS, "default", "mnist-worker-0", "uid-of-mnist-worker-0")
    assert await stage.code(f"Bearer {token()}") == 404


async def test_an_api_server_that_does_not_answer_denies_nobody_for_good_and_the_log_says_so_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
):
    stage.api.answers[REVIEWS] = failure(403, "Forbidden")
    assert [await stage.code(f"Bearer {token()}") for _ in range(2)] == [503, 503]
    assert caplog.text.count("tokens cannot be checked") == 1
    stage.api.answers[REVIEWS] = review()
    assert await stage.code(f"Bearer {token()}") == 200


async def test_the_authority_is_made_once_and_kept_in_the_secret(client: Client, api: ScriptedCluster):
    api.put(SECRET, {"kind": "Secret", "apiVersion": "v1", "metadata": {"namespace": "paddle-system"}})
    made = await stored_authority(client, "paddle-system")
    assert await stored_authority(client, "paddle-system") == made
    assert [one.method for one in api.asked] == ["PUT"]
    api.objects[SECRET]["data"]["ca.key"] = "c3BvaWxlZA=="
    assert await stored_authority(client, "paddle-system") != made


def pem(key: Any, password: bytes = b"") -> str:
    kind = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    made = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kind)
    return base64.b64encode(made).decode()


@pytest.mark.parametrize(
    "key",
    [
        pem(ec.generate_private_key(ec.SECP256R1())),
        pem(ec.generate_private_key(ec.SECP256R1()), b"password"),
        pem(ed25519.Ed25519PrivateKey.generate()),
    ],
    ids=["of another certificate", "encrypted", "of another kind"],
)
async def test_an_authority_that_cannot_sign_is_replaced(client: Client, api: ScriptedCluster, key: str):
    api.put(SECRET, {"kind": "Secret", "apiVersion": "v1", "metadata": {"namespace": "paddle-system"}})
    made = await stored_authority(client, "paddle-system")
    api.objects[SECRET]["data"]["ca.key"] = key
    found = await stored_authority(client, "paddle-system")
    assert found != made
    load_serving_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), found, "operator")


@pytest.mark.parametrize(("host", "address"), [("operator", "127.0.0.1:99999"), ("オペレーター", "127.0.0.1:0")])
async def test_a_channel_that_cannot_be_served_leaves_the_operator_to_its_jobs(
    stage: Stage, client: Client, api: ScriptedCluster, caplog: pytest.LogCaptureFixture, host: str, address: str
):
    api.put(SECRET, {"kind": "Secret", "apiVersion": "v1", "metadata": {"namespace": "paddle-system"}})
    gate = await AgentGate.opened(client, f"https://{host}:8443", "paddle-system")
    async with asyncio.timeout(20):
        await gate.run(address, stage.identity, lambda key: None, lambda: True)
    assert gate.agents.channel is None
    assert "so jobs restart with new pods" in caplog.text


def test_an_operator_starts_although_certificates_cannot_be_made():
    """The package for them is compiled, and may not load."""
    program = "import sys; sys.modules['cryptography'] = None; import paddlejob.operator.main, paddlejob.cli.install"
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_without_the_secret_there_is_no_channel_and_the_log_says_why(
    client: Client, api: ScriptedCluster, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(NotPossible, match="apply the operator's manifests again"):
        await stored_authority(client, "paddle-system")
    gate = await AgentGate.opened(client, "https://operator:8443", "paddle-system")
    assert gate.agents.channel is None
    assert "so jobs restart with new pods" in caplog.text
    api.put(SECRET, {"kind": "Secret", "apiVersion": "v1", "metadata": {"namespace": "paddle-system"}})
    gate = await AgentGate.opened(client, "https://operator:8443", "paddle-system")
    assert gate.agents.channel is not None
    assert gate.agents.channel.url == "https://operator:8443"
