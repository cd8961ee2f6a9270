"""Test-only: EKS resources of a stack, which moto's CloudFormation lacks.

Clusters and node groups are made in moto's own EKS backend. Add-ons and access entries, of which moto knows nothing,
are only written down in `made`.
"""

from __future__ import annotations

from typing import Any

from moto.cloudformation.exceptions import ValidationError
from moto.core.common_models import CloudFormationModel
from moto.ec2.models import ec2_backends
from moto.eks.models import eks_backends


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
            tags={tag["Key"]: tag["Value"] for tag in properties["Tags"]},
            encryption_config=[
                {"resources": secrets["Resources"], "provider": {"keyArn": secrets["Provider"]["KeyArn"]}}
            ],
        )
        if properties.get("ComputeConfig", {}).get("Enabled"):
            made_auto_mode(eks.clusters[properties["Name"]])
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


def made_auto_mode(cluster: Any) -> None:
    """moto knows no Auto Mode, and describes a cluster by its attributes."""
    cluster.compute_config = {"enabled": True}


class EksNodegroup(_Resource):
    TYPE = "AWS::EKS::Nodegroup"
    made_with = ("InstanceTypes", "AmiType", "CapacityType", "Subnets")
    rollback_disabled = False

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
        if any(properties[name] != original_resource.properties[name] for name in cls.made_with):
            return cls._replaced(original_resource, cloudformation_json, account_id, region_name)
        group = eks_backends[account_id][region_name].describe_nodegroup(
            properties["ClusterName"], original_resource.name
        )
        group.scaling_config = _scaling(properties)
        return original_resource

    @classmethod
    def _replaced(cls, old: EksNodegroup, cloudformation_json: Any, account: str, region: str) -> EksNodegroup:
        if cls.rollback_disabled:
            raise ValidationError(message="Replacement type updates not supported on stack with disable-rollback.")
        new = cls.create_from_cloudformation_json(f"{old.name}x", cloudformation_json, account, region)
        old.delete(account, region)
        return new

    def delete(self, account: str, region: str) -> None:
        eks_backends[account][region].delete_nodegroup(self.properties["ClusterName"], self.name)


def _present(values: list[str | None]) -> list[str]:
    """moto leaves None in a list where the template has AWS::NoValue."""
    return [value for value in values if value]


def _scaling(properties: dict[str, Any]) -> dict[str, int]:
    return {name[0].lower() + name[1:]: int(value) for name, value in properties["ScalingConfig"].items()}


RESOURCES: list[type[Any]] = [
    EksCluster,
    EksNodegroup,
    _plain("AWS::EKS::Addon", "AddonName"),
    _plain("AWS::EKS::AccessEntry", "PrincipalArn"),
    _plain("AWS::EKS::PodIdentityAssociation", "ServiceAccount"),
]
made = _Resource.made
