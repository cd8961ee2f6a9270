"""The zones of an account: which of them can be used, and which becomes the second one of the control plane."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws import checks
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.zones import second_zone
from paddlejob.errors import NotPossible

from .kinds import Configured

USABLE = [
    {"Name": "state", "Values": ["available"]},
    {"Name": "zone-type", "Values": ["availability-zone"]},  # no Local Zones
]
# As EKS documents them: the first subnet of a control plane may be in none of these.
WITHOUT_CONTROL_PLANE = ["use1-az3", "usw1-az2", "cac1-az3"]


@pytest.fixture
def aws() -> Aws:
    return Aws("us-west-2")


def zones(aws: Aws, **ids: str) -> Stubber:
    """The zones of the region by their last letter, each with its id."""
    ec2 = Stubber(aws.client("ec2"))
    found = [{"ZoneName": f"us-west-2{letter}", "ZoneId": id} for letter, id in ids.items()]
    ec2.add_response("describe_availability_zones", {"AvailabilityZones": found}, {"Filters": USABLE})
    return ec2


def test_the_second_zone_is_the_first_that_is_free(aws: Aws, configured: Configured) -> None:
    with zones(aws, c="usw2-az3", b="usw2-az2", a="usw2-az1"):
        assert second_zone(aws, configured()) == "us-west-2b"


@pytest.mark.parametrize("id", WITHOUT_CONTROL_PLANE)
def test_a_zone_without_control_planes_is_not_chosen_and_where_the_user_chose_it_that_is_said(
    aws: Aws, configured: Configured, id: str
) -> None:
    with zones(aws, a="x-az1", b=id, c="x-az2"):
        assert second_zone(aws, configured()) == "us-west-2c"
    with zones(aws, a="x-az1", b=id, c="x-az2"):
        found = checks._missing_zones(aws, configured(availabilityZones=["us-west-2a", "us-west-2b"]))
    assert found == ["availabilityZones: EKS does not run control planes in us-west-2b; choose another zone"]


def test_a_region_with_one_zone_cannot_have_a_cluster(aws: Aws, configured: Configured) -> None:
    with zones(aws, a="x-az1"), pytest.raises(NotPossible, match="us-west-2 has no second zone for the control plane"):
        second_zone(aws, configured())


def test_the_zone_that_the_cluster_has_is_kept_without_asking(aws: Aws, configured: Configured) -> None:
    with Stubber(aws.client("ec2")):
        assert second_zone(aws, configured(), "us-west-2d") == "us-west-2d"
    with zones(aws, a="x-az1", b="x-az2"):
        assert second_zone(aws, configured(), "us-west-2a") == "us-west-2b", "it must not be the first one again"
