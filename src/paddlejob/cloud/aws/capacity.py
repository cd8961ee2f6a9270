"""What EC2 says of the nodes' type and reservation: EFA interfaces, capacity blocks, and what does not fit."""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import BadInput


def instance_type(aws: Aws, name: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.call("ec2", "describe_instance_types", InstanceTypes=[name])["InstanceTypes"][0]
    return found


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
    if found["State"] not in ("active", "scheduled", "pending"):
        wrong.append(f"{name} is {found['State']}")
    return [f"{problem}; change cluster.yaml, or use another reservation" for problem in wrong]


def _reservation(aws: Aws, config: ClusterConfig) -> dict[str, Any] | None:
    wanted = {"CapacityReservationIds": [config.capacity_reservation_id]}
    try:
        found = aws.items("ec2", "describe_capacity_reservations", "CapacityReservations", **wanted)
    except AwsError as error:
        if error.code.startswith("InvalidCapacityReservationId"):
            return None
        raise
    return found[0] if found else None
