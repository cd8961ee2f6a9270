"""The least-privilege IAM policy for one cluster. Pure.

The user may change the two stacks, their roles, the EKS cluster and the bucket, all by name. Resources whose names AWS
chooses (network, file system, key, DNS zone) may be changed through CloudFormation only. That is a guard against
mistakes and not a border, since the user supplies the template. The border is `boundary`: a role that the user creates
or changes must have it.

Why resources have a `*`:

Look            the actions take no names, or names that only AWS knows. They read; ec2:Describe*s leaves out
                DescribeInstanceAttribute, which shows the user data of instances.
Resources       AWS chooses the names, and eks:CreateCluster takes none. For CloudFormation in this region.
Zone            as Resources; Route 53 has no region. Records have the one name that the template gives.
Stacks          CloudFormation ends the ARN of a stack with an id, as EKS does for parts of the cluster (Cluster).
Roles           CloudFormation chooses the names of roles, below the path of the cluster (BoundedRoles, PassRoles). Only
                those for nodes and pods are passed to these (PassWorkerRoles).
Tags            AWS chooses the names; only what is being created gets tags.
Bucket          as Roles; and an object of the bucket has any name.
Templates       both templates of the cluster, below the prefix that the user chose.
ServiceRoles    each service has its path; the condition names the services.
Session         EC2 chooses the ids (LeftInterfaces); a tag limits them to the cluster. For sessions it is one that only
                AWS can set.
Shell           public parameters of AWS with the images of nodes, one for each version of Kubernetes.

Actions have a `*`, for MAX_SIZE, where what else it means only reads, or changes what has the name of the cluster or is
harmless, such as the descriptions of security group rules.
"""

from __future__ import annotations

import json
import re
from typing import Any

from paddlejob.cloud.aws.access.boundary import allow, boundary_arn, bucket_arn, partition
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.stack.publish import template_location
from paddlejob.cloud.aws.templates.compose import role_path
from paddlejob.cloud.aws.templates.render import cluster_template, parameters

Statement = dict[str, Any]
MAX_SIZE = 6144  # of a managed policy

_STACK = "*Stack Describe* *ChangeSet ListStackResources UpdateTerminationProtection ContinueUpdateRollback TagResource"
_READ = {
    "ec2": "Describe*s DescribeVpcAttribute",
    "elasticloadbalancing": "DescribeLoadBalancers",
    "eks": "DescribeClusterVersions DescribeAddonVersions",
    "servicequotas": "GetServiceQuota",
    "elasticfilesystem": "Describe* ListTagsForResource",
    "iam": "GetPolicy GetRole",
    "pricing": "GetProducts",
}
_BY_CLOUDFORMATION = {
    "eks": "CreateCluster",
    "ec2": (
        "*Address *InternetGateway *SecurityGroup *SecurityGroup*gress *NatGateway *Subnet *SubnetAttribute "
        "*VpcAttribute CreateVpc DeleteVpc *VpcEndpoint DeleteVpcEndpoints CreateRoute DeleteRoute ReplaceRoute "
        "*ateRouteTable DeleteRouteTable *teLaunchTemplate* RunInstances "
        # EFS creates and deletes the interface of a mount target with the caller's permissions.
        "*teNetworkInterface"
    ),
    "elasticfilesystem": "*FileSystem* *MountTarget* PutLifecycleConfiguration *agResource",
    "kms": (
        "CreateKey CreateGrant DescribeKey EnableKeyRotation PutKeyPolicy ScheduleKeyDeletion *agResource GetKey* "
        "ListResourceTags"
    ),
}
_ZONE = "*HostedZone ChangeTagsForResource Get* List*"
_CLUSTER = (
    "De*Cluster *Update* *Nodegroup* ListFargateProfiles *Addon* *PodIdentityAssociation *AccessEntry *AccessPolic* "
    "*agResource"
)
_ROLES = "DeleteRole DeleteRolePolicy DetachRolePolicy *agRole List*RolePolicies GetRolePolicy"
# Without UpdateAssumeRolePolicy: it takes no condition on the boundary, and could open a role that has none.
_BOUNDED_ROLES = "CreateRole PutRole* AttachRolePolicy"
_BUCKET = (
    "*Bucket* Get*Configuration PutEncryptionConfiguration PutLifecycleConfiguration DeleteObject* *agResource "
    "ListTagsForResource"
)
# What belongs to a cluster, as in the ARN nodegroup/CLUSTER/NAME/ID.
_OF_CLUSTER = ("nodegroup", "addon", "access-entry", "podidentityassociation")
_LINKED_SERVICES = ("eks", "eks-nodegroup", "autoscaling", "spot", "elasticfilesystem")


