"""The CloudFormation templates of the two stacks and their parameters, from cluster.yaml. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from importlib.resources import files

from paddlejob.cloud.aws.config.cluster import MAX_ZONES, ClusterConfig
from paddlejob.cloud.aws.config.instances import ami_type

Parameters = dict[str, str]

# Parameters that cannot change: a change would replace the network or the control plane.
IMMUTABLE = ("Zone1", "Zone2", "Zone3", "VpcCidr", "KmsKeyArn", "FileSystemId")
SETTING_NAMES = {
    "Zone1": "availabilityZones",
    "Zone2": "availabilityZones",
    "Zone3": "availabilityZones",
    "VpcCidr": "vpcCIDR",
    "KmsKeyArn": "kmsKeyArn",
    "FileSystemId": "fileSystemId",
}
CLUSTER_TEMPLATE = "cluster_stack.yaml"
DATA_TEMPLATE = "data_stack.yaml"
# Outputs of the data stack that are parameters of the cluster's.
FROM_DATA = ("FileSystemId", "JobRoleArn")


def data_parameters(config: ClusterConfig, boundary: str = "") -> Parameters:
    return {"ClusterName": config.cluster_name, "FileSystemId": config.file_system_id, "BoundaryArn": boundary}


def parameters(config: ClusterConfig, second_zone: str = "", administrator: str = "", boundary: str = "") -> Parameters:
    """Return the parameters of the cluster's stack, but for those from the data stack.

    `second_zone` is for the control plane, if the user listed one zone only.
    """
    zones = [*config.availability_zones]
    if len(zones) == 1:
        zones.append(second_zone or guess_second_zone(zones[0]))
    zones += [""] * (MAX_ZONES - len(zones))
    subnets = subnet_cidrs(config.vpc_cidr)
    return {
        "Zone1": zones[0],
        "Zone2": zones[1],
        "Zone3": zones[2],
        "NodesInEveryZone": "no" if len(config.availability_zones) == 1 else "yes",
        "VpcCidr": config.vpc_cidr,
        "PublicCidrs": ",".join(subnets[:MAX_ZONES]),
        "PrivateCidrs": ",".join(subnets[MAX_ZONES : 2 * MAX_ZONES]),
        "ApiAccessCidrs": ",".join(config.api_access_cidrs),
        "ExternalDnsName": config.external_dns_name,
        "KubernetesVersion": config.kubernetes_version,
        "AddonVersions": "",
        "NodeRelease": "",
        "AdministratorArn": config.administrator_arn or administrator,
        "BoundaryArn": boundary,
        "KmsKeyArn": config.kms_key_arn,
        "KeyName": config.key_name,
        "WorkerCount": str(config.worker_count),
        "MaxWorkerCount": str(config.max_worker_count),
        "InstanceType": config.worker_instance_type,
        "AmiType": ami_type(config.worker_instance_type),
        "CapacityType": "SPOT" if config.worker_spot else "ON_DEMAND",
        "DiskSize": str(config.worker_disk_size),
    }


def from_data(outputs: Mapping[str, str]) -> Parameters:
    """Return the parameters that the data stack provides; they are empty before it exists."""
    return {name: outputs.get(name, "") for name in FROM_DATA}


def as_deployed(config: ClusterConfig, deployed: Mapping[str, str]) -> ClusterConfig:
    """Return the configuration with the settings that determine cost as deployed, not as in cluster.yaml."""
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


def template(values: Parameters, name: str = CLUSTER_TEMPLATE) -> str:
    """Return the template with these values as parameter defaults: what is sent and what stack.yaml contains."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value.replace("\\", "\\\\").replace('"', '\\"'))
    return text


def subnet_cidrs(vpc_cidr: str) -> Sequence[str]:
    """Split the VPC network into eight subnets: first public, then private, two unused."""
    return [str(part) for part in ipaddress.IPv4Network(vpc_cidr).subnets(prefixlen_diff=3)]


def guess_second_zone(first: str) -> str:
    """Guess a second zone for rendering offline; `up` asks AWS."""
    return first[:-1] + ("b" if first.endswith("a") else "a")
