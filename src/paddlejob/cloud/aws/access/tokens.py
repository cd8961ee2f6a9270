"""Tokens for the Kubernetes API of EKS, without the aws CLI.

A token is a presigned request for sts:GetCallerIdentity, valid for 60 s and bound to one cluster by a signed
header. EKS sends that request to learn who signed it, and accepts the token for 15 minutes.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from paddlejob.cloud.aws.errors import translate_errors
from paddlejob.cloud.aws.session import Aws

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
SIGNATURE_SECONDS = 60
LIFETIME = timedelta(minutes=14)  # a minute less than EKS allows


def token(aws: Aws, cluster: str) -> str:
    client = aws.client("sts")
    # A regional endpoint: EKS rejects signatures for hosts outside its own region.
    request = {
        "method": "GET",
        "url": f"{client.meta.endpoint_url.rstrip('/')}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {CLUSTER_HEADER: cluster},
        "context": {},
    }
    from botocore.signers import RequestSigner

    with translate_errors("credentials"):
        session = aws.session()
        signer = RequestSigner(
            client.meta.service_model.service_id,
            aws.region,
            "sts",
            "v4",
            session.get_credentials(),
            session.events,
        )
        url = signer.generate_presigned_url(
            request, region_name=aws.region, expires_in=SIGNATURE_SECONDS, operation_name=""
        )
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def exec_credential(token: str, now: datetime) -> dict[str, Any]:
    """Return the ExecCredential that kubectl expects from a credential plugin."""
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "spec": {},
        "status": {
            "expirationTimestamp": (now.astimezone(UTC) + LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "token": token,
        },
    }
