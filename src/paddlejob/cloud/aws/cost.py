"""What the cluster costs while it is idle, from the prices of its parts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.prices import OF_DATA, Prices

HOURS_PER_MONTH = 730
_AUTO_MODE = "nodes, as EKS Auto Mode creates them (their price and about 12 %)"


@dataclass(frozen=True)
class Item:
    what: str
    hourly: float | None  # None: unknown


def idle_items(config: ClusterConfig, prices: Prices) -> list[Item]:
    """List what is billed while no job runs."""
    monthly = {
        **({"zone": "private DNS zone"} if config.external_dns_name else {}),
        **({} if config.kms_key_arn else {"key": "KMS key"}),
    }
    return [
        Item("EKS control plane", prices.get("control plane")),
        *_nodes(config, prices),
        Item("NAT gateway", prices.get("nat")),
        Item("public address of the NAT gateway", prices.get("address")),
        *(Item(what, _times(prices.get(product), 1 / HOURS_PER_MONTH)) for product, what in monthly.items()),
    ]


def _nodes(config: ClusterConfig, prices: Prices) -> list[Item]:
    if config.auto_mode:
        return [Item(_AUTO_MODE, None)]
    kind = "spot, at most" if config.worker_spot else "on demand"
    disks = config.worker_count * config.worker_disk_size / HOURS_PER_MONTH
    return [
        Item(
            f"{config.worker_count} x {config.worker_instance_type} ({kind})",
            _times(prices.get("node"), config.worker_count),
        ),
        Item(f"node disks, {config.worker_disk_size} GiB each", _times(prices.get("disk"), disks)),
    ]


def _times(price: float | None, count: float) -> float | None:
    """Nothing costs nothing, also if its price is unknown."""
    return 0.0 if count == 0 else None if price is None else price * count


def idle_line(config: ClusterConfig, prices: Prices) -> str:
    """Return the total in one line, or why there is none."""
    if prices.problem:
        return _unknown(prices)
    items = idle_items(config, prices)
    hourly = sum(item.hourly or 0.0 for item in items)
    unknown = [item.what for item in items if item.hourly is None]
    rest = f" without {', '.join(unknown)}, whose price is unknown" if unknown else ""
    total = f"about ${hourly:.2f} per hour, ${hourly * HOURS_PER_MONTH:.0f} per month{rest}"
    traffic = f"{_per_gib(prices, 'nat traffic')} GiB through the NAT gateway"
    return f"Idle cost: {total}; on top, {traffic}, and for data {_stored(prices)} (AWS' price list)"


def facts(config: ClusterConfig, prices: Prices) -> dict[str, Any]:
    """Return the estimate for JSON and YAML. An unknown price is null and makes the total null."""
    costs = [item.hourly for item in idle_items(config, prices)]
    known = [hourly for hourly in costs if hourly is not None]
    return {
        "currency": "USD",
        "hourly": round(sum(known), 4) if len(known) == len(costs) else None,
        "items": [
            {"what": item.what, "hourly": None if item.hourly is None else round(item.hourly, 4)}
            for item in idle_items(config, prices)
        ],
        "storedGiBMonth": {"efs": prices.get("files"), "s3": prices.get("bucket")},
        "efsGiB": {"read": prices.get("files read"), "written": prices.get("files written")},
        "natGiB": prices.get("nat traffic"),
        **({"problem": prices.problem} if prices.problem else {}),
    }


def stored_line(prices: Prices) -> str:
    """Return what data costs, with or without a cluster."""
    return _unknown(prices) if prices.problem else f"Data costs {_stored(prices)} (AWS' price list)"


def table(items: Iterable[Item]) -> list[str]:
    """Format each item with its price per hour and per month."""
    return [f"  {item.what:<44} {_prices(item.hourly)}" for item in items]


def _prices(hourly: float | None) -> str:
    if hourly is None:
        return "     price unknown"
    return f"${hourly:8.4f} per hour  ${hourly * HOURS_PER_MONTH:9.2f} per month"


def _unknown(prices: Prices) -> str:
    return f"Cost unknown: AWS' price list cannot be read ({prices.problem}); see https://calculator.aws"


def _stored(prices: Prices) -> str:
    files, read, written, bucket = (_per_gib(prices, name) for name in OF_DATA)
    return f"{files} GiB-month in EFS, {read} GiB read from it, {written} GiB written, {bucket} GiB-month in S3"


def _per_gib(prices: Prices, product: str) -> str:
    price = prices.get(product)
    return "an unknown price per" if price is None else f"${price:.3f} per"
