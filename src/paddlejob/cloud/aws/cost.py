"""What the cluster costs while nothing trains: a rough sum, so that nobody is surprised. Pure.

Prices are Amazon's public on-demand list prices of us-west-2 as of `AS_OF`, in US dollars. They change, and
other regions differ by up to about a third: the sum is a guide, never a quotation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .config import ClusterConfig

AS_OF = "2025-11"
HOURS_A_MONTH = 730

_CONTROL_PLANE = 0.10
_NAT_GATEWAY = 0.045
_PUBLIC_ADDRESS = 0.005
_DISK_GIB_MONTH = 0.08
_KEY_MONTH = 1.00
_ZONE_MONTH = 0.50
FILES_GIB_MONTH = 0.30
BUCKET_GIB_MONTH = 0.023

# An hour of the smallest size listed; larger sizes of a family are multiples.
_FAMILIES = {
    "t3": ("medium", 0.0416),
    "m5": ("large", 0.096),
    "m6i": ("large", 0.096),
    "m7i": ("large", 0.1008),
    "m6g": ("large", 0.077),
    "m7g": ("large", 0.0816),
    "c5": ("large", 0.085),
    "c6i": ("large", 0.085),
    "c7i": ("large", 0.08925),
    "c7g": ("large", 0.0725),
    "r5": ("large", 0.126),
    "r6i": ("large", 0.126),
}
_SIZES = {"medium": 0.5, "large": 1, "xlarge": 2}
_SINGLE = {
    "g4dn.xlarge": 0.526,
    "g4dn.2xlarge": 0.752,
    "g4dn.4xlarge": 1.204,
    "g4dn.8xlarge": 2.176,
    "g4dn.12xlarge": 3.912,
    "g5.xlarge": 1.006,
    "g5.2xlarge": 1.212,
    "g5.4xlarge": 1.624,
    "g5.12xlarge": 5.672,
    "g5.48xlarge": 16.288,
    "g6.xlarge": 0.805,
    "g6.2xlarge": 0.978,
    "p3.2xlarge": 3.06,
    "p3.8xlarge": 12.24,
    "p3.16xlarge": 24.48,
}


@dataclass(frozen=True)
class Item:
    what: str
    hourly: float | None  # None: not known here


def hourly_price(instance_type: str) -> float | None:
    """An hour of one instance, on demand, or None where the type is not in the table."""
    if instance_type in _SINGLE:
        return _SINGLE[instance_type]
    family, _, size = instance_type.partition(".")
    if family not in _FAMILIES:
        return None
    base_size, price = _FAMILIES[family]
    times = _times_large(size)
    return None if times is None else price * times / _SIZES[base_size]


def idle_items(config: ClusterConfig) -> list[Item]:
    price = hourly_price(config.worker_instance_type)
    disks = config.worker_count * config.worker_disk_size * _DISK_GIB_MONTH / HOURS_A_MONTH
    kind = "spot, at most" if config.worker_spot else "on demand"
    nodes = f"{config.worker_count} x {config.worker_instance_type} ({kind})"
    items = [
        Item("EKS control plane", _CONTROL_PLANE),
        Item(nodes, None if price is None else price * config.worker_count),
        Item(f"disks of the nodes, {config.worker_disk_size} GiB each", disks),
        Item("NAT gateway and its address", _NAT_GATEWAY + _PUBLIC_ADDRESS),
        Item("private DNS zone", _ZONE_MONTH / HOURS_A_MONTH),
    ]
    return items if config.kms_key_arn else [*items, Item("KMS key", _KEY_MONTH / HOURS_A_MONTH)]


def idle_line(config: ClusterConfig) -> str:
    """The sum in one line."""
    items = idle_items(config)
    hourly = sum(item.hourly or 0.0 for item in items)
    unknown = [item.what for item in items if item.hourly is None]
    missing = f" and {unknown[0]}, whose price is not known here" if unknown and config.worker_count else ""
    return (
        f"While idle: about ${hourly:.2f} an hour, ${hourly * HOURS_A_MONTH:.0f} a month{missing}; stored data "
        f"beside it, ${FILES_GIB_MONTH:.2f} (EFS) or ${BUCKET_GIB_MONTH:.3f} (S3) a GiB and month "
        f"(approximate list prices of {AS_OF})"
    )


def kept_line(file_system_id: str) -> str:
    """What `destroy --keep-data` leaves costs, and how to use it again."""
    again = f"; to use it again, set fileSystemId: {file_system_id} in cluster.yaml" if file_system_id else ""
    return (
        f"What is kept costs about ${FILES_GIB_MONTH:.2f} (EFS) and ${BUCKET_GIB_MONTH:.3f} (S3) a GiB and month "
        f"(approximate list prices of {AS_OF}){again}"
    )


def table(items: Iterable[Item]) -> list[str]:
    """The items with their price an hour and a month."""
    return [
        f"  {item.what:<44} " + ("     not known here" if item.hourly is None else _prices(item.hourly))
        for item in items
    ]


def _prices(hourly: float) -> str:
    return f"${hourly:8.4f} an hour  ${hourly * HOURS_A_MONTH:9.2f} a month"


def _times_large(size: str) -> float | None:
    if size in _SIZES:
        return _SIZES[size]
    count = size.removesuffix("xlarge")
    return 2.0 * int(count) if size.endswith("xlarge") and count.isdigit() else None
