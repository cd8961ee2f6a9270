"""Network interfaces that the network plugin left behind when its node was terminated.

They hold the cluster's security group and subnets, so that EKS and CloudFormation cannot delete these.
"""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws, filters
from paddlejob.cloud.aws.stack.stack import Say

PREFIX = "aws-K8S-"


def is_leaked(interface: dict[str, Any]) -> bool:
    return interface.get("Status") == "available" and interface.get("Description", "").startswith(PREFIX)


def delete_leaked(aws: Aws, vpc: str, say: Say) -> None:
    """Delete them. To be called when no node is left: a node creates interfaces before it attaches them."""
    wanted = filters({"vpc-id": vpc, "status": "available", "description": f"{PREFIX}*"})
    for interface in aws.items("ec2", "describe_network_interfaces", "NetworkInterfaces", Filters=wanted):
        name = interface["NetworkInterfaceId"]
        try:
            aws.call("ec2", "delete_network_interface", NetworkInterfaceId=name)
        except AwsError as error:
            say(f"network interface {name}, left by a node, cannot be deleted: {error.message}")
        else:
            say(f"network interface {name}, left by a node, deleted")
