"""What AWS bills for a cluster and its data, from AWS' price list."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

# The price list is served from a few regions only, for all regions of the partition.
_SERVED_FROM = {"cn": "cn-northwest-1"}
_DEFAULT = "us-east-1"
# The service and the usage type of each product; a usage type has a prefix for its region, such as USW2-.
_PRODUCTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "control plane": ("AmazonEKS", "AmazonEKS-Hours:perCluster", {}),
    "disk": ("AmazonEC2", "EBS:VolumeUsage.gp3", {}),
    "nat": ("AmazonEC2", "NatGateway-Hours", {}),
    "nat traffic": ("AmazonEC2", "NatGateway-Bytes", {}),
    "address": ("AmazonVPC", "PublicIPv4:InUseAddress", {}),
    "key": ("awskms", "KMS-Keys", {}),
    "zone": ("AmazonRoute53", "HostedZone", {}),
    "files": ("AmazonEFS", "TimedStorage-ByteHrs", {}),
    "files read": ("AmazonEFS", "ETDataAccess-Bytes", {"accessType": "Read"}),
    "files written": ("AmazonEFS", "ETDataAccess-Bytes", {"accessType": "Write"}),
    "bucket": ("AmazonS3", "TimedStorage-ByteHrs", {}),
}
OF_DATA = ("files", "files read", "files written", "bucket")


@dataclass(frozen=True)
class Prices:
    """Prices in US dollars, by product. Those that the price list lacks are left out."""

    known: dict[str, float] = field(default_factory=dict)
    problem: str = ""
    """Why the price list cannot be read, if it cannot."""

    def get(self, product: str) -> float | None:
        return self.known.get(product)


def offline() -> Prices:
    return Prices(problem="asked for without a connection")


def prices(aws: Aws, config: ClusterConfig | None = None) -> Prices:
    """Ask for the prices of a cluster and its data, or of the data alone."""
    wanted = {name: _PRODUCTS[name] for name in (_PRODUCTS if config else OF_DATA)}
    if config:
        linux = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
        wanted["node"] = ("AmazonEC2", f"BoxUsage:{config.worker_instance_type}", linux)
    served = Aws(_SERVED_FROM.get(aws.region.split("-")[0], _DEFAULT), aws.profile)
    found = {}
    for name, (service, usage, attributes) in wanted.items():
        try:
            price = _price(served, service, usage, {"regionCode": aws.region, **attributes})
        except NotPossible as error:  # no permission, no network: the same for all
            return Prices(problem=str(error))
        if price:
            found[name] = price
    return Prices(found, "" if found else f"it has no prices for {aws.region}")


def _price(aws: Aws, service: str, usage: str, attributes: dict[str, str]) -> float:
    """Return the highest price per unit, which is that of the first units; zero if there is none."""
    if service == "AmazonRoute53":  # not of any region
        attributes = {}
    wanted = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in attributes.items()]
    wanted.append({"Type": "CONTAINS", "Field": "usagetype", "Value": usage})
    listed = aws.items("pricing", "get_products", "PriceList", ServiceCode=service, Filters=wanted)
    products = [json.loads(item) for item in listed]
    found = [_dollars(product) for product in products if _is_of(product, usage)]
    return max(found, default=0.0)


def _is_of(product: dict[str, Any], usage: str) -> bool:
    kind = product["product"]["attributes"]["usagetype"]
    return bool(kind == usage or kind.endswith(f"-{usage}"))


def _dollars(product: dict[str, Any]) -> float:
    terms = product.get("terms", {}).get("OnDemand", {}).values()
    units = [unit["pricePerUnit"] for term in terms for unit in term["priceDimensions"].values()]
    return max((float(unit.get("USD", 0)) for unit in units), default=0.0)
