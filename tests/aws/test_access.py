"""kubeconfig and token: access with kubectl, without the aws CLI; with moto as AWS."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import boto3
import pytest
import requests
import yaml

from paddlejob.cloud.aws.access.tokens import token
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

from .kinds import Pdj


def decoded(text: str) -> str:
    assert text.startswith("k8s-aws-v1.")
    body = text.removeprefix("k8s-aws-v1.")
    assert "=" not in body
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()


def test_the_token_is_a_signed_question_to_sts_bound_to_the_cluster() -> None:
    url = urlsplit(decoded(token(Aws("us-west-2"), "paddle-cluster")))
    asked = parse_qs(url.query)
    assert (url.scheme, url.netloc) == ("https", "sts.us-west-2.amazonaws.com")
    assert asked["Action"] == ["GetCallerIdentity"]
    assert asked["X-Amz-Expires"] == ["60"]
    assert asked["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert asked["X-Amz-Credential"][0].endswith("/us-west-2/sts/aws4_request")


def signature(url: str, cluster: str, secret: str) -> str:
    """Signature Version 4 as AWS describes it, computed here a second time."""
    parts = urlsplit(url)
    asked = {name: values[0] for name, values in parse_qs(parts.query).items() if name != "X-Amz-Signature"}
    query = "&".join(f"{quote(name, safe='')}={quote(asked[name], safe='')}" for name in sorted(asked))
    headers = f"host:{parts.netloc}\nx-k8s-aws-id:{cluster}\n"
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\n{headers}\nhost;x-k8s-aws-id\n{nothing}"
    _, day, region, service, end = asked["X-Amz-Credential"].split("/")
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{asked['X-Amz-Date']}\n{day}/{region}/{service}/{end}\n{digest}"
    key = f"AWS4{secret}".encode()
    for step in (day, region, service, end):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def test_the_signature_is_right_and_holds_for_that_cluster_only() -> None:
    url = decoded(token(Aws("us-west-2"), "paddle-cluster"))
    (signed,) = parse_qs(urlsplit(url).query)["X-Amz-Signature"]
    assert signed == signature(url, "paddle-cluster", "testing")
    assert signed != signature(url, "another", "testing")


@pytest.mark.usefixtures("made")
def test_sts_answers_the_question_as_it_will_answer_eks() -> None:
    url = decoded(token(Aws("us-west-2"), "paddle-cluster"))
    answer = requests.get(url, headers={"x-k8s-aws-id": "paddle-cluster"}, timeout=5)
    assert answer.status_code == 200
    assert "arn:aws:sts::123456789012:user/moto" in answer.text


@pytest.mark.usefixtures("made", "initialised")
def test_token_prints_what_kubectl_wants_of_a_credential_plugin(pdj: Pdj) -> None:
    printed = json.loads(pdj("token"))
    assert (printed["kind"], printed["apiVersion"]) == ("ExecCredential", "client.authentication.k8s.io/v1beta1")
    left = datetime.fromisoformat(printed["status"]["expirationTimestamp"]) - datetime.now(UTC)
    assert timedelta(minutes=10) < left < timedelta(minutes=15)
    decoded(printed["status"]["token"])
    decoded(pdj("token", "--plain").strip())


@pytest.mark.usefixtures("made", "initialised")
def test_kubeconfig_points_kubectl_to_the_cluster_and_to_pdj(pdj: Pdj, tmp_path: Path) -> None:
    with pytest.raises(NotPossible, match="cluster paddle-cluster does not exist in us-west-2"):
        pdj("kubeconfig")
    pdj("up")
    (tmp_path / "kubeconfig").unlink()
    pdj("kubeconfig")
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    found = boto3.client("eks", region_name="us-west-2").describe_cluster(name="paddle-cluster")["cluster"]
    assert config["clusters"][0]["cluster"] == {
        "server": found["endpoint"],
        "certificate-authority-data": found["certificateAuthority"]["data"],
    }
    plugin = config["users"][0]["user"]["exec"]
    assert [plugin["command"], *plugin["args"]] == [
        *("pdj", "aws", "token", "--cluster-name", "paddle-cluster", "--region", "us-west-2")
    ]
    printed = json.loads(pdj(*plugin["args"][1:]))
    decoded(printed["status"]["token"])
