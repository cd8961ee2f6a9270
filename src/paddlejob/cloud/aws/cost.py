"""A rough estimate of what the cluster costs while it is idle. Pure.

Prices are Amazon's public on-demand list prices of `REGION` as of `AS_OF`, in US dollars, maintained by hand. Prices
change and differ between regions, so every line calls itself approximate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig

AS_OF = "2025-11"
REGION = "us-west-2"
HOURS_PER_MONTH = 730

_CONTROL_PLANE = 0.10
_NAT_GATEWAY = 0.045
_PUBLIC_ADDRESS = 0.005
_DISK_GIB_MONTH = 0.08
_KEY_MONTH = 1.00
_ZONE_MONTH = 0.50
FILES_GIB_MONTH = 0.30
FILES_READ_GIB, FILES_WRITE_GIB = 0.03, 0.06  # elastic throughput
BUCKET_GIB_MONTH = 0.023

# Hourly price of the smallest size; larger sizes of a family cost multiples of it.
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
    hourly: float | None  # None: unknown


def hourly_price(instance_type: str) -> float | None:
    """Return the on-demand price of one instance per hour, or None if the type is not in the table."""
    if instance_type in _SINGLE:
        return _SINGLE[instance_type]
    family, _, size = instance_type.partition(".")
    if family not in _FAMILIES:
        return None
    base_size, price = _FAMILIES[family]
    times = _times_large(size)
    return None if times is None else price * times / _SIZES[base_size]


def idle_items(config: ClusterConfig) -> list[Item]:
    disks = config.worker_count * config.worker_disk_size * _DISK_GIB_MONTH / HOURS_PER_MONTH
    kind = "spot, at most" if config.worker_spot else "on demand"
    nodes = f"{config.worker_count} x {config.worker_instance_type} ({kind})"
    items = [
        Item("EKS control plane", _CONTROL_PLANE),
        Item(nodes, _price_of_nodes(config)),
        Item(f"node disks, {config.worker_disk_size} GiB each", disks),
        Item("NAT gateway with its address", _NAT_GATEWAY + _PUBLIC_ADDRESS),
    ]
    if config.external_dns_name:
        items.append(Item("private DNS zone", _ZONE_MONTH / HOURS_PER_MONTH))
    if not config.kms_key_arn:
        items.append(Item("KMS key", _KEY_MONTH / HOURS_PER_MONTH))
    return items


def _price_of_nodes(config: ClusterConfig) -> float | None:
    if config.worker_count == 0:
        return 0.0
    price = hourly_price(config.worker_instance_type)
    return None if price is None else price * config.worker_count


def idle_line(config: ClusterConfig) -> str:
    """Return the total in one line."""
    hourly = known_hourly(config)
    return (
        f"Idle cost: about ${hourly:.2f} per hour, ${hourly * HOURS_PER_MONTH:.0f} per month{_and_unknown(config)}, "
        f"plus {_stored()} ({_price_source(config.region)})"
    )


def known_hourly(config: ClusterConfig) -> float:
    return sum(item.hourly or 0.0 for item in idle_items(config))


def facts(config: ClusterConfig) -> dict[str, Any]:
    """Return the estimate for JSON and YAML. An unknown price is null and makes the total null."""
    items = idle_items(config)
    unknown = any(item.hourly is None for item in items)
    return {
        "currency": "USD",
        "pricesOf": {"region": REGION, "month": AS_OF},
        "regionPricesKnown": config.region == REGION,
        "hourly": None if unknown else round(known_hourly(config), 4),
        "items": [{"what": item.what, "hourly": _rounded(item.hourly)} for item in items],
        "storedGiBMonth": {"efs": FILES_GIB_MONTH, "s3": BUCKET_GIB_MONTH},
        "efsGiB": {"read": FILES_READ_GIB, "written": FILES_WRITE_GIB},
    }


def kept_line(region: str) -> str:
    """Return what data without a cluster costs."""
    return f"Data costs about {_stored()} ({_price_source(region)})"


def stored_line(region: str) -> str:
    """Return what the data in a shared volume costs."""
    return f"Files cost about {_stored()} ({_price_source(region)})"


def _stored() -> str:
    throughput = f"${FILES_READ_GIB:.2f} per GiB read from EFS and ${FILES_WRITE_GIB:.2f} per GiB written"
    return f"${FILES_GIB_MONTH:.2f} (EFS) or ${BUCKET_GIB_MONTH:.3f} (S3) per GiB-month of stored data, {throughput}"


def _price_source(region: str) -> str:
    """Return the source of the prices, and that those of another region are unknown."""
    source = f"approximate list prices of {REGION}, {AS_OF}"
    return source if region == REGION else f"{source}; prices in {region} differ and are unknown"


def _and_unknown(config: ClusterConfig) -> str:
    unknown = [item.what for item in idle_items(config) if item.hourly is None]
    return f" plus {unknown[0]}, price unknown" if unknown else ""


def _rounded(hourly: float | None) -> float | None:
    return None if hourly is None else round(hourly, 4)


def table(items: Iterable[Item]) -> list[str]:
    """Format each item with its price per hour and per month."""
    return [
        f"  {item.what:<44} " + ("     price unknown" if item.hourly is None else _prices(item.hourly))
        for item in items
    ]


def _prices(hourly: float) -> str:
    return f"${hourly:8.4f} per hour  ${hourly * HOURS_PER_MONTH:9.2f} per month"


def _times_large(size: str) -> float | None:
    if size in _SIZES:
        return _SIZES[size]
    count = size.removesuffix("xlarge")
    return 2.0 * int(count) if size.endswith("xlarge") and count.isdigit() else None
