"""The data stack on an EKS cluster that exists already, which somebody else created and keeps."""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.access.boundary import find_boundary
from paddlejob.cloud.aws.access.kubeconfig import find_cluster
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.apply import DEFAULT, Options, apply, make_updatable
from paddlejob.cloud.aws.stack.stack import Say, Stack, Stacks, StackState
from paddlejob.cloud.aws.stack.up import up_data
from paddlejob.cloud.aws.templates.compose import OWNER_TAG
from paddlejob.cloud.aws.templates.render import attachment_template, from_data
from paddlejob.errors import BadInput, NotPossible

_NEEDED = {"aws-efs-csi-driver": "mounts the file system", "eks-pod-identity-agent": "gives pods access to the bucket"}


def attached_stacks(aws: Aws, cluster: str, say: Say) -> Stacks:
    """The attachment takes the position of the cluster's stack: it is deleted first, and the data can be kept."""
    undo = f"pdj aws data detach --cluster {cluster} --region {aws.region}"
    attachment = Stack(aws, f"{cluster}-attachment", say, cluster, undo)
    return Stacks(attachment, Stack(aws, f"{cluster}-data", say, cluster, f"{undo} --delete-data"))


def attach(stacks: Stacks, file_system: str = "", options: Options = DEFAULT) -> StackState:
    """Create the data, or take it up, and give the cluster access to it. Returns the state of the data's stack."""
    aws, name = stacks.data.aws, stacks.data.cluster
    network = _cluster(aws, name)["resourcesVpcConfig"]
    subnets = aws.items("ec2", "describe_subnets", "Subnets", SubnetIds=network["subnetIds"])
    data = up_data(stacks.data, file_system, find_boundary(aws, name), options)
    values = {
        "ClusterName": name,
        "VpcId": subnets[0]["VpcId"],
        "SecurityGroup": network["clusterSecurityGroupId"],
        **from_data(data.outputs),
    }
    # EFS allows one mount target in each zone.
    by_zone = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in reversed(subnets)}
    template = attachment_template(values, [by_zone[zone] for zone in sorted(by_zone)])
    apply(stacks.cluster, make_updatable(stacks.cluster), template, options)
    return data


def missing_addons(aws: Aws, cluster: str) -> list[str]:
    """Say which add-ons the cluster needs for its data and does not have. Auto Mode has the one for pods itself."""
    found = {*aws.items("eks", "list_addons", "addons", clusterName=cluster)}
    if _cluster(aws, cluster).get("computeConfig", {}).get("enabled"):
        found.add("eks-pod-identity-agent")
    command = f"aws eks create-addon --region {aws.region} --cluster-name {cluster} --addon-name"
    return [
        f"Add-on {addon} is missing, which {purpose}: run `{command} {addon}`, unless you installed it otherwise."
        for addon, purpose in _NEEDED.items()
        if addon not in found
    ]


def _cluster(aws: Aws, name: str) -> dict[str, Any]:
    cluster = find_cluster(aws, name)
    if cluster is None:
        raise NotPossible(f"cluster {name} does not exist in {aws.region}; check --cluster and --region")
    if cluster.get("tags", {}).get(OWNER_TAG) == name:
        raise BadInput(f"--cluster: `pdj aws up` created {name} with its data; there is nothing to attach")
    return cluster
