"""`policy`: the least IAM policy for one cluster, instead of ten FullAccess ones. Pure."""

from __future__ import annotations

from typing import Any

from .config import ClusterConfig
from .stack import OWNER_TAG

Statement = dict[str, Any]

_STACK = (
    "CreateStack UpdateStack DeleteStack DescribeStack* ListStackResources GetTemplate "
    "UpdateTerminationProtection ContinueUpdateRollback RollbackStack TagResource"
)
_NETWORK = (
    "AllocateAddress AssociateAddress DisassociateAddress ReleaseAddress AssociateRouteTable "
    "DisassociateRouteTable AttachInternetGateway DetachInternetGateway AuthorizeSecurityGroupEgress "
    "AuthorizeSecurityGroupIngress RevokeSecurityGroupEgress RevokeSecurityGroupIngress "
    "CreateInternetGateway DeleteInternetGateway CreateLaunchTemplate CreateLaunchTemplateVersion "
    "DeleteLaunchTemplate CreateNatGateway DeleteNatGateway CreateRoute DeleteRoute ReplaceRoute "
    "CreateRouteTable DeleteRouteTable CreateSecurityGroup DeleteSecurityGroup CreateSubnet DeleteSubnet "
    "ModifySubnetAttribute CreateTags DeleteTags CreateVpc DeleteVpc ModifyVpcAttribute RunInstances "
    "CreateNetworkInterface DeleteNetworkInterface"
)
# Whole verbs: the resources that they are allowed on are this cluster's own.
_CLUSTER = (
    "Create* Delete* Describe* Update* ListUpdates ListAssociatedAccessPolicies AssociateAccessPolicy "
    "DisassociateAccessPolicy TagResource UntagResource"
)
_ROLES = (
    "CreateRole DeleteRole GetRole TagRole UntagRole UpdateRole UpdateRoleDescription UpdateAssumeRolePolicy "
    "ListRolePolicies ListAttachedRolePolicies GetRolePolicy"
)
_FILES = (
    "CreateFileSystem CreateMountTarget DeleteFileSystem DeleteMountTarget ModifyMountTargetSecurityGroups "
    "UpdateFileSystem PutBackupPolicy PutLifecycleConfiguration TagResource UntagResource Describe* List*"
)
_BUCKET = (
    "CreateBucket DeleteBucket ListBucket ListBucketVersions Get* PutBucketTagging PutBucketPublicAccessBlock "
    "PutEncryptionConfiguration PutObject DeleteObject DeleteObjectVersion ListTagsForResource TagResource "
    "UntagResource"
)
_OWN_KEY = (
    "EnableKeyRotation DisableKeyRotation PutKeyPolicy ScheduleKeyDeletion UpdateKeyDescription UntagResource "
    "EnableKey DisableKey"
)
_ZONE = (
    "CreateHostedZone DeleteHostedZone UpdateHostedZoneComment AssociateVPCWithHostedZone "
    "ChangeResourceRecordSets ChangeTagsForResource Get* List*"
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


def policy(config: ClusterConfig, account: str) -> dict[str, Any]:
    """What the user who runs `pdj aws` needs, as narrow as each service lets us name it."""
    name, region = config.cluster_name, config.region
    aws = f"arn:{partition(region)}"
    roles = f"{aws}:iam::{account}:role/{name}-*"
    here = {"StringEquals": {"aws:RequestedRegion": region}}
    statements = [
        _allow("Stack", "cloudformation", _STACK, f"{aws}:cloudformation:{region}:{account}:stack/{name}/*"),
        _allow("Look", "ec2", "Describe*", "*"),
        _allow("LookForBalancers", "elasticloadbalancing", "DescribeLoadBalancers", "*"),
        _allow("Network", "ec2", _NETWORK, "*", when=here),
        _allow("Cluster", "eks", _CLUSTER, *(f"{aws}:eks:{region}:{account}:{what}" for what in _eks(name))),
        _allow("Roles", "iam", _ROLES, roles),
        _allow("RolePolicies", "iam", "AttachRolePolicy DetachRolePolicy", roles, when=_only_managed(aws)),
        _allow("DataPolicy", "iam", "PutRolePolicy DeleteRolePolicy", f"{aws}:iam::{account}:role/{name}-NodeRole-*"),
        _allow("PassRoles", "iam", "PassRole", roles, when=_passed_to("eks", "ec2", "pods.eks")),
        _allow("ServiceRoles", "iam", "CreateServiceLinkedRole", f"{aws}:iam::{account}:role/*", when=_linked()),
        _allow("Files", "elasticfilesystem", _FILES, "*", when=here),
        _allow("Bucket", "s3", _BUCKET, f"{aws}:s3:::{name.lower()}-*"),
        _allow("NewKey", "kms", "CreateKey TagResource", "*", when=here),
        _allow("OwnKey", "kms", _OWN_KEY, "*", when={"StringEquals": {f"aws:ResourceTag/{OWNER_TAG}": name}}),
        _allow("UseKey", "kms", "DescribeKey CreateGrant Get* List*", _key(config, account, aws)),
        _allow("Names", "route53", _ZONE, "*"),
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _allow(sid: str, service: str, actions: str, *resources: str, when: Statement | None = None) -> Statement:
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{action}" for action in actions.split()],
        "Resource": list(resources),
    }
    return {**statement, "Condition": when} if when else statement


def _eks(name: str) -> list[str]:
    kinds = ("nodegroup", "addon", "access-entry", "podidentityassociation")
    return [f"cluster/{name}", *(f"{kind}/{name}/*" for kind in kinds)]


def _key(config: ClusterConfig, account: str, aws: str) -> str:
    return config.kms_key_arn or f"{aws}:kms:{config.region}:{account}:key/*"


def _only_managed(aws: str) -> Statement:
    return {"ArnEquals": {"iam:PolicyARN": [f"{aws}:iam::aws:policy/{name}" for name in _MANAGED]}}


def _passed_to(*services: str) -> Statement:
    return {"StringEquals": {"iam:PassedToService": [f"{service}.amazonaws.com" for service in services]}}


def _linked() -> Statement:
    return {"StringEquals": {"iam:AWSServiceName": [f"{service}.amazonaws.com" for service in _LINKED_SERVICES]}}
