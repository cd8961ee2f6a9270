"""The permissions boundary of a cluster's roles: the most that any of them can do, whatever its policies say.

An administrator creates it once, as the managed policy NAME-boundary. The holder of the printed policy can create roles
only with this boundary, and cannot change it.
"""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws

# The actions of the managed policies that the templates attach, but for ec2:ModifyInstanceAttribute: EKS does without
# it, and it can change what other instances of the account run when they start.
_ACTIONS = {
    "autoscaling": "DescribeAutoScalingGroups UpdateAutoScalingGroup",
    "ec2": (
        "Describe* AssignPrivateIpAddresses UnassignPrivateIpAddresses AttachNetworkInterface CreateNetworkInterface "
        "DeleteNetworkInterface DetachNetworkInterface ModifyNetworkInterfaceAttribute AttachVolume CreateVolume "
        "DeleteVolume DetachVolume ModifyVolume AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress "
        "CreateSecurityGroup DeleteSecurityGroup CreateRoute DeleteRoute CreateTags"
    ),
    "ec2messages": "*",
    "ecr": "GetAuthorizationToken BatchGetImage GetDownloadUrlForLayer BatchImportUpstreamImage",
    "eks": "DescribeCluster",
    "eks-auth": "AssumeRoleForPodIdentity",
    "elasticfilesystem": "Describe* CreateAccessPoint DeleteAccessPoint TagResource",
    "elasticloadbalancing": "*",
    "kms": "DescribeKey",
    "ssm": (
        "DescribeAssociation GetDeployablePatchSnapshotForInstance GetDocument DescribeDocument GetManifest "
        "GetParameter GetParameters ListAssociations ListInstanceAssociations PutInventory PutComplianceItems "
        "PutConfigurePackageResult UpdateAssociationStatus UpdateInstanceAssociationStatus UpdateInstanceInformation"
    ),
    "ssmmessages": "*",
}
_BUCKET = "ListBucket GetBucketLocation GetObject PutObject DeleteObject AbortMultipartUpload"


def partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def boundary_arn(region: str, account: str, cluster: str) -> str:
    return f"arn:{partition(region)}:iam::{account}:policy/{cluster}-boundary"


def boundary(config: ClusterConfig) -> dict[str, Any]:
    """Return the policy document of the boundary."""
    bucket = f"arn:{partition(config.region)}:s3:::{config.cluster_name.lower()}-data-*"
    linked = {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}}
    statements = [
        {"Sid": "Cluster", "Effect": "Allow", "Action": actions(_ACTIONS), "Resource": "*"},
        {"Sid": "Bucket", "Effect": "Allow", "Action": actions({"s3": _BUCKET}), "Resource": bucket},
        {
            "Sid": "LoadBalancers",
            "Effect": "Allow",
            "Action": "iam:CreateServiceLinkedRole",
            "Resource": "*",
            "Condition": linked,
        },
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def find_boundary(aws: Aws, cluster: str) -> str:
    """Return the ARN of the boundary, or an empty string if the account has none for this cluster."""
    arn = boundary_arn(aws.region, aws.account(), cluster)
    try:
        aws.call("iam", "get_policy", PolicyArn=arn)
    except AwsError as error:
        if error.code in ("NoSuchEntity", "AccessDenied"):
            return ""
        raise
    return arn


def actions(of_services: dict[str, str]) -> list[str]:
    return [f"{service}:{action}" for service, names in of_services.items() for action in names.split()]
