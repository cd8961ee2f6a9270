"""The permissions boundary of a cluster's roles: the most that any of them can do, whatever its policies say.

An administrator creates it once, as the managed policy NAME-boundary. The holder of the printed policy can create roles
only with this boundary, and cannot change it. The kind of a role, which is in its path, decides what it can get: a role
for pods never gets what the control plane needs.
"""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.templates.compose import ADD_ON, CONTROL_PLANE, NODE, role_path

# The actions of the managed policies that the templates attach, by kind of role. EKS and sessions do without three that
# are left out: ec2:ModifyInstanceAttribute can change what other instances of the account run when they start, volumes
# are attached by Auto Mode only, and ssm:GetParameter reads secrets of others. The 43 on load balancers and the 22 that
# describe have a star, and so stay complete when AWS adds to its policies.
_DESCRIBE = "Describe*s DescribeInstanceTopology DescribeVpcClassicLink"
_INTERFACES = (
    "AssignPrivateIpAddresses UnassignPrivateIpAddresses AttachNetworkInterface CreateNetworkInterface "
    "DeleteNetworkInterface DetachNetworkInterface ModifyNetworkInterfaceAttribute CreateTags"
)
_KINDS = {
    CONTROL_PLANE: {
        "autoscaling": "DescribeAutoScalingGroups UpdateAutoScalingGroup",
        "ec2": (
            f"{_DESCRIBE} AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress CreateSecurityGroup "
            "DeleteSecurityGroup CreateRoute DeleteRoute CreateTags DeleteNetworkInterface"
        ),
        "elasticloadbalancing": "*",
        "kms": "DescribeKey",
    },
    NODE: {
        "ec2": _DESCRIBE,
        "ec2messages": "AcknowledgeMessage DeleteMessage FailMessage GetEndpoint GetMessages SendReply",
        "ecr": "GetAuthorizationToken BatchGetImage GetDownloadUrlForLayer BatchImportUpstreamImage",
        "eks": "DescribeCluster",
        "eks-auth": "AssumeRoleForPodIdentity",
        "ssm": (
            "DescribeAssociation GetDeployablePatchSnapshotForInstance GetDocument DescribeDocument GetManifest "
            "ListAssociations ListInstanceAssociations PutInventory PutComplianceItems PutConfigurePackageResult "
            "UpdateAssociationStatus UpdateInstanceAssociationStatus UpdateInstanceInformation"
        ),
        "ssmmessages": "CreateControlChannel CreateDataChannel OpenControlChannel OpenDataChannel",
    },
    ADD_ON: {
        "ec2": f"{_DESCRIBE} {_INTERFACES}",
        "elasticfilesystem": (
            "DescribeAccessPoints DescribeFileSystems DescribeMountTargets CreateAccessPoint DeleteAccessPoint "
            "TagResource"
        ),
    },
}
# What EKS Auto Mode needs to create nodes, which get none but the cluster's roles. Certificates, web ACLs and Shield of
# load balancers are left out.
_AUTO_MODE = {
    "ec2": (
        "CreateFleet CreateLaunchTemplate RunInstances CreateSnapshot CreateVolume AssignIpv6Addresses "
        "UnassignIpv6Addresses AssociateTrunkInterface DisassociateTrunkInterface GetCoipPoolUsage "
        f"GetSecurityGroupsForVpc {_INTERFACES}"
    )
}
_AUTO_MODE_VOLUMES = {"ec2": "AttachVolume DetachVolume ModifyVolume DeleteVolume EnableFastSnapshotRestores"}
_BUCKET = "ListBucket GetBucketLocation GetObject PutObject DeleteObject AbortMultipartUpload"


def partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def boundary_arn(region: str, account: str, cluster: str) -> str:
    return f"arn:{partition(region)}:iam::{account}:policy/{cluster}-boundary"


def bucket_arn(config: ClusterConfig) -> str:
    """Match the bucket, which CloudFormation names after its stack and resource, and its objects."""
    return f"arn:{partition(config.region)}:s3:::{config.cluster_name.lower()}-data-bucket-*"


def boundary(config: ClusterConfig) -> dict[str, Any]:
    """Return the policy document of the boundary."""
    aws = f"arn:{partition(config.region)}:iam::*"
    roles = {kind: f"{aws}:role{role_path(config.cluster_name)}{kind}/*" for kind in _KINDS}
    only = {kind: {"ArnLike": {"aws:PrincipalArn": arn}} for kind, arn in roles.items()}
    services = ("elasticloadbalancing", *(("ec2fleet", "spot") if config.auto_mode else ()))
    linked = {"StringEquals": {"iam:AWSServiceName": [f"{service}.amazonaws.com" for service in services]}}
    sids = {CONTROL_PLANE: "ControlPlane", NODE: "Nodes", ADD_ON: "AddOns"}
    statements = [
        *(allow(sids[kind], names, "*", when=only[kind]) for kind, names in _KINDS.items()),
        allow("Bucket", {"s3": _BUCKET}, bucket_arn(config)),
        allow("ServiceRoles", {"iam": "CreateServiceLinkedRole"}, "*", when=linked | only[CONTROL_PLANE]),
    ]
    if config.auto_mode:
        own = {"StringEquals": {"aws:ResourceTag/eks:eks-cluster-name": config.cluster_name}} | only[CONTROL_PLANE]
        passed, profiles = {"iam": "PassRole AddRoleToInstanceProfile"}, f"{aws}:instance-profile/eks*"
        statements += [
            allow("AutoMode", _AUTO_MODE, "*", when=only[CONTROL_PLANE]),
            allow("AutoModeVolumes", _AUTO_MODE_VOLUMES, "*", when=own),
            allow("AutoModeRoles", passed, roles[NODE], profiles, when=only[CONTROL_PLANE]),
        ]
    return {"Version": "2012-10-17", "Statement": statements}


def find_boundary(aws: Aws, cluster: str) -> str:
    """Return the ARN of the boundary, or an empty string if the account has none for this cluster."""
    arn = boundary_arn(aws.region, aws.account(), cluster)
    return arn if aws.find("iam", "get_policy", ("NoSuchEntity", "AccessDenied"), PolicyArn=arn) else ""


def allow(sid: str, of_services: dict[str, str], *resources: str, when: dict[str, Any] | None = None) -> dict[str, Any]:
    statement = {"Sid": sid, "Effect": "Allow", "Action": actions(of_services), "Resource": list(resources)}
    return {**statement, "Condition": when} if when else statement


def actions(of_services: dict[str, str]) -> list[str]:
    return [f"{service}:{action}" for service, names in of_services.items() for action in names.split()]
