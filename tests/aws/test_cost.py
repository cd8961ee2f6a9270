"""The cost estimate of an idle cluster, which says that it is approximate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.cost import (
    AS_OF,
    facts,
    idle_items,
    idle_line,
    kept_line,
    stored_line,
    table,
)
from paddlejob.cloud.aws.prices import node_price
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import NotPossible

from .moto_gaps import price_list_entry

Configured = Callable[..., ClusterConfig]


@pytest.mark.parametrize(
    ("listed", "price"),
    [([], None), ([price_list_entry(0.0)], None), ([price_list_entry(0.0), price_list_entry(4.608)], 4.608)],
)
def test_the_price_of_any_node_comes_from_the_price_list(
    configured: Configured, monkeypatch: pytest.MonkeyPatch, listed: list[str], price: float | None
) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def call(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        asked.append((self.region, {one["Field"]: one["Value"] for one in request["Filters"]}))
        return {"PriceList": listed}

    monkeypatch.setattr(Aws, "call", call)
    config = configured(workerInstanceType="m5.24xlarge", region="eu-central-1", availabilityZones=["eu-central-1a"])
    assert node_price(Aws("eu-central-1"), config) == price
    ((region, filters),) = asked
    assert region == "us-east-1", "from where the price list is served"
    assert (filters["instanceType"], filters["regionCode"]) == ("m5.24xlarge", "eu-central-1")


def test_without_the_price_list_the_price_is_unknown_and_that_is_no_error(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*_: object, **__: object) -> None:
        raise NotPossible("AWS denied pricing:get_products")

    monkeypatch.setattr(Aws, "call", call)
    assert node_price(Aws("us-west-2"), configured()) is None


def test_the_line_is_the_sum_of_the_items(configured: Configured) -> None:
    config = configured(workerCount=3)
    total = sum(item.hourly or 0 for item in idle_items(config, 0.192))
    assert total == pytest.approx(0.10 + 3 * 0.192 + 0.05 + (3 * 8 + 1.0) / 730)
    assert f"about ${total:.2f} per hour" in idle_line(config, 0.192)
    assert f"(approximate list prices of us-west-2, {AS_OF})" in idle_line(config)


def test_prices_of_another_region_are_not_passed_off_as_its_own(configured: Configured) -> None:
    config = configured(region="eu-central-1", availabilityZones=["eu-central-1a"])
    note = f"(approximate list prices of us-west-2, {AS_OF}; prices in eu-central-1 differ and are unknown)"
    assert idle_line(config).endswith(note)
    assert kept_line("eu-central-1").endswith(note)
    assert stored_line("eu-central-1").endswith(note)
    assert facts(config)["regionPricesKnown"] is False
    assert facts(configured())["regionPricesKnown"] is True


def test_the_cost_of_spot_nodes_is_an_upper_bound(configured: Configured) -> None:
    assert any("m5.xlarge (spot, at most)" in item.what for item in idle_items(configured(workerSpot=True)))


def test_a_price_that_is_not_known_is_not_silently_nothing(configured: Configured) -> None:
    config = configured(workerInstanceType="x9.huge", workerCount=2)
    assert "plus 2 x x9.huge (on demand), price unknown" in idle_line(config)
    assert any("price unknown" in line for line in table(idle_items(config)))
    assert facts(config)["hourly"] is None
    assert "price unknown" not in idle_line(configured(workerInstanceType="x9.huge", workerCount=0))


def test_no_nodes_cost_no_nodes_and_an_own_key_is_not_counted(configured: Configured) -> None:
    dear, cheap = configured(workerCount=2), configured(workerCount=0)
    assert sum(i.hourly or 0 for i in idle_items(cheap, 0.2)) < sum(i.hourly or 0 for i in idle_items(dear, 0.2))
    own = configured(kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/1")
    assert len(idle_items(own)) == len(idle_items(dear)) - 1
