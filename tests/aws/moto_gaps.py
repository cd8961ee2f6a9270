"""Test-only: what moto's CloudFormation lacks for our template.

moto knows EKS clusters and node groups by their API, but not as resources of a stack; it knows no EKS
add-ons and access entries at all; it cannot delete several EC2 and Route 53 resources of a stack, and it
ignores termination protection; of parameters that are lists it loses AWS::NoValue, and that an update changes
nothing. `fill` adds just that, on moto's own backends, for as long as a test runs.
A resource that goes is really removed from its backend, so that a test can ask the API what is left.
"""

from __future__ import annotations

from typing import Any

import pytest
from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend, Stack
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.common_models import CloudFormationModel
from moto.core.responses import EmptyResult
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.security_groups import SecurityGroupIngress
from moto.ec2.models.subnets import SubnetRouteTableAssociation
from moto.ec2.models.vpn_gateway import VPCGatewayAttachment
from moto.efs.models import FileSystem
from moto.eks.models import eks_backends
from moto.route53.models import FakeZone, route53_backends
from moto.s3.models import FakeBucket


class _Resource(CloudFormationModel):
    """What the EKS resources below share. `made` are all that exist, for tests to look at."""

    TYPE = ""
    made: dict[str, dict[str, Any]] = {}  # noqa: RUF012

    def __init__(self, name: str, properties: dict[str, Any], account: str, region: str) -> None:
        self.name = name
        self.properties = properties
        self.account, self.region = account, region

    @property
    def physical_resource_id(self) -> str:
        return self.name

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return True

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    def delete(self, account: str, region: str) -> None:
        self.made.pop(f"{self.TYPE}/{self.name}", None)

    @classmethod
    def update_from_cloudformation_json(
        cls, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> Any:
        original_resource.properties = cloudformation_json["Properties"]
        return original_resource


def _plain(kind: str, identity: str) -> type[CloudFormationModel]:
    """A resource that is nothing but its properties."""

    class Plain(_Resource, CloudFormationModel):
        TYPE = kind

        @staticmethod
        def cloudformation_type() -> str:
            return kind

        @classmethod
        def create_from_cloudformation_json(
            cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **_: Any
        ) -> Any:
            properties = cloudformation_json["Properties"]
            made = cls(f"{properties['ClusterName']}/{properties[identity]}", properties, account_id, region_name)
            cls.made[f"{kind}/{made.name}"] = properties
            return made

    return Plain


class EksCluster(_Resource):
    TYPE = "AWS::EKS::Cluster"
    security_group = ""

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::EKS::Cluster"

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **_: Any
    ) -> EksCluster:
        properties = cloudformation_json["Properties"]
        network = properties["ResourcesVpcConfig"]
        eks, ec2 = eks_backends[account_id][region_name], ec2_backends[account_id][region_name]
        vpc = ec2.get_subnet(network["SubnetIds"][0]).vpc_id
        group = ec2.create_security_group(
            f"eks-cluster-sg-{properties['Name']}", "made by EKS", vpc_id=vpc, is_default=False
        )
        group.add_tag("aws:eks:cluster-name", properties["Name"])
        (secrets,) = properties["EncryptionConfig"]
        eks.create_cluster(
            name=properties["Name"],
            role_arn=properties["RoleArn"],
            resources_vpc_config={
                "subnetIds": _present(network["SubnetIds"]),
                "vpcId": vpc,
                "clusterSecurityGroupId": group.id,
            },
            version=properties.get("Version"),
            encryption_config=[
                {"resources": secrets["Resources"], "provider": {"keyArn": secrets["Provider"]["KeyArn"]}}
            ],
        )
        cluster = cls(properties["Name"], properties, account_id, region_name)
        cluster.security_group = group.id
        return cluster

    def get_cfn_attribute(self, attribute_name: str) -> str:
        cluster = eks_backends[self.account][self.region].describe_cluster(self.name)
        return {
            "Arn": cluster.arn,
            "Endpoint": cluster.endpoint.rstrip("/"),
            "ClusterSecurityGroupId": self.security_group,
        }[attribute_name]

    def delete(self, account: str, region: str) -> None:
        # moto deletes in any order and tries again what failed, so a second call must find what is left.
        eks, ec2 = eks_backends[account][region], ec2_backends[account][region]
        if self.name in eks.clusters:
            eks.delete_cluster(self.name)
        ec2.delete_security_group(group_id=self.security_group)