def policy(config: ClusterConfig, account: str, s3_uri: str = "") -> dict[str, Any]:
    """Return the permissions that `pdj aws` needs, as narrow as each service allows."""
    name, region = config.cluster_name, config.region
    aws = f"arn:{partition(region)}"
    role = f"{aws}:iam::{account}:role"
    roles, workers = f"{role}{role_path(name)}*", f"{role}{role_path(name)}worker/*"
    here = f"{region}:{account}"
    ec2 = "ec2.amazonaws.com.cn" if region.startswith("cn-") else "ec2.amazonaws.com"
    bounded = {"StringEquals": {"iam:PermissionsBoundary": boundary_arn(region, account, name)}}
    in_region = {"StringEquals": {"aws:RequestedRegion": region}}
    zone = {"route53": "ListResourceRecordSets"} if config.external_dns_name else {}
    clustered = [f"cluster/{name}", *(f"{kind}/{name}/*" for kind in _OF_CLUSTER)]
    stacks = [f"{aws}:cloudformation:{here}:stack/{stack}/*" for stack in (name, f"{name}-data", f"{name}-attachment")]
    statements = [
        allow("Stacks", {"cloudformation": _STACK}, *stacks),
        allow("Look", _READ | zone, "*"),
        allow("Resources", _made_by_cloudformation(config), "*", when=in_region | _called_via("cloudformation")),
        allow("Cluster", {"eks": _CLUSTER}, *(f"{aws}:eks:{here}:{one}" for one in clustered)),
        allow("Roles", {"iam": _ROLES}, roles),
        allow("BoundedRoles", {"iam": _BOUNDED_ROLES}, roles, when=bounded | _only(managed(config), aws)),
        allow("PassRoles", {"iam": "PassRole"}, roles, when=_passed_to("eks.amazonaws.com")),
        allow("PassWorkerRoles", {"iam": "PassRole"}, workers, when=_passed_to(ec2, "pods.eks.amazonaws.com")),
        allow("Tags", {"ec2": "CreateTags"}, "*", when={"StringLike": {"ec2:CreateAction": "*"}}),
        allow("ServiceRoles", {"iam": "CreateServiceLinkedRole"}, f"{role}/aws-service-role/*", when=_linked()),
        allow("Bucket", {"s3": _BUCKET}, bucket_arn(config)),
        *_node_access(f"{aws}:ec2:{here}", f"{aws}:ssm:{here}", config),
    ]
    if config.external_dns_name:
        records = {"route53:ChangeResourceRecordSetsNormalizedRecordNames": f"api.{config.external_dns_name}"}
        named = {"route53": "ChangeResourceRecordSets"}
        statements += [
            allow("Zone", {"route53": _ZONE}, "*", when=_called_via("cloudformation")),
            allow("Records", named, "*", when={"ForAllValues:StringEquals": records}),
        ]
    if config.kms_key_arn:
        statements.append(allow("OwnKey", {"kms": "DescribeKey CreateGrant"}, config.kms_key_arn))
    if s3_uri:
        templates = f"{aws}:s3:::{'/'.join(template_location(s3_uri, name, '*'))}"
        statements.append(allow("Templates", {"s3": "PutObject GetObject"}, templates))
    return {"Version": "2012-10-17", "Statement": statements}


def size(document: dict[str, Any]) -> int:
    """Count the characters as IAM does, without white space."""
    return len(json.dumps(document, separators=(",", ":")))


def _node_access(ec2: str, ssm: str, config: ClusterConfig) -> list[Statement]:
    """Sessions on the nodes, their images, and deletion of network interfaces that the network plugin left."""
    if config.auto_mode:  # EKS chooses the images, allows no sessions, and leaves no interfaces
        return []
    of_cluster = {"StringEquals": {"ssm:resourceTag/aws:eks:cluster-name": config.cluster_name}}
    left = {"StringEquals": {"aws:ResourceTag/cluster.k8s.amazonaws.com/name": config.cluster_name}}
    images = f"{ssm.rpartition(':')[0]}::parameter/aws/service/eks/optimized-ami/*"
    shell = f"{ssm}:document/SSM-SessionManagerRunShell"
    return [
        allow("Session", {"ssm": "StartSession"}, f"{ec2}:instance/*", when=of_cluster),
        allow("Shell", {"ssm": "StartSession GetParameter"}, shell, images),
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
    """Of the actions on roles, only AttachRolePolicy names a policy. The boundary limits those of EKS, too."""
    short = dict.fromkeys("AmazonEKS*" if name.startswith("AmazonEKS") else name for name in names)
    return {"ArnEqualsIfExists": {"iam:PolicyARN": [f"{aws}:iam::aws:policy/{name}" for name in short]}}


def _passed_to(*services: str) -> Statement:
    return {"StringEquals": {"iam:PassedToService": [*services]}}


def _linked() -> Statement:
    return {"StringEquals": {"iam:AWSServiceName": [f"{service}.amazonaws.com" for service in _LINKED_SERVICES]}}
