"""A rough estimate of what the cluster costs while it is idle. Pure.

The price of nodes comes from AWS' price list (`prices`). All others are Amazon's public list prices of `REGION` as of
`AS_OF`, in US dollars, maintained by hand. Prices change and differ between regions, so every line calls itself
approximate.
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


@dataclass(frozen=True)
class Item:
    what: str
    hourly: float | None  # None: unknown


def idle_items(config: ClusterConfig, node_price: float | None = None) -> list[Item]:
    """List what is billed while no job runs. `node_price` is per node and hour; None if it is unknown."""
    disks = config.worker_count * config.worker_disk_size * _DISK_GIB_MONTH / HOURS_PER_MONTH
    kind = "spot, at most" if config.worker_spot else "on demand"
    nodes = f"{config.worker_count} x {config.worker_instance_type} ({kind})"
    items = [
        Item("EKS control plane", _CONTROL_PLANE),
        Item(nodes, _price_of_nodes(config, node_price)),
        Item(f"node disks, {config.worker_disk_size} GiB each", disks),
        Item("NAT gateway with its address", _NAT_GATEWAY + _PUBLIC_ADDRESS),
    ]
    if config.external_dns_name:
        items.append(Item("private DNS zone", _ZONE_MONTH / HOURS_PER_MONTH))
    if not config.kms_key_arn:
        items.append(Item("KMS key", _KEY_MONTH / HOURS_PER_MONTH))
    return items


def _price_of_nodes(config: ClusterConfig, node_price: float | None) -> float | None:
    if config.worker_count == 0:
        return 0.0
    return None if node_price is None else node_price * config.worker_count


def idle_line(config: ClusterConfig, node_price: float | None = None) -> str:
    """Return the total in one line."""
    hourly = known_hourly(config, node_price)
    nodes = "nodes from AWS' price list, others " if node_price is not None else ""
    return (
        f"Idle cost: about ${hourly:.2f} per hour, ${hourly * HOURS_PER_MONTH:.0f} per month"
        f"{_and_unknown(config, node_price)}, plus {_stored()} ({nodes}{_price_source(config.region)})"
    )


def known_hourly(config: ClusterConfig, node_price: float | None = None) -> float:
    return sum(item.hourly or 0.0 for item in idle_items(config, node_price))


def facts(config: ClusterConfig, node_price: float | None = None) -> dict[str, Any]:
    """Return the estimate for JSON and YAML. An unknown price is null and makes the total null."""
    items = idle_items(config, node_price)
    unknown = any(item.hourly is None for item in items)
    return {
        "currency": "USD",
        "pricesOf": {"region": REGION, "month": AS_OF},
        "regionPricesKnown": config.region == REGION,
        "hourly": None if unknown else round(known_hourly(config, node_price), 4),
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


def _and_unknown(config: ClusterConfig, node_price: float | None) -> str:
    unknown = [item.what for item in idle_items(config, node_price) if item.hourly is None]
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
