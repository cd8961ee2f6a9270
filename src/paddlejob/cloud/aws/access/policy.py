"""The least-privilege IAM policy for one cluster. Pure.

The user may change the two stacks, their roles, the EKS cluster and the bucket, all by name. Resources whose names AWS
chooses (network, file system, key, DNS zone) may be changed through CloudFormation only. That is a guard against
mistakes and not a border, since the user supplies the template. The border is `boundary`: a role that the user creates
or changes must have it.
"""

from __future__ import annotations

import re
from typing import Any

from paddlejob.cloud.aws.access.boundary import allow, boundary_arn, partition
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.stack.publish import template_location
from paddlejob.cloud.aws.templates.render import cluster_template, parameters

Statement = dict[str, Any]

_STACK = "*Stack Describe* *ChangeSet ListStackResources UpdateTerminationProtection ContinueUpdateRollback TagResource"
_READ = {
    "ec2": "Describe*",
    "elasticloadbalancing": "DescribeLoadBalancers",
    "eks": "DescribeClusterVersions DescribeAddonVersions",
    "servicequotas": "GetServiceQuota",
    "elasticfilesystem": "Describe* ListTagsForResource",
    "iam": "GetPolicy GetRole",
    "pricing": "GetProducts",
    "route53": "ListResourceRecordSets",
}
_BY_CLOUDFORMATION = {
    # With wildcards, since a managed policy has at most 6144 characters.
    "ec2": (
        "*Address *RouteTable *Route *InternetGateway *SecurityGroup *SecurityGroup*gress *NatGateway *Subnet "
        "*SubnetAttribute *Vpc *VpcAttribute *VpcEndpoint* *LaunchTemplate* *Tags RunInstances "
        # EFS creates and deletes the interface of a mount target with the caller's permissions.
        "*NetworkInterface"
    ),
    "elasticfilesystem": "*FileSystem *MountTarget* PutLifecycleConfiguration *agResource",
    "kms": (
        "CreateKey CreateGrant DescribeKey EnableKeyRotation PutKeyPolicy ScheduleKeyDeletion *agResource Get* "
        "ListResourceTags"
    ),
}
_ZONE = "*HostedZone ChangeResourceRecordSets ChangeTagsForResource Get* List*"
_CLUSTER = (
    "DeleteCluster DescribeCluster UpdateClusterConfig UpdateClusterVersion DescribeUpdate ListUpdates "
    "*Nodegroup* ListFargateProfiles *Addon* *PodIdentityAssociation *AccessEntry *AccessPolic* *agResource"
)
_ROLES = "DeleteRole DeleteRolePolicy DetachRolePolicy *agRole List*RolePolicies GetRolePolicy"
# Without UpdateAssumeRolePolicy: it takes no condition on the boundary, and could open a role that has none.
_BOUNDED_ROLES = "CreateRole PutRolePolicy PutRolePermissionsBoundary"
_BUCKET = (
    "CreateBucket DeleteBucket* ListBucket* Get* PutBucket* PutEncryptionConfiguration PutLifecycleConfiguration "
    "DeleteObject* *agResource ListTagsForResource"
)
_LINKED_SERVICES = ("eks", "eks-nodegroup", "autoscaling", "spot", "elasticfilesystem")


