"""The one way to AWS: every request of this package goes through `Aws.call` or `Aws.items`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paddlejob.errors import NotPossible

from .refusals import Refused, translated

# Retries are botocore's: 8 tries with growing pauses for throttling and lost connections.
TRIES = 8


@dataclass
class Aws:
    """Clients of one region, made when they are needed."""

    region: str
    profile: str | None = None
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)
    _session: Any = field(default=None, repr=False)

    def session(self) -> Any:
        if self._session is None:
            boto3 = import_boto3()
            with translated("credentials"):
                self._session = boto3.Session(region_name=self.region, profile_name=self.profile)
        return self._session

    def client(self, service: str) -> Any:
        if service not in self._clients:
            session = self.session()
            from botocore.config import Config

            config = Config(
                retries={"mode": "standard", "max_attempts": TRIES},
                connect_timeout=10,
                read_timeout=60,
                user_agent_extra="paddlejob",
            )
            with translated(service):
                self._clients[service] = session.client(service, config=config)
        return self._clients[service]

    def call(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """One request, with its errors in words."""
        client = self._client_for(service, operation)
        with translated(f"{service}:{operation}"):
            answer: dict[str, Any] = getattr(client, operation)(**request)
            return answer

    def items(self, service: str, operation: str, key: str, **request: Any) -> list[Any]:
        """The items of every page of a list."""
        client = self._client_for(service, operation)
        with translated(f"{service}:{operation}"):
            pages = client.get_paginator(operation).paginate(**request)
            return [item for page in pages for item in page.get(key) or []]

    def _client_for(self, service: str, operation: str) -> Any:
        client = self.client(service)
        if not hasattr(client, operation):
            raise NotPossible(f"this boto3 does not know {service}:{operation}; pip install --upgrade 'paddlejob[aws]'")
        return client

    def account(self) -> str:
        return str(self.call("sts", "get_caller_identity")["Account"])

    def caller_arn(self) -> str:
        """The IAM user or role that we are, as an access entry of EKS wants it."""
        identity = str(self.call("sts", "get_caller_identity")["Arn"])
        kind, _, name = identity.rpartition(":")[2].partition("/")
        if kind == "assumed-role":
            return self._role_arn(identity, name.split("/")[0])
        if kind != "user":
            raise NotPossible(
                f"{identity} can have no access entry in EKS; use an IAM user or role, or name one as "
                "administratorArn in cluster.yaml"
            )
        return identity

    def _role_arn(self, identity: str, role: str) -> str:
        # A session's ARN lacks the role's path, which roles of IAM Identity Center have.
        try:
            return str(self.call("iam", "get_role", RoleName=role)["Role"]["Arn"])
        except Refused:
            partition, account = identity.split(":")[1], identity.split(":")[4]
            return f"arn:{partition}:iam::{account}:role/{role}"


def import_boto3() -> Any:
    try:
        import boto3
    except ImportError:
        raise NotPossible("boto3 is not installed, and AWS needs it: pip install 'paddlejob[aws]'") from None
    return boto3
