"""Requests to AWS. Every request of this package goes through `Aws.call` or `Aws.iterate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from paddlejob.cloud.aws.errors import AwsError, translate_errors
from paddlejob.errors import NotPossible

# botocore retries throttled and lost requests with exponential backoff.
MAX_ATTEMPTS = 8
Codes = str | tuple[str, ...]


@dataclass
class Aws:
    """boto3 clients of one region, created on first use."""

    region: str
    profile: str | None = None
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)
    _session: Any = field(default=None, repr=False)
    _identity: dict[str, Any] = field(default_factory=dict, repr=False)

    def session(self) -> Any:
        if self._session is None:
            boto3 = import_boto3()
            with translate_errors("credentials"):
                self._session = boto3.Session(region_name=self.region, profile_name=self.profile)
        return self._session

    def client(self, service: str) -> Any:
        if service not in self._clients:
            session = self.session()
            from botocore.config import Config

            config = Config(
                retries={"mode": "standard", "max_attempts": MAX_ATTEMPTS},
                connect_timeout=10,
                read_timeout=60,
                user_agent_extra="paddlejob",
            )
            with translate_errors(service):
                self._clients[service] = session.client(service, config=config)
        return self._clients[service]

    def call(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Send one request."""
        client = self._client_for(service, operation)
        with translate_errors(f"{service}:{operation}"):
            answer: dict[str, Any] = getattr(client, operation)(**request)
            return answer

    def find(self, service: str, operation: str, absent: Codes, **request: Any) -> dict[str, Any] | None:
        """Send one request. Returns None if AWS answers with an error code that begins with `absent`."""
        try:
            return self.call(service, operation, **request)
        except AwsError as error:
            if error.code.startswith(absent):
                return None
            raise

    def items(self, service: str, operation: str, key: str, absent: Codes = (), **request: Any) -> list[Any]:
        """Return the items of all pages of a list operation; none if AWS answers with a code of `absent`."""
        try:
            return [*self.iterate(service, operation, key, **request)]
        except AwsError as error:
            if error.code.startswith(absent):
                return []
            raise

    def iterate(self, service: str, operation: str, key: str, **request: Any) -> Iterator[Any]:
        """Yield the items of a list operation, fetching pages on demand."""
        client = self._client_for(service, operation)
        with translate_errors(f"{service}:{operation}"):
            for page in client.get_paginator(operation).paginate(**request):
                yield from page.get(key) or []

    def _client_for(self, service: str, operation: str) -> Any:
        client = self.client(service)
        if not hasattr(client, operation):
            raise NotPossible(
                f"boto3 is too old for {service}:{operation}; run `pip install --upgrade 'paddlejob[aws]'`"
            )
        return client

    def has_credentials(self) -> bool:
        with translate_errors("credentials"):
            return self.session().get_credentials() is not None

    def account(self) -> str:
        return str(self.identity()["Account"])

    def identity(self) -> dict[str, Any]:
        """Return who sends the requests."""
        if not self._identity:
            self._identity = self.call("sts", "get_caller_identity")
        return self._identity

    def caller_arn(self) -> str:
        """Return the ARN of the calling IAM user or role, in the form that an EKS access entry needs."""
        identity = str(self.identity()["Arn"])
        kind, _, name = identity.rpartition(":")[2].partition("/")
        if kind == "assumed-role":
            return self._role_arn(identity, name.split("/")[0])
        if kind != "user":
            raise NotPossible(
                f"{identity} cannot have an EKS access entry; use an IAM user or role, or set administratorArn in "
                "cluster.yaml"
            )
        return identity

    def _role_arn(self, identity: str, role: str) -> str:
        # The ARN of a session lacks the role's path, which roles of IAM Identity Center have.
        try:
            return str(self.call("iam", "get_role", RoleName=role)["Role"]["Arn"])
        except AwsError:
            partition, account = identity.split(":")[1], identity.split(":")[4]
            return f"arn:{partition}:iam::{account}:role/{role}"


def filters(wanted: dict[str, str]) -> list[dict[str, Any]]:
    """Return the filters of an EC2 request."""
    return [{"Name": name, "Values": value.split(",")} for name, value in wanted.items()]


def import_boto3() -> Any:
    try:
        import boto3
    except ImportError:
        raise NotPossible("boto3 is not installed; run `pip install 'paddlejob[aws]'`") from None
    return boto3
