"""The least-privilege IAM policy for one cluster. Pure.

The user may change only the stack, its roles, its EKS cluster and its bucket, all by name. Resources whose names AWS
chooses (network, file system, key, DNS zone) may be changed only by CloudFormation on the user's behalf.
"""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.stack.publish import template_location

Statement = dict[str, Any]

_STACK = (
    "CreateStack UpdateStack DeleteStack DescribeStacks DescribeStackEvents ListStackResources "
    "UpdateTerminationProtection ContinueUpdateRollback TagResource"
)
_READ = {
    "ec2": "Describe*",
    "elasticloadbalancing": "DescribeLoadBalancers",
    "eks": "DescribeClusterVersions",
    "elasticfilesystem": "Describe* ListTagsForResource",
    "route53": "Get* List*",
    "iam": "GetRole",
}
_BY_CLOUDFORMATION = {
    "ec2": (
        "AllocateAddress AssociateAddress DisassociateAddress ReleaseAddress AssociateRouteTable "
        "DisassociateRouteTable AttachInternetGateway DetachInternetGateway AuthorizeSecurityGroupEgress "
        "AuthorizeSecurityGroupIngress RevokeSecurityGroupEgress RevokeSecurityGroupIngress "
        "CreateInternetGateway DeleteInternetGateway CreateLaunchTemplate CreateLaunchTemplateVersion "
        "DeleteLaunchTemplate CreateNatGateway DeleteNatGateway CreateRoute DeleteRoute ReplaceRoute "
        "CreateRouteTable DeleteRouteTable CreateSecurityGroup DeleteSecurityGroup CreateSubnet DeleteSubnet "
        "ModifySubnetAttribute CreateTags DeleteTags CreateVpc DeleteVpc ModifyVpcAttribute RunInstances "
        "CreateVpcEndpoint DeleteVpcEndpoints ModifyVpcEndpoint "
        # EFS creates and deletes the interface of a mount target with the caller's permissions.
        "CreateNetworkInterface DeleteNetworkInterface"
    ),
    "elasticfilesystem": (
        "CreateFileSystem CreateMountTarget DeleteFileSystem DeleteMountTarget ModifyMountTargetSecurityGroups "
        "UpdateFileSystem TagResource UntagResource"
    ),
    "kms": (
        "CreateKey CreateGrant DescribeKey EnableKeyRotation PutKeyPolicy ScheduleKeyDeletion TagResource "
        "UntagResource Get* ListResourceTags"
    ),
    "route53": (
        "CreateHostedZone DeleteHostedZone AssociateVPCWithHostedZone ChangeResourceRecordSets ChangeTagsForResource"
    ),
}
_CLUSTER = (
    "CreateCluster DeleteCluster DescribeCluster UpdateClusterConfig UpdateClusterVersion DescribeUpdate ListUpdates "
    "CreateNodegroup DeleteNodegroup DescribeNodegroup UpdateNodegroup* ListNodegroups ListFargateProfiles "
    "CreateAddon DeleteAddon DescribeAddon UpdateAddon *PodIdentityAssociation "
    "CreateAccessEntry DeleteAccessEntry DescribeAccessEntry UpdateAccessEntry ListAssociatedAccessPolicies "
    "AssociateAccessPolicy DisassociateAccessPolicy TagResource UntagResource"
)
_ROLES = (
    "CreateRole DeleteRole TagRole UntagRole UpdateRole UpdateAssumeRolePolicy "
    "ListRolePolicies ListAttachedRolePolicies GetRolePolicy"
)
_BUCKET = (
    "CreateBucket DeleteBucket ListBucket ListBucketVersions Get* PutBucketTagging PutBucketPublicAccessBlock "
    "PutEncryptionConfiguration PutBucketPolicy DeleteBucketPolicy PutLifecycleConfiguration DeleteObject "
    "DeleteObjectVersion ListTagsForResource TagResource UntagResource"
)
_MANAGED = (
    "AmazonEKSClusterPolicy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
    "service-role/AmazonEFSCSIDriverPolicy",
)
_LINKED_SERVICES = ("eks", "eks-nodegroup", "autoscaling", "spot", "elasticfilesystem")


