"""What EC2 says of the nodes: EFA interfaces of their type, quotas, capacity reservations, and what does not fit."""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import QUOTA_ADVICE, AwsError
from paddlejob.cloud.aws.session import Aws, filters
from paddlejob.errors import BadInput

# vCPUs of running instances by first letters of the family: on demand, spot.
_QUOTAS = {
    "p": ("L-417A185B", "L-7212CCBC"),
    **dict.fromkeys(("g", "gr", "vt"), ("L-DB2E81BA", "L-3819A6DF")),
    **dict.fromkeys(("a", "c", "d", "h", "i", "m", "r", "t", "z"), ("L-1216C47A", "L-34B43A08")),
}


def instance_type(aws: Aws, name: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.call("ec2", "describe_instance_types", InstanceTypes=[name])["InstanceTypes"][0]
    return found


def instances_of(aws: Aws, cluster: str, wanted: dict[str, str]) -> list[dict[str, Any]]:
    """List the nodes of a node group, which EKS tags, and those of EKS Auto Mode, which it tags otherwise."""
    return [
        instance
        for tag in ("eks:cluster-name", "eks:eks-cluster-name")
        for reservation in aws.items(
            "ec2", "describe_instances", "Reservations", Filters=filters({f"tag:{tag}": cluster, **wanted})
        )
        for instance in reservation["Instances"]
    ]


def efa_interfaces(aws: Aws, config: ClusterConfig) -> str:
    """Return how many EFA interfaces a node has, such as 32 of p5.48xlarge; empty without EFA."""
    if not config.efa:
        return ""
    network = instance_type(aws, config.worker_instance_type)["NetworkInfo"]
    if not network.get("EfaSupported"):
        raise BadInput(f"efa: {config.worker_instance_type} has no EFA; remove efa, or use a type such as p5.48xlarge")
    return str(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1))


def capacity_type(aws: Aws, config: ClusterConfig) -> str:
    """Return how EKS has to ask for the nodes; empty if cluster.yaml says it all."""
    reserved = config.capacity_reservation_id and _reservation(aws, config)
    return "CAPACITY_BLOCK" if reserved and reserved.get("ReservationType") == "capacity-block" else ""


def reservation_problems(aws: Aws, config: ClusterConfig) -> list[str]:
    if not config.capacity_reservation_id:
        return []
    name = f"capacityReservationId: {config.capacity_reservation_id}"
    found = _reservation(aws, config)
    if found is None:
        return [f"{name} does not exist in {config.region}; use another, or omit it"]
    (zone,) = config.availability_zones
    wanted = {"InstanceType": config.worker_instance_type, "AvailabilityZone": zone}
    wrong = [f"{name} is for {found[key]}, not for {value}" for key, value in wanted.items() if found[key] != value]
    if found["TotalInstanceCount"] < config.worker_count:
        wrong.append(f"{name} has {found['TotalInstanceCount']} instances, and workerCount is {config.worker_count}")
    if found["State"] != "active":
        wrong.append(f"{name} is {found['State']}")
    return [f"{problem}; change cluster.yaml, or use another reservation" for problem in wrong]


def quota_problems(aws: Aws, config: ClusterConfig) -> list[str]:
    """Compare the vCPUs of all nodes with the quota. Other instances of the account use the quota too."""
    codes = _QUOTAS.get(_letters(config.worker_instance_type))
    if codes is None or config.worker_count == 0:
        return []
    try:
        kind = instance_type(aws, config.worker_instance_type)
        wanted = {"ServiceCode": "ec2", "QuotaCode": codes[config.worker_spot]}
        quota = aws.call("service-quotas", "get_service_quota", **wanted)["Quota"]
    except AwsError:  # no such type, which is reported elsewhere, or no permission to ask
        return []
    wanted = kind["VCpuInfo"]["DefaultVCpus"] * config.worker_count
    if wanted <= quota["Value"]:
        return []
    return [
        f"workerCount: {config.worker_count} x {config.worker_instance_type} need {wanted} vCPUs, and the quota "
        f"{quota['QuotaName']!r} is {quota['Value']:.0f}; lower workerCount, or {QUOTA_ADVICE}"
    ]


def _letters(instance_type: str) -> str:
    """Return the letters before the generation: g of g4dn.xlarge, gr of gr6.4xlarge."""
    return instance_type[: next((n for n, letter in enumerate(instance_type) if not letter.isalpha()), None)]


def _reservation(aws: Aws, config: ClusterConfig) -> dict[str, Any] | None:
    wanted: dict[str, Any] = {
        "absent": "InvalidCapacityReservationId",
        "CapacityReservationIds": [config.capacity_reservation_id],
    }
    found = aws.items("ec2", "describe_capacity_reservations", "CapacityReservations", **wanted)
    return found[0] if found else None
