"""The price of a node, from AWS' price list."""

from __future__ import annotations

import json
from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

# The price list is served from a few regions only, for all regions of the partition.
_SERVED_FROM = {"cn": "cn-northwest-1"}
_DEFAULT = "us-east-1"


def node_price(aws: Aws, config: ClusterConfig) -> float | None:
    """Return the on-demand price of a node per hour in US dollars, or None if it cannot be had."""
    wanted = {
        "instanceType": config.worker_instance_type,
        "regionCode": config.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    served = Aws(_SERVED_FROM.get(config.region.split("-")[0], _DEFAULT), aws.profile)
    try:
        answer = served.call("pricing", "get_products", ServiceCode="AmazonEC2", Filters=filters)
    except NotPossible:  # no permission, no network: the estimate says that the price is unknown
        return None
    return next((price for product in answer["PriceList"] if (price := _hourly(json.loads(product)))), None)


def _hourly(product: dict[str, Any]) -> float | None:
    terms = product.get("terms", {}).get("OnDemand", {}).values()
    dimensions = [dimension for term in terms for dimension in term["priceDimensions"].values()]
    prices = [float(one["pricePerUnit"].get("USD", 0)) for one in dimensions if one["unit"] == "Hrs"]
    return max(prices, default=0) or None