class EksNodegroup(_Resource):
    TYPE = "AWS::EKS::Nodegroup"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::EKS::Nodegroup"

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **_: Any
    ) -> EksNodegroup:
        properties = cloudformation_json["Properties"]
        eks_backends[account_id][region_name].create_nodegroup(
            cluster_name=properties["ClusterName"],
            node_role=properties["NodeRole"],
            nodegroup_name=resource_name,
            subnets=_present(properties["Subnets"]),
            scaling_config=_scaling(properties),
            instance_types=properties["InstanceTypes"],
            ami_type=properties["AmiType"],
            capacity_type=properties["CapacityType"],
        )
        return cls(resource_name, properties, account_id, region_name)

    @property
    def physical_resource_id(self) -> str:
        return f"{self.properties['ClusterName']}/{self.name}"

    @classmethod
    def update_from_cloudformation_json(
        cls, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> Any:
        properties = cloudformation_json["Properties"]
        group = eks_backends[account_id][region_name].describe_nodegroup(
            properties["ClusterName"], original_resource.name
        )
        group.scaling_config = _scaling(properties)
        return original_resource

    def delete(self, account: str, region: str) -> None:
        eks_backends[account][region].delete_nodegroup(self.properties["ClusterName"], self.name)


def _present(values: list[str | None]) -> list[str]:
    """moto leaves None in a list where the template has AWS::NoValue."""
    return [value for value in values if value]


def _scaling(properties: dict[str, Any]) -> dict[str, int]:
    return {name[0].lower() + name[1:]: int(value) for name, value in properties["ScalingConfig"].items()}


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


_DELETIONS = {
    VPCGatewayAttachment: _delete_attachment,
    SubnetRouteTableAssociation: _delete_association,
    NatGateway: _delete_nat,
    ElasticAddress: lambda self, a, r: ec2_backends[a][r].release_address(allocation_id=self.allocation_id),
    InternetGateway: lambda self, a, r: ec2_backends[a][r].delete_internet_gateway(self.id),
    Route: _delete_route,
    RouteTable: lambda self, a, r: ec2_backends[a][r].delete_route_table(self.id),
    SecurityGroupIngress: lambda self, a, r: None,
    FakeZone: lambda self, a, r: route53_backends[a]["aws"].delete_hosted_zone(self.physical_resource_id),
}


def fill(patch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Add the missing parts. Returns what exists of the kinds that moto has no API for, by type and name."""
    _Resource.made.clear()
    models = [
        EksCluster,
        EksNodegroup,
        _plain("AWS::EKS::Addon", "AddonName"),
        _plain("AWS::EKS::AccessEntry", "PrincipalArn"),
    ]
    known = {**parsing.get_model_map(), **{model.cloudformation_type(): model for model in models}}
    names = {**parsing.get_name_type_map(), **{model.cloudformation_type(): "" for model in models}}
    patch.setattr(parsing, "get_model_map", lambda: known)
    patch.setattr(parsing, "get_name_type_map", lambda: names)
    for kind, delete in _DELETIONS.items():
        patch.setattr(kind, "delete", delete, raising=False)
    for kind in (FakeBucket, FileSystem):
        patch.setattr(kind, "update_from_cloudformation_json", staticmethod(_stays_as_it_is), raising=False)
    _protect(patch)
    patch.setattr(CloudFormationResponse, "_validate_different_update", _refuse_an_update_without_change)
    return _Resource.made


def _stays_as_it_is(original_resource: Any, **_: Any) -> Any:
    """An update of tags: moto demands a bucket's name for it, and loses a file system altogether."""
    return original_resource


def _refuse_an_update_without_change(
    _: CloudFormationResponse, parameters: list[dict[str, Any]], template: str, stack: Stack
) -> None:
    """moto compares a list parameter's text with its parts, and so never sees that nothing has changed."""
    given = {p["ParameterKey"]: p["ParameterValue"] for p in parameters if "ParameterValue" in p}
    if stack.template == template and all(stack.parameters.get(name) == value for name, value in given.items()):
        raise ValidationError(stack.name, message="No updates are to be performed.")


def _protect(patch: pytest.MonkeyPatch) -> None:
    plainly = CloudFormationBackend.delete_stack

    def delete_stack(self: CloudFormationBackend, name_or_stack_id: str) -> None:
        if self.get_stack(name_or_stack_id).enable_termination_protection:
            raise ValidationError(
                message=f"Stack [{name_or_stack_id}] cannot be deleted while TerminationProtection is enabled"
            )
        plainly(self, name_or_stack_id)

    def update_termination_protection(self: CloudFormationResponse) -> EmptyResult:
        stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
        stack.enable_termination_protection = self._get_bool_param("EnableTerminationProtection")
        return EmptyResult()

    patch.setattr(CloudFormationBackend, "delete_stack", delete_stack)
    patch.setattr(CloudFormationResponse, "update_termination_protection", update_termination_protection, raising=False)
