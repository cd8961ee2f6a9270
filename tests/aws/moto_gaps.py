"""Test-only: what moto's CloudFormation lacks for our template.

moto knows EKS clusters and node groups by their API, but not as resources of a stack, and it knows no EKS add-ons
and access entries at all (moto_eks.py); it lacks rules of stacks that we rely on (moto_stacks.py); it cannot delete
several EC2 and Route 53 resources of a stack, and deletes a subnet that is in use (here). `fill` adds just that, on
moto's own backends, for as long as a test runs. A resource that goes is really removed from its backend, so that a
test can ask the API what is left.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.core.common_models import CloudFormationModel
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.security_groups import SecurityGroupIngress
from moto.ec2.models.subnets import Subnet, SubnetRouteTableAssociation
from moto.ec2.models.vpcs import VPCEndPoint
from moto.ec2.models.vpn_gateway import VPCGatewayAttachment
from moto.efs.models import FileSystem
from moto.route53.models import FakeZone, route53_backends
from moto.s3.models import FakeBucket

from . import moto_eks, moto_stacks
from .answers import answer


def _delete_attachment(self: VPCGatewayAttachment, account: str, region: str) -> None:
    ec2 = ec2_backends[account][region]
    for gateway in ec2.internet_gateways.values():
        if gateway.vpc and gateway.vpc.id == self.vpc_id:
            ec2.detach_internet_gateway(gateway.id, self.vpc_id)
            return


def _delete_association(self: SubnetRouteTableAssociation, account: str, region: str) -> None:
    ec2 = ec2_backends[account][region]
    ec2.subnet_associations.pop(f"{self.route_table_id}:{self.subnet_id}")


def _delete_route(self: Route, account: str, region: str) -> None:
    self.route_table.routes.pop(self.id, None)


def _delete_nat(self: NatGateway, account: str, region: str) -> None:
    ec2 = ec2_backends[account][region]
    ec2.delete_nat_gateway(self.id)
    ec2.delete_network_interface(self._eni.id)


def _delete_subnet(self: Subnet, account: str, region: str) -> None:
    ec2 = ec2_backends[account][region]
    if any(interface.subnet.id == self.id for interface in ec2.enis.values()):
        raise ValidationError(message=f"The subnet '{self.id}' has dependencies and cannot be deleted.")
    ec2.delete_subnet(self.id)


_DELETIONS = {
    Subnet: _delete_subnet,
    VPCGatewayAttachment: _delete_attachment,
    SubnetRouteTableAssociation: _delete_association,
    NatGateway: _delete_nat,
    ElasticAddress: lambda self, a, r: ec2_backends[a][r].release_address(allocation_id=self.allocation_id),
    InternetGateway: lambda self, a, r: ec2_backends[a][r].delete_internet_gateway(self.id),
    Route: _delete_route,
    RouteTable: lambda self, a, r: ec2_backends[a][r].delete_route_table(self.id),
    SecurityGroupIngress: lambda self, a, r: None,
    VPCEndPoint: lambda self, a, r: ec2_backends[a][r].vpc_end_points.pop(self.id, None),
    FakeZone: lambda self, a, r: route53_backends[a]["aws"].delete_hosted_zone(self.physical_resource_id),
}


class BucketPolicy(CloudFormationModel):
    """Only written down: moto does not evaluate its condition, and would deny every request."""

    def __init__(self, bucket: str) -> None:
        self.physical_resource_id = bucket

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::S3::BucketPolicy"

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, *_: Any, **__: Any
    ) -> BucketPolicy:
        bucket = cloudformation_json["Properties"]["Bucket"]
        moto_eks.made["AWS::S3::BucketPolicy"] = cloudformation_json["Properties"]["PolicyDocument"]
        return cls(bucket)

    @staticmethod
    def update_from_cloudformation_json(original_resource: Any, *_: Any, **__: Any) -> Any:
        return original_resource

    def delete(self, account: str, region: str) -> None:
        moto_eks.made.pop("AWS::S3::BucketPolicy", None)


def fill(patch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Add the missing parts. Returns what exists of the kinds that moto has no API for, by type and name."""
    moto_eks.made.clear()
    kinds = {model.cloudformation_type(): model for model in (*moto_eks.RESOURCES, BucketPolicy)}
    known, names = {**parsing.get_model_map(), **kinds}, {**parsing.get_name_type_map(), **dict.fromkeys(kinds, "")}
    patch.setattr(parsing, "get_model_map", lambda: known)
    patch.setattr(parsing, "get_name_type_map", lambda: names)
    for kind, delete in _DELETIONS.items():
        patch.setattr(kind, "delete", delete, raising=False)
    for kind in (FakeBucket, FileSystem):
        patch.setattr(kind, "update_from_cloudformation_json", staticmethod(_stays_as_it_is), raising=False)
    moto_stacks.obey(patch)
    answer(patch, "GetProducts", _price_list)
    return moto_eks.made


# Those of Oregon, by service and usage type, as AWS spells them.
PRICES = {
    ("AmazonEC2", "USW2-BoxUsage:m5.xlarge"): 0.192,
    ("AmazonEC2", "USW2-BoxUsage:g4dn.xlarge"): 0.526,
    ("AmazonEKS", "USW2-AmazonEKS-Hours:perCluster"): 0.10,
    ("AmazonEC2", "USW2-EBS:VolumeUsage.gp3"): 0.08,
    ("AmazonEC2", "USW2-NatGateway-Hours"): 0.045,
    ("AmazonEC2", "USW2-NatGateway-Bytes"): 0.0451,
    ("AmazonVPC", "USW2-PublicIPv4:InUseAddress"): 0.005,
    ("awskms", "us-west-2-KMS-Keys"): 1.0,
    ("AmazonRoute53", "HostedZone"): 0.5,
    ("AmazonEFS", "USW2-IATimedStorage-ByteHrs"): 9.0,
    ("AmazonEFS", "USW2-TimedStorage-ByteHrs"): 0.30,
    ("AmazonEFS", "USW2-ETDataAccess-Bytes/Read"): 0.03,
    ("AmazonEFS", "USW2-ETDataAccess-Bytes/Write"): 0.06,
    ("AmazonS3", "USW2-TimedStorage-ByteHrs"): 0.023,
}


def _price_list(request: dict[str, Any]) -> dict[str, Any]:
    """moto has no price list. This one has the shape of AWS' own, and answers the filters that are asked with."""
    wanted = {one["Field"]: one["Value"] for one in request["Filters"]}
    access = wanted.get("accessType", "")
    found = [
        price_list_entry(price, usage)
        for (code, name), price in PRICES.items()
        for usage, _, kind in [name.partition("/")]
        if code == request["ServiceCode"] and wanted["usagetype"] in usage and kind == access
    ]
    return {"PriceList": found}


def price_list_entry(*prices: float | str) -> str:
    """A product with one price, or several in tiers, and its usage type as the last argument."""
    *tiers, usage = prices
    units = {str(n): {"unit": "x", "pricePerUnit": {"USD": f"{price:.10f}"}} for n, price in enumerate(tiers)}
    product = {"attributes": {"usagetype": usage}}
    return json.dumps({"product": product, "terms": {"OnDemand": {"A.B": {"priceDimensions": units}}}})


def _stays_as_it_is(original_resource: Any, **_: Any) -> Any:
    """An update of tags: moto demands a bucket's name for it, and loses a file system altogether."""
    return original_resource
