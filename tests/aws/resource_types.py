"""The rights that CloudFormation needs for the resources of a template, by the published schemas of their types."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.templates import render

# Rights that a resource type asks for features that the template does not use.
UNUSED = (
    *("s3tables:*", "s3:*Abac", "s3:*Acl", "s3:*Accelerate*", "s3:*Analytics*", "s3:*Annotation*", "s3:*CORS"),
    *("s3:*Cors", "s3:*Inventory*", "s3:*Journal*", "s3:*Lock*", "s3:*Logging"),
    *("s3:*MetadataTable*", "s3:*Metrics*", "s3:*Notification", "s3:*OwnershipControls", "s3:*Replication*"),
    *("s3:*Tiering*", "s3:*Versioning", "s3:*Website", "s3:DeleteBucketEncryption", "s3:DeleteBucketLifecycle"),
    *("elasticfilesystem:*Replication*", "elasticfilesystem:*Protection"),
    *("elasticfilesystem:DeleteTags", "elasticfilesystem:PutBackupPolicy"),
    *("kms:GenerateDataKeyWithoutPlaintext", "kms:EnableKey"),
    *(
        "kms:DisableKey*",
        "kms:UpdateKeyDescription",
        "iam:*Group*",
        "iam:*User*",
        "iam:DeleteRolePermissionsBoundary",
        "iam:UpdateAssumeRolePolicy",
    ),
    *("iam:*InstanceProfile", "iam:UpdateRole*", "route53:*QueryLogging*", "route53:*Features"),
    *("route53:DisassociateVPC*", "route53:UpdateHostedZoneComment", "ec2:*Vpn*", "ec2:*PrivateNatGatewayAddress"),
    *("ec2:*NatGatewayAddress", "ec2:*EncryptionControl", "ec2:*SubnetCidrBlock", "ec2:*Tenancy"),
    *("ec2:AcceptAddressTransfer", "ec2:ReplaceRouteTableAssociation", "ec2:UpdateSecurityGroupRuleDescriptions*"),
    *("eks:ActivateCertificateAuthority", "vpc-lattice:*", "vpce:*"),
    "ec2:DeleteTags",  # The tags of a template do not change.
)


def matches(action: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in patterns)


def asked_by(templates: str) -> set[str]:
    """The actions that the resource types ask for, but for features that the templates do not use."""
    types = set(re.findall(r"Type: (AWS::\w+::\w+)", templates))
    assert types
    return {
        action
        for name in types
        for does, handler in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", name).schema["handlers"].items()
        for action in handler["permissions"]
        if does != "list"  # of every resource in the account, which a stack does not do
        if not matches(action, UNUSED)
    }


def templates(config: ClusterConfig) -> str:
    """Those of both stacks of a cluster."""
    values = render.parameters(config, AdministratorArn="arn:aws:iam::123456789012:role/me", BoundaryArn="arn")
    cluster = render.cluster_template(config, values | render.from_data({}))
    return cluster.text + render.data_template(config.cluster_name, boundary="arn").text


def attached_templates(cluster: str) -> str:
    """Those of both stacks of an attachment."""
    values = {"ClusterName": cluster, "VpcId": "vpc-1", "SecurityGroup": "sg-1", **render.from_data({})}
    attachment = render.attachment_template(values, ["subnet-1"])
    return attachment.text + render.data_template(cluster, boundary="arn").text