def policy(config: ClusterConfig, account: str, s3_uri: str = "") -> dict[str, Any]:
    """Return the permissions that `pdj aws` needs, as narrow as each service allows."""
    name, region = config.cluster_name, config.region
    aws = f"arn:{partition(region)}"
    role = f"{aws}:iam::{account}:role"
    roles = f"{role}/{name}-*Role-*"
    here = f"{region}:{account}"
    bounded = {"StringEquals": {"iam:PermissionsBoundary": boundary_arn(region, account, name)}}
    in_region = {"StringEquals": {"aws:RequestedRegion": region}}
    stacks = [f"{aws}:cloudformation:{here}:stack/{stack}/*" for stack in (name, f"{name}-data", f"{name}-attachment")]
    statements = [
        allow("Stacks", {"cloudformation": _STACK}, *stacks),
        allow("Look", _READ, "*"),
        allow("Resources", _made_by_cloudformation(config), "*", when=in_region | _called_via("cloudformation")),
        allow("NewCluster", {"eks": "CreateCluster"}, "*", when=in_region),
        allow("Cluster", {"eks": _CLUSTER}, f"{aws}:eks:{here}:cluster/{name}", f"{aws}:eks:{here}:*/{name}/*"),
        allow("Roles", {"iam": _ROLES}, roles),
        allow("BoundedRoles", {"iam": _BOUNDED_ROLES}, roles, when=bounded),
        allow("Managed", {"iam": "AttachRolePolicy"}, roles, when=bounded | _only(managed(config), aws)),
        allow("PassRoles", {"iam": "PassRole"}, roles, when=_passed_to(region)),
        allow("ServiceRoles", {"iam": "CreateServiceLinkedRole"}, f"{role}/aws-service-role/*", when=_linked()),
        allow("Bucket", {"s3": _BUCKET}, f"{aws}:s3:::{name.lower()}-data-*"),
        *_node_access(f"{aws}:ec2:{here}", f"{aws}:ssm:{here}", name),
    ]
    if config.external_dns_name:
        statements.append(allow("Zone", {"route53": _ZONE}, "*", when=_called_via("cloudformation")))
    if config.kms_key_arn:
        statements.append(allow("OwnKey", {"kms": "DescribeKey CreateGrant"}, config.kms_key_arn))
    if s3_uri:
        templates = f"{aws}:s3:::{'/'.join(template_location(s3_uri, name, '*'))}"
        statements.append(allow("Templates", {"s3": "PutObject GetObject"}, templates))
    return {"Version": "2012-10-17", "Statement": statements}


def _node_access(ec2: str, ssm: str, name: str) -> list[Statement]:
    """Sessions on the nodes, and deletion of network interfaces that the network plugin left."""
    of_cluster = {"StringEquals": {"ssm:resourceTag/eks:cluster-name": name}}
    left = {"StringEquals": {"aws:ResourceTag/cluster.k8s.amazonaws.com/name": name}}
    images = f"{ssm.rpartition(':')[0]}::parameter/aws/service/eks/optimized-ami/*"
    shell = f"{ssm}:document/SSM-SessionManagerRunShell"
    return [
        allow("Session", {"ssm": "StartSession"}, f"{ec2}:instance/*", when=of_cluster),
        allow("Shell", {"ssm": "StartSession"}, shell),
        allow("Images", {"ssm": "GetParameter"}, images),
        allow("LeftInterfaces", {"ec2": "DeleteNetworkInterface"}, f"{ec2}:network-interface/*", when=left),
    ]


def _made_by_cloudformation(config: ClusterConfig) -> dict[str, str]:
    """Leave out KMS if the user brings a key: none is created then. Only nodes with EFA have a placement group."""
    wanted = {name: names for name, names in _BY_CLOUDFORMATION.items() if name != "kms" or not config.kms_key_arn}
    return {**wanted, "ec2": f"{wanted['ec2']} *PlacementGroup"} if config.efa else wanted


def _called_via(service: str) -> Statement:
    return {"ForAnyValue:StringEquals": {"aws:CalledVia": f"{service}.amazonaws.com"}}


def managed(config: ClusterConfig) -> list[str]:
    """Return the managed policies that the template of the cluster attaches."""
    template = cluster_template(config, parameters(config))
    return sorted({*re.findall(r":policy/([\w/-]+)", template.text)})


def _only(names: list[str], aws: str) -> Statement:
    return {"ArnEquals": {"iam:PolicyARN": [f"{aws}:iam::aws:policy/{name}" for name in names]}}


def _passed_to(region: str) -> Statement:
    ec2 = "ec2.amazonaws.com.cn" if region.startswith("cn-") else "ec2.amazonaws.com"
    return {"StringEquals": {"iam:PassedToService": ["eks.amazonaws.com", ec2, "pods.eks.amazonaws.com"]}}


def _linked() -> Statement:
    return {"StringEquals": {"iam:AWSServiceName": [f"{service}.amazonaws.com" for service in _LINKED_SERVICES]}}
