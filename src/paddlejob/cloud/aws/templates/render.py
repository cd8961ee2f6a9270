"""The parameters of the stacks, from cluster.yaml, and the templates for them. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from paddlejob.cloud.aws.config.cluster import MAX_ZONES, ClusterConfig
from paddlejob.cloud.aws.config.instances import ami_type
from paddlejob.cloud.aws.templates.compose import Parameters, Part, Template, compose, part, role_path

# Parameters that cannot change, with their settings: a change would replace the network or the control plane.
IMMUTABLE = {
    **dict.fromkeys(("Zone1", "Zone2", "Zone3"), "availabilityZones"),
    "VpcCidr": "vpcCIDR",
    "KmsKeyArn": "kmsKeyArn",
    "FileSystemId": "fileSystemId",
}
# Outputs of the data stack that are parameters of the cluster's.
FROM_DATA = ("FileSystemId", "JobRoleArn")
# The add-ons with their resources, in the order of the parameter AddonVersions.
ADDONS = {
    "vpc-cni": "NetworkPlugin",
    "kube-proxy": "Proxy",
    "eks-pod-identity-agent": "PodIdentity",
    "coredns": "Dns",
    "aws-efs-csi-driver": "StorageDriver",
}


def parameters(config: ClusterConfig, **asked: str) -> Parameters:
    """Return the parameters of the cluster's stack, but for those from the data stack.

    `asked` are those that AWS has to be asked for. Without a second zone for the control plane, one is guessed.
    """
    zones = [*config.availability_zones]
    if len(zones) == 1:
        zones.append(asked.pop("Zone2", "") or zones[0][:-1] + ("b" if zones[0].endswith("a") else "a"))
    zones += [""] * (MAX_ZONES - len(zones))
    return {
        **{f"Zone{number}": zone for number, zone in enumerate(zones, 1)},
        "VpcCidr": config.vpc_cidr,
        "ApiAccessCidrs": ",".join(config.api_access_cidrs),
        "ExternalDnsName": config.external_dns_name,
        "KubernetesVersion": config.kubernetes_version,
        "AddonVersions": "",
        "NodeRelease": "",
        "AdministratorArn": config.administrator_arn,
        "BoundaryArn": "",
        "RolePath": role_path(config.cluster_name),
        "KmsKeyArn": config.kms_key_arn,
        "KeyName": config.key_name,
        "WorkerCount": str(config.worker_count),
        "MaxWorkerCount": str(config.max_worker_count),
        "InstanceType": config.worker_instance_type,
        "AmiType": ami_type(config.worker_instance_type),
        "CapacityType": "SPOT" if config.worker_spot else "ON_DEMAND",
        "CapacityReservationId": config.capacity_reservation_id,
        "EfaInterfaces": "1" if config.efa else "",
        "DiskSize": str(config.worker_disk_size),
        **{name: value for name, value in asked.items() if value},
    }


def cluster_template(config: ClusterConfig, values: Parameters) -> Template:
    """Auto Mode may create nodes in every zone of the control plane, a node group only in those of the user."""
    cidrs = [str(cidr) for cidr in ipaddress.IPv4Network(config.vpc_cidr).subnets(prefixlen_diff=3)]
    zones = [number for number in range(1, MAX_ZONES + 1) if values[f"Zone{number}"]]
    with_nodes = zones if config.auto_mode else zones[: len(config.availability_zones)]
    own = {"Cluster": "!Ref Cluster", "Vpc": "!Ref Vpc", "Group": "!GetAtt Cluster.ClusterSecurityGroupId"}
    parts = [
        *(part("network"), part("pod-role", Role="DriverRole"), *_addons(config)),
        *(part("control-plane"), part("access", **own)),
        *(part("zone", Number=n, PublicCidr=cidrs[n - 1], PrivateCidr=cidrs[MAX_ZONES + n - 1]) for n in zones),
        *(part("mount-target", Number=n, Subnet=f"!Ref PrivateSubnet{n}") for n in with_nodes),
        part("own-key" if config.kms_key_arn else "new-key"),
        *([part("administrator")] if values["AdministratorArn"] else []),
        *([part("dns-zone")] if config.external_dns_name else []),
        *([part("auto-mode")] if config.auto_mode else _nodes(config, values, with_nodes)),
    ]
    return compose("stack.yaml", values, parts)


def _nodes(config: ClusterConfig, values: Parameters, zones: list[int]) -> list[Part]:
    reserved, cards = config.capacity_reservation_id, int(values["EfaInterfaces"] or 0)
    interfaces = [
        part("efa-interface", Card=card, Device=min(card, 1), Kind="efa-only" if card else "efa")
        for card in range(cards)
    ]
    return [
        part("pod-role", Role="NetworkRole"),
        part("nodes"),
        *(part("node-zone", Number=number) for number in zones),
        part("capacity-block" if values["CapacityType"] == "CAPACITY_BLOCK" else "instance-type"),
        *([part("reservation")] if reserved else []),
        *([part("efa"), *interfaces] if cards else []),
        *([part("near-each-other")] if cards and not reserved else []),
        *([part("ssh")] if config.key_name else []),
    ]


def addons(config: ClusterConfig) -> list[str]:
    """List the add-ons to install. Auto Mode has all but the last itself."""
    return [*ADDONS][-1:] if config.auto_mode else [*ADDONS]


def _addons(config: ClusterConfig) -> list[Part]:
    named = [(name, [*ADDONS].index(name)) for name in addons(config)]
    return [part("add-on", Resource=ADDONS[name], Name=name, Index=index) for name, index in named]


def data_template(cluster: str, file_system: str = "", boundary: str = "", path: str | None = None) -> Template:
    """`path` is that of the roles, where it is not the one that a new stack gives them."""
    paths = {"RolePath": role_path(cluster) if path is None else path}
    values = {"ClusterName": cluster, "FileSystemId": file_system, "BoundaryArn": boundary, **paths}
    files = part("own-file-system" if file_system else "new-file-system")
    return compose("data-stack.yaml", values, [part("pod-role", Role="JobRole"), part("data"), files])


def attachment_template(values: Parameters, subnets: list[str]) -> Template:
    """The access of a cluster that exists already, through one subnet in each zone."""
    given = {"Cluster": "!Ref ClusterName", "Vpc": "!Ref VpcId", "Group": "!Ref SecurityGroup"}
    targets = [part("mount-target", Number=number, Subnet=subnet) for number, subnet in enumerate(subnets, 1)]
    return compose("attachment-stack.yaml", values, [part("attachment"), part("access", **given), *targets])


def from_data(outputs: Mapping[str, str]) -> Parameters:
    """Return the parameters that the data stack provides; they are empty before it exists."""
    return {name: outputs.get(name, "") for name in FROM_DATA}


def as_deployed(config: ClusterConfig, deployed: Mapping[str, str]) -> ClusterConfig:
    """Return the configuration with the settings that determine cost as deployed, not as in cluster.yaml."""
    if "WorkerCount" not in deployed:
        return config
    changes = {
        "worker_count": int(deployed["WorkerCount"]),
        "worker_instance_type": deployed["InstanceType"],
        "worker_spot": deployed["CapacityType"] == "SPOT",
        "worker_disk_size": int(deployed["DiskSize"]),
        "kms_key_arn": deployed.get("KmsKeyArn", ""),
    }
    return config.model_copy(update=changes)
