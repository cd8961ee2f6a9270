"""The availability zones of a region, and the choice of the control plane's second zone."""

from __future__ import annotations

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws, filters
from paddlejob.errors import NotPossible

# Zones without EKS control planes, by id, because zone names differ between accounts.
WITHOUT_CONTROL_PLANE = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})


def zones_of(aws: Aws) -> dict[str, str]:
    """Map the names of the zones that this account can use to their ids, without Local Zones and Wavelength Zones."""
    wanted = {"state": "available", "zone-type": "availability-zone"}
    answer = aws.call("ec2", "describe_availability_zones", Filters=filters(wanted))
    return dict(sorted((zone["ZoneName"], zone.get("ZoneId", "")) for zone in answer["AvailabilityZones"]))


def second_zone(aws: Aws, config: ClusterConfig, deployed: str = "") -> str:
    """Choose the control plane's second zone when the user listed one. A deployed choice is kept."""
    first = config.availability_zones[0]
    if deployed and deployed != first:
        return deployed
    free = [name for name, id in zones_of(aws).items() if name != first and id not in WITHOUT_CONTROL_PLANE]
    if not free:
        raise NotPossible(f"region {config.region} has no second zone for the control plane; choose another region")
    return free[0]
