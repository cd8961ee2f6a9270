"""AWS' price list has many prices for one thing; the one that a cluster is billed is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlejob.cloud.aws.cost import facts, idle_items, idle_line, table
from paddlejob.cloud.aws.prices import Prices, prices
from paddlejob.cloud.aws.session import Aws

from .kinds import Configured

PLAIN = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
DEARER = [
    {"operatingSystem": "Windows"},
    {"tenancy": "Dedicated"},
    {"preInstalledSw": "SQL Ent"},
    {"capacitystatus": "UnusedCapacityReservation"},
    {"regionCode": "ap-southeast-1"},
]


def listed(price: float, terms: str = "OnDemand", currency: str = "USD", **changes: str) -> dict[str, Any]:
    kind = {"usagetype": "USW2-BoxUsage:m5.xlarge", "regionCode": "us-west-2", **PLAIN, **changes}
    unit = {"pricePerUnit": {currency: str(price)}}
    return {"product": {"attributes": kind}, "terms": {terms: {"x": {"priceDimensions": {"y": unit}}}}}


def serve(patch: pytest.MonkeyPatch, *products: dict[str, Any]) -> list[str]:
    """A price list that filters as AWS' does. Returns the regions that are asked."""
    regions: list[str] = []

    def items(self: Aws, service: str, operation: str, key: str, **request: Any) -> list[str]:
        regions.append(self.region)
        exact = {one["Field"]: one["Value"] for one in request["Filters"] if one["Type"] == "TERM_MATCH"}
        (usage,) = [one["Value"] for one in request["Filters"] if one["Type"] == "CONTAINS"]
        kinds = [(one["product"]["attributes"], one) for one in products]
        return [json.dumps(one) for kind, one in kinds if usage in kind["usagetype"] and exact.items() <= kind.items()]

    patch.setattr(Aws, "items", items)
    return regions


def test_a_node_costs_what_a_plain_linux_instance_costs(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, listed(0.192), *(listed(9.0, **other) for other in DEARER))
    assert prices(Aws("us-west-2"), configured()).get("node") == 0.192


@pytest.mark.parametrize("product", [listed(0.1, terms="Reserved"), listed(1.3, currency="CNY")])
def test_where_no_price_in_dollars_is_listed_there_is_none(
    configured: Configured, monkeypatch: pytest.MonkeyPatch, product: dict[str, Any]
) -> None:
    serve(monkeypatch, product)
    found = prices(Aws("us-west-2"), configured())
    assert found == Prices({}, "it has no prices for us-west-2")
    assert "Cost unknown: AWS' price list cannot be read (it has no prices for us-west-2)" in idle_line(
        configured(), found
    )


@pytest.mark.parametrize(
    ("region", "served"), [("cn-north-1", "cn-northwest-1"), ("us-west-2", "us-east-1"), ("eu-west-1", "us-east-1")]
)
def test_the_price_list_of_each_partition_is_asked_where_it_is_served(
    monkeypatch: pytest.MonkeyPatch, region: str, served: str
) -> None:
    regions = serve(monkeypatch)
    prices(Aws(region))
    assert {*regions} == {served}
    assert len(regions) == 4, "of the data alone, only its four prices are asked for"


def test_a_program_reads_the_parts_the_total_and_what_data_costs(configured: Configured) -> None:
    known = Prices(
        {
            "control plane": 0.1,
            "node": 0.192,
            "disk": 0.08,
            "nat": 0.045,
            "address": 0.005,
            "key": 1.0,
            "files": 0.3,
            "files read": 0.03,
            "files written": 0.06,
            "bucket": 0.023,
            "nat traffic": 0.0451,
        }
    )
    found = facts(configured(workerCount=2), known)
    assert found == {
        "currency": "USD",
        "hourly": 0.5573,
        "items": [
            {"what": "EKS control plane", "hourly": 0.1},
            {"what": "2 x m5.xlarge (on demand)", "hourly": 0.384},
            {"what": "node disks, 100 GiB each", "hourly": 0.0219},
            {"what": "NAT gateway", "hourly": 0.045},
            {"what": "public address of the NAT gateway", "hourly": 0.005},
            {"what": "KMS key", "hourly": 0.0014},
        ],
        "storedGiBMonth": {"efs": 0.3, "s3": 0.023},
        "efsGiB": {"read": 0.03, "written": 0.06},
        "natGiB": 0.0451,
    }
    assert "about $0.56 per hour, $407 per month; on top" in idle_line(configured(workerCount=2), known)
    first = table(idle_items(configured(workerCount=2), known))[0]
    assert first.split("EKS control plane")[1].split() == ["$", "0.1000", "per", "hour", "$", "73.00", "per", "month"]


def test_a_program_reads_why_there_are_no_prices(configured: Configured) -> None:
    found = facts(configured(), Prices(problem="AWS denied pricing:get_products"))
    assert (found["problem"], found["hourly"], found["natGiB"]) == ("AWS denied pricing:get_products", None, None)
    assert {item["hourly"] for item in found["items"]} == {None}


def test_a_price_that_is_missing_is_said_to_be_unknown_beside_those_that_are_known(configured: Configured) -> None:
    line = idle_line(configured(externalDNSName="paddle"), Prices({"control plane": 0.1}))
    assert "KMS key, whose price is unknown" in line
    assert "private DNS zone" in line
    assert "an unknown price per GiB through the NAT gateway" in line
