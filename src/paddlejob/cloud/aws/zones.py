"""The zones of a region, and which one is the control plane's second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddlejob.errors import NotPossible

from .config import ClusterConfig
from .session import Aws

# Zones in which EKS makes no control plane, by their id, as names differ between accounts.
WITHOUT_CONTROL_PLANE = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})


@dataclass(frozen=True)
class Zone:
    name: str
    id: str


def zones_of(aws: Aws) -> list[Zone]:
    """The zones that this account can use, without local zones and wavelengths."""
    answer = aws.call(
        "ec2",
        "describe_availability_zones",
        Filters=[
            {"Name": "state", "Values": ["available"]},
            {"Name": "zone-type", "Values": ["availability-zone"]},
        ],
    )
    zones = [Zone(item["ZoneName"], item.get("ZoneId", "")) for item in answer["AvailabilityZones"]]
    return sorted(zones, key=lambda zone: zone.name)


def second_zone(config: ClusterConfig, zones: Sequence[Zone], deployed: str = "") -> str:
    """The control plane needs two zones: the second one, where the user named one. A deployed one stays."""
    first = config.availability_zones[0]
    free = [z.name for z in zones if z.name != first and z.id not in WITHOUT_CONTROL_PLANE]
    if deployed and deployed != first:
        return deployed
    if not free:
        raise NotPossible(f"region {config.region} has no second zone for the control plane; choose another region")
    return free[0]
