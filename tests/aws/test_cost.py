"""The cost of an idle cluster and of data, from AWS' price list; and one line where it cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.cloud.aws.cost import facts, idle_items, idle_line, stored_line, table
from paddlejob.cloud.aws.prices import Prices, prices
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

from .kinds import Configured
from .moto_gaps import price_list_entry


@pytest.mark.usefixtures("made")
def test_every_price_comes_from_the_price_list(configured: Configured) -> None:
    config = configured(workerCount=3, externalDNSName="paddle")
    found = prices(Aws("us-west-2"), config)
    items = idle_items(config, found)
    total = 0.10 + 3 * 0.192 + 0.045 + 0.005 + (3 * 100 * 0.08 + 1.0 + 0.5) / 730
    assert sum(item.hourly or 0 for item in items) == pytest.approx(total)
    line = idle_line(config, found)
    assert f"about ${total:.2f} per hour" in line
    assert "unknown" not in line
    assert "$0.045 per GiB through the NAT gateway" in line
    stored = (
        "$0.300 per GiB-month in EFS, $0.030 per GiB read from it, $0.060 per GiB written, $0.023 per GiB-month in S3"
    )
    assert stored in line
    assert stored_line(prices(Aws("us-west-2"))) == f"Data costs {stored} (AWS' price list)"
    assert facts(config, found)["efsGiB"] == {"read": 0.03, "written": 0.06}


def test_the_price_list_is_asked_for_the_region_of_the_cluster_where_it_is_served(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, dict[str, str]]] = []

    def items(self: Aws, service: str, operation: str, key: str, **request: Any) -> list[str]:
        asked.append((self.region, request["ServiceCode"], {one["Field"]: one["Value"] for one in request["Filters"]}))
        return []

    monkeypatch.setattr(Aws, "items", items)
    config = configured(workerInstanceType="m5.24xlarge", region="eu-central-1", availabilityZones=["eu-central-1a"])
    assert prices(Aws("eu-central-1"), config).known == {}
    assert {region for region, _, _ in asked} == {"us-east-1"}
    regions = {(service, filters.get("regionCode")) for _, service, filters in asked}
    assert {region for service, region in regions if service != "AmazonRoute53"} == {"eu-central-1"}
    assert ("AmazonRoute53", None) in regions, "which is of no region"
    (node,) = [filters for _, _, filters in asked if "BoxUsage" in filters["usagetype"]]
    assert (node["usagetype"], node["operatingSystem"]) == ("BoxUsage:m5.24xlarge", "Linux")


@pytest.mark.parametrize(
    ("listed", "price"),
    [
        ([], None),
        ([price_list_entry(0.0, "EUC1-BoxUsage:m5.xlarge")], None),
        ([price_list_entry(0.3, 0.5, "EUC1-BoxUsage:m5.xlarge")], 0.5),
        ([price_list_entry(7.0, "EUC1-DedicatedBoxUsage:m5.xlarge")], None),
    ],
)
def test_of_tiers_the_first_counts_and_another_usage_type_does_not(
    configured: Configured, monkeypatch: pytest.MonkeyPatch, listed: list[str], price: float | None
) -> None:
    monkeypatch.setattr(Aws, "items", lambda *_, **__: listed)
    assert prices(Aws("eu-central-1"), configured()).get("node") == price


def test_without_the_price_list_one_line_says_why_and_it_is_asked_once(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def items(*_: object, **__: object) -> list[str]:
        asked.append(1)
        raise NotPossible("AWS denied pricing:get_products")

    monkeypatch.setattr(Aws, "items", items)
    found = prices(Aws("us-west-2"), configured())
    expected = (
        "Cost unknown: AWS' price list cannot be read (AWS denied pricing:get_products); see https://calculator.aws"
    )
    assert idle_line(configured(), found) == expected
    assert stored_line(found) == expected
    assert len(asked) == 1
    assert facts(configured(), found)["hourly"] is None


def test_the_cost_of_spot_nodes_is_an_upper_bound(configured: Configured) -> None:
    assert any("m5.xlarge (spot, at most)" in item.what for item in idle_items(configured(workerSpot=True), Prices()))


def test_a_price_that_is_not_known_is_not_silently_nothing(configured: Configured) -> None:
    config, known = configured(workerCount=2), Prices({"control plane": 0.1, "nat": 0.045})
    assert "without 2 x m5.xlarge (on demand), " in idle_line(config, known)
    assert any("price unknown" in line for line in table(idle_items(config, known)))
    assert facts(config, known)["hourly"] is None
    assert "m5.xlarge" not in idle_line(configured(workerCount=0), known), "no nodes cost nothing"


def test_the_fee_of_auto_mode_is_named(configured: Configured) -> None:
    items = idle_items(configured(autoMode=True), Prices({"control plane": 0.1}))
    assert any("EKS Auto Mode creates them (their price and about 12 %)" in item.what for item in items)
    assert not any("m5.xlarge" in item.what for item in items)


def test_an_own_key_is_not_counted(configured: Configured) -> None:
    own = configured(kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/1")
    assert len(idle_items(own, Prices())) == len(idle_items(configured(), Prices())) - 1
