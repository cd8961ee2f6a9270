"""The quota of each instance family is compared with the nodes before anything is created."""

from __future__ import annotations

import re
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from paddlejob.cloud.aws.capacity import quota_problems
from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws

from .kinds import Configured

# The quotas of EC2 as Service Quotas lists them; the name says which families it is for.
ON_DEMAND = {
    "L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-DB2E81BA": "Running On-Demand G and VT instances",
    "L-417A185B": "Running On-Demand P instances",
}
SPOT = {
    "L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
    "L-3819A6DF": "All G and VT Spot Instance Requests",
    "L-7212CCBC": "All P Spot Instance Requests",
}
VCPUS = 8


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every quota is 15 vCPUs, and every type has 8; moto has no quotas of EC2. Lists what was asked for."""
    asked: list[str] = []

    def call(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        asked.append(operation)
        if operation == "describe_instance_types":
            return {"InstanceTypes": [{"VCpuInfo": {"DefaultVCpus": VCPUS}}]}
        assert request["ServiceCode"] == "ec2"
        return {"Quota": {"QuotaName": {**ON_DEMAND, **SPOT}[request["QuotaCode"]], "Value": 15.0}}

    monkeypatch.setattr(Aws, "call", call)
    return asked


def families(quota: str) -> set[str]:
    """The families in the name of a quota; the types of gr6 have the GPUs of g6."""
    named = {letters.lower() for letters in re.findall(r"\b[A-Z]{1,2}\b", quota)}
    return named | {"gr"} if "g" in named else named


@pytest.mark.parametrize(("spot", "quotas"), [(False, ON_DEMAND), (True, SPOT)])
@pytest.mark.usefixtures("asked")
def test_nodes_of_each_family_are_compared_with_the_quota_that_names_it(
    configured: Configured, spot: bool, quotas: dict[str, str]
) -> None:
    one_of_each = {re.match(r"[a-z]+", name).group(): name for name in INSTANCE_TYPES}  # type: ignore[union-attr]
    for name in quotas.values():
        for family in families(name) & {*one_of_each}:
            config = configured(workerInstanceType=one_of_each[family], workerCount=2, workerSpot=spot)
            (problem,) = quota_problems(Aws("us-west-2"), config)
            assert f"need 16 vCPUs, and the quota {name!r} is 15; lower workerCount, or request an increase" in problem


def test_a_single_node_can_exceed_a_quota_and_no_node_cannot(
    configured: Configured, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quota_problems(Aws("us-west-2"), configured(workerCount=1)) == []
    asked.clear()
    assert quota_problems(Aws("us-west-2"), configured(workerCount=0)) == []
    assert asked == [], "there is nothing to compare"
    monkeypatch.setattr("tests.aws.test_quotas.VCPUS", 96)
    (problem,) = quota_problems(Aws("us-west-2"), configured(workerCount=1))
    assert problem.startswith("workerCount: 1 x m5.xlarge need 96 vCPUs")


def test_a_family_whose_quota_is_not_known_is_not_compared_with_that_of_another(
    configured: Configured, asked: list[str]
) -> None:
    for name in ("hpc7a.96xlarge", "trn1.32xlarge", "inf2.xlarge", "x1.16xlarge"):
        assert quota_problems(Aws("us-west-2"), configured(workerInstanceType=name, workerCount=9)) == []
    assert asked == []


def test_whoever_may_not_read_quotas_is_not_kept_from_creating_a_cluster(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> dict[str, Any]:
        raise AwsError("AWS denied servicequotas:get_service_quota", "AccessDeniedException", "no")

    monkeypatch.setattr(Aws, "call", denied)
    assert quota_problems(Aws("us-west-2"), configured(workerCount=9)) == []
