"""From cluster.yaml to the CloudFormation template with its values. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from importlib.resources import files

from .config import ZONES_AT_MOST, ClusterConfig
from .instances import ami_type

Parameters = dict[str, str]

# What cannot change while the cluster lives: a change would replace the network or the control plane.
FIXED = ("Zone1", "Zone2", "Zone3", "VpcCidr", "KmsKeyArn", "FileSystemId")
SETTING_OF = {
    "Zone1": "availabilityZones",
    "Zone2": "availabilityZones",
    "Zone3": "availabilityZones",
    "VpcCidr": "vpcCIDR",
    "KmsKeyArn": "kmsKeyArn",
    "FileSystemId": "fileSystemId",
}
# What a node group is made with: a change replaces it.
NEW_NODES = {
    "InstanceType": "workerInstanceType",
    "CapacityType": "workerSpot",
    "NodesInEveryZone": "availabilityZones",
}
# The deletion policies of what holds data: the file system and the bucket, and nothing else.
_DATA_GOES = "DeletionPolicy: Delete"
_DATA_STAYS = "DeletionPolicy: Retain"


def parameters(config: ClusterConfig, second_zone: str = "", administrator: str = "") -> Parameters:
    """The stack's parameters. `second_zone` is the control plane's, where the user named one zone only."""
    zones = [*config.availability_zones]
    if len(zones) == 1:
        zones.append(second_zone or guessed_second_zone(zones[0]))
    zones += [""] * (ZONES_AT_MOST - len(zones))
    subnets = subnet_cidrs(config.vpc_cidr)
    return {
        "Zone1": zones[0],
        "Zone2": zones[1],
        "Zone3": zones[2],
        "NodesInEveryZone": "no" if len(config.availability_zones) == 1 else "yes",
        "VpcCidr": config.vpc_cidr,
        "PublicCidrs": ",".join(subnets[:ZONES_AT_MOST]),
        "PrivateCidrs": ",".join(subnets[ZONES_AT_MOST : 2 * ZONES_AT_MOST]),
        "ApiAccessCidrs": ",".join(config.api_access_cidrs),
        "ExternalDnsName": config.external_dns_name,
        "KubernetesVersion": config.kubernetes_version,
        "AdministratorArn": config.administrator_arn or administrator,
        "KmsKeyArn": config.kms_key_arn,
        "KeyName": config.key_name,
        "WorkerCount": str(config.worker_count),
        "MaxWorkerCount": str(config.max_worker_count),
        "InstanceType": config.worker_instance_type,
        "AmiType": ami_type(config.worker_instance_type),
        "CapacityType": "SPOT" if config.worker_spot else "ON_DEMAND",
        "DiskSize": str(config.worker_disk_size),
        "FileSystemId": config.file_system_id,
        "KeepData": "no",
    }


def as_deployed(config: ClusterConfig, deployed: Mapping[str, str]) -> ClusterConfig:
    """The settings that cost money, as the stack has them and not as cluster.yaml would have them."""
    if "WorkerCount" not in deployed:
        return config
    return config.model_copy(
        update={
            "worker_count": int(deployed["WorkerCount"]),
            "worker_instance_type": deployed["InstanceType"],
            "worker_spot": deployed["CapacityType"] == "SPOT",
            "worker_disk_size": int(deployed["DiskSize"]),
            "kms_key_arn": deployed["KmsKeyArn"],
        }
    )


def template(values: Parameters) -> str:
    """The template with these values as defaults: what is sent, and what stack.yaml shows."""
    text = files(__package__).joinpath("template.yaml").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value.replace("\\", "\\\\").replace('"', '\\"'))
    return text


def keeping_data(template_text: str, keep: bool = True) -> str:
    """The same template, but deleting the stack leaves the file system and the bucket, or takes them along."""
    policies = (_DATA_GOES, _DATA_STAYS) if keep else (_DATA_STAYS, _DATA_GOES)
    return template_text.replace(*policies)


def subnet_cidrs(vpc_cidr: str) -> Sequence[str]:
    """Eight equal parts of the VPC's network: public ones first, then private ones, two to spare."""
    return [str(part) for part in ipaddress.IPv4Network(vpc_cidr).subnets(prefixlen_diff=3)]


def guessed_second_zone(first: str) -> str:
    """A likely neighbour, for rendering without asking AWS; `up` asks."""
    return first[:-1] + ("b" if first.endswith("a") else "a")
