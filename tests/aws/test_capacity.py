"""EFA and capacity reservations: what EC2 says of them decides the nodes, and what does not fit is reported."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws.capacity import capacity_type, efa_interfaces, reservation_problems
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import BadInput

from .kinds import Configured

RESERVED = {
    "workerInstanceType": "p5.48xlarge",
    "workerCount": 2,
    "capacityReservationId": "cr-0123456789abcdef0",
}
FITS = {
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-west-2a",
    "TotalInstanceCount": 2,
    "State": "active",
    "ReservationType": "capacity-block",
}


@pytest.fixture
def aws() -> Aws:
    return Aws("us-west-2")


def described(aws: Aws, *reservations: dict[str, Any]) -> Stubber:
    ec2 = Stubber(aws.client("ec2"))
    wanted = {"CapacityReservationIds": ["cr-0123456789abcdef0"]}
    ec2.add_response("describe_capacity_reservations", {"CapacityReservations": list(reservations)}, wanted)
    return ec2


@pytest.mark.parametrize(("name", "count"), [("p4d.24xlarge", "4"), ("p5.48xlarge", "32")])
@pytest.mark.usefixtures("made")
def test_a_node_has_as_many_efa_interfaces_as_its_type_allows(
    configured: Configured, aws: Aws, name: str, count: str
) -> None:
    assert efa_interfaces(aws, configured(workerInstanceType=name, efa=True)) == count
    assert efa_interfaces(aws, configured(workerInstanceType=name)) == ""


def test_a_type_whose_interfaces_ec2_does_not_count_has_one(configured: Configured, aws: Aws) -> None:
    with Stubber(aws.client("ec2")) as ec2:
        ec2.add_response("describe_instance_types", {"InstanceTypes": [{"NetworkInfo": {"EfaSupported": True}}]})
        assert efa_interfaces(aws, configured(workerInstanceType="hpc6a.48xlarge", efa=True)) == "1"


@pytest.mark.usefixtures("made")
def test_a_type_without_efa_is_rejected(configured: Configured, aws: Aws) -> None:
    with pytest.raises(BadInput, match=r"efa: m5.xlarge has no EFA; remove efa, or use a type such as p5.48xlarge"):
        efa_interfaces(aws, configured(efa=True))


@pytest.mark.parametrize(("kind", "expected"), [("capacity-block", "CAPACITY_BLOCK"), ("default", "")])
def test_a_capacity_block_is_asked_for_as_such(configured: Configured, aws: Aws, kind: str, expected: str) -> None:
    with described(aws, {**FITS, "ReservationType": kind}):
        assert capacity_type(aws, configured(**RESERVED)) == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"State": "scheduled"}, "is scheduled"),
        ({"State": "expired"}, "is expired"),
        ({"InstanceType": "p4d.24xlarge"}, "is for p4d.24xlarge, not for p5.48xlarge"),
        ({"AvailabilityZone": "us-west-2b"}, "is for us-west-2b, not for us-west-2a"),
        ({"TotalInstanceCount": 1}, "has 1 instances, and workerCount is 2"),
    ],
)
def test_a_reservation_that_does_not_fit_is_reported_before_anything_is_created(
    configured: Configured, aws: Aws, change: dict[str, Any], problem: str | None
) -> None:
    with described(aws, {**FITS, **change}):
        found = reservation_problems(aws, configured(**RESERVED))
    name = "capacityReservationId: cr-0123456789abcdef0"
    expected = [f"{name} {problem}; change cluster.yaml, or use another reservation"] if problem else []
    assert found == expected


def test_a_reservation_that_does_not_exist_is_reported(configured: Configured, aws: Aws) -> None:
    with Stubber(aws.client("ec2")) as ec2:
        ec2.add_client_error("describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")
        (problem,) = reservation_problems(aws, configured(**RESERVED))
    assert problem.endswith("does not exist in us-west-2; use another, or omit it")


def test_without_a_reservation_nothing_is_asked(configured: Configured, aws: Aws) -> None:
    with Stubber(aws.client("ec2")):
        assert (capacity_type(aws, configured()), reservation_problems(aws, configured())) == ("", [])