def policy(config: ClusterConfig, account: str, s3_uri: str = "") -> dict[str, Any]:
    """Return the permissions that `pdj aws` needs, as narrow as each service allows."""
    name, region = config.cluster_name, config.region
    aws = f"arn:{partition(region)}"
    role = f"{aws}:iam::{account}:role"
    here = f"{region}:{account}"
    stacks = [f"{aws}:cloudformation:{here}:stack/{stack}/*" for stack in (name, f"{name}-data")]
    statements = [
        _allow("Stack", {"cloudformation": _STACK}, *stacks),
        _allow("Look", _READ, "*"),
        _allow("ByCloudFormation", _made_by_cloudformation(config), "*", when=_called_via("cloudformation")),
        _allow("Cluster", {"eks": _CLUSTER}, *(f"{aws}:eks:{here}:{what}" for what in _eks(name))),
        _allow("Roles", {"iam": _ROLES}, f"{role}/{name}-*"),
        _allow("Managed", {"iam": "AttachRolePolicy DetachRolePolicy"}, f"{role}/{name}-*", when=_only_managed(aws)),
        _allow("JobPolicy", {"iam": "PutRolePolicy DeleteRolePolicy"}, f"{role}/{name}-data-JobRole-*"),
        _allow("PassRoles", {"iam": "PassRole"}, f"{role}/{name}-*", when=_passed_to(region)),
        _allow("ServiceRoles", {"iam": "CreateServiceLinkedRole"}, f"{role}/aws-service-role/*", when=_linked()),
        _allow("Bucket", {"s3": _BUCKET}, f"{aws}:s3:::{name.lower()}-*"),
    ]
    if config.kms_key_arn:
        statements.append(_allow("OwnKey", {"kms": "DescribeKey CreateGrant"}, config.kms_key_arn))
    if s3_uri:
        template = f"{aws}:s3:::{'/'.join(template_location(s3_uri, name, '*'))}"
        statements.append(_allow("Template", {"s3": "PutObject GetObject"}, template))
    return {"Version": "2012-10-17", "Statement": statements}


def partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _allow(sid: str, actions: dict[str, str], *resources: str, when: Statement | None = None) -> Statement:
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{action}" for service, names in actions.items() for action in names.split()],
        "Resource": list(resources),
    }
    return {**statement, "Condition": when} if when else statement


def _made_by_cloudformation(config: ClusterConfig) -> dict[str, str]:
    """Leave out KMS if the user brings a key: none is created then."""
    return {
        service: names for service, names in _BY_CLOUDFORMATION.items() if service != "kms" or not config.kms_key_arn
    }


def _eks(name: str) -> list[str]:
    kinds = ("nodegroup", "addon", "access-entry", "podidentityassociation")
    return [f"cluster/{name}", *(f"{kind}/{name}/*" for kind in kinds)]


def _called_via(service: str) -> Statement:
    return {"ForAnyValue:StringEquals": {"aws:CalledVia": f"{service}.amazonaws.com"}}


def _only_managed(aws: str) -> Statement:
    return {"ArnEquals": {"iam:PolicyARN": [f"{aws}:iam::aws:policy/{name}" for name in _MANAGED]}}


def _passed_to(region: str) -> Statement:
    ec2 = "ec2.amazonaws.com.cn" if region.startswith("cn-") else "ec2.amazonaws.com"
    return {"StringEquals": {"iam:PassedToService": ["eks.amazonaws.com", ec2, "pods.eks.amazonaws.com"]}}


def _linked() -> Statement:
    return {"StringEquals": {"iam:AWSServiceName": [f"{service}.amazonaws.com" for service in _LINKED_SERVICES]}}
