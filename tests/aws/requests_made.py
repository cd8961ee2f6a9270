"""Which requests `pdj aws` can make, read from its source, and which it makes, recorded while it runs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from botocore.client import BaseClient

import paddlejob.cloud.aws

from .aws_state import client

PACKAGE = Path(paddlejob.cloud.aws.__file__).parent
PREFIX = {
    "service-quotas": "servicequotas",
    "elbv2": "elasticloadbalancing",
    "elb": "elasticloadbalancing",
    "efs": "elasticfilesystem",
}
# As IAM spells these.
SPELLED = {"s3:ListObjectsV2": "s3:ListBucket", "s3:ListObjectVersions": "s3:ListBucketVersions"}
SPELLED_ALSO = {"s3:DeleteObjects": ["s3:DeleteObject", "s3:DeleteObjectVersion"]}
FOR_EVERYONE = "sts:GetCallerIdentity"


class Request(NamedTuple):
    action: str
    resource: str


@functools.cache
def in_source() -> frozenset[str]:
    """Every operation named in the source: in requests of Aws, in Stack.start, and in functions that pass them on."""
    calls = [
        node
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    return {
        action for call in calls for service, operation in _operation(call) for action in spelled(service, operation)
    }


def _operation(call: ast.Call) -> list[tuple[str, str]]:
    names = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in ("call", "items", "iterate", "find") and len(names) >= 2:
        return [(str(names[0]), _camel(str(names[0]), str(names[1])))]
    if name == "start" and names:
        return [("cloudformation", _camel("cloudformation", str(names[0])))]
    return []


def _camel(service: str, operation: str) -> str:
    return str(client(service).meta.method_to_api_mapping[operation])


def spelled(service: str, operation: str) -> list[str]:
    action = f"{PREFIX.get(service, service)}:{operation}"
    return SPELLED_ALSO.get(action) or [SPELLED.get(action, action)]


def record(monkeypatch: pytest.MonkeyPatch) -> set[Request]:
    """Every request of `pdj aws` from now on, with the ARN that IAM would compare with the policy."""
    made: set[Request] = set()
    plainly = BaseClient._make_api_call

    def recording(self: Any, operation: str, params: dict[str, Any]) -> Any:
        service = self.meta.service_model.service_name
        if self.meta.config.user_agent_extra != "paddlejob":  # a request of the test
            return plainly(self, operation, params)
        made.update(Request(action, _arn(service, params)) for action in spelled(service, operation))
        return plainly(self, operation, params)

    monkeypatch.setattr(BaseClient, "_make_api_call", recording)
    return made


def _arn(service: str, params: dict[str, Any]) -> str:
    find: dict[str, Callable[[], str]] = {
        "cloudformation": lambda: f"stack/{params['StackName'].split('/')[-2:][0]}/1",
        "eks": lambda: _eks(params),
        "iam": lambda: params.get("PolicyArn", "*"),
        "kms": lambda: params.get("KeyId", "*"),
        "ssm": lambda: f"arn:aws:ssm:us-west-2::parameter{params['Name']}",
        "ec2": lambda: _interface(params),
        "s3": lambda: "/".join(filter(None, (params.get("Bucket"), params.get("Key")))),
    }
    resource = find[service]() if service in find else "*"
    if service in ("cloudformation", "eks") and resource != "*":
        return f"arn:aws:{service}:us-west-2:123456789012:{resource}"
    return f"arn:aws:s3:::{resource}" if service == "s3" else resource


def _interface(params: dict[str, Any]) -> str:
    name = params.get("NetworkInterfaceId")
    return f"arn:aws:ec2:us-west-2:123456789012:network-interface/{name}" if name else "*"


def _eks(params: dict[str, Any]) -> str:
    cluster = params.get("clusterName") or params.get("name")
    if not cluster:
        return "*"
    group = params.get("nodegroupName")
    return f"nodegroup/{cluster}/{group}/1" if group else f"cluster/{cluster}"
