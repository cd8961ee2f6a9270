"""The cost estimate of an idle cluster, which says that it is approximate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.cost import (
    AS_OF,
    facts,
    hourly_price,
    idle_items,
    idle_line,
    kept_line,
    stored_line,
    table,
)

Configured = Callable[..., ClusterConfig]


@pytest.mark.parametrize(
    ("instance_type", "price"),
    [
        ("m5.large", 0.096),
        ("m5.xlarge", 0.192),
        ("m5.24xlarge", 4.608),
        ("t3.medium", 0.0416),
        ("g4dn.xlarge", 0.526),
        ("x9.huge", None),
        ("m5.metal", None),
    ],
)
def test_prices_of_sizes(instance_type: str, price: float | None) -> None:
    assert hourly_price(instance_type) == (None if price is None else pytest.approx(price))


def test_the_line_is_the_sum_of_the_items(configured: Configured) -> None:
    config = configured(workerCount=3)
    total = sum(item.hourly or 0 for item in idle_items(config))
    assert total == pytest.approx(0.10 + 3 * 0.192 + 0.05 + (3 * 8 + 1.0) / 730)
    assert f"about ${total:.2f} per hour" in idle_line(config)
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
    assert sum(i.hourly or 0 for i in idle_items(cheap)) < sum(i.hourly or 0 for i in idle_items(dear))
    own = configured(kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/1")
    assert len(idle_items(own)) == len(idle_items(dear)) - 1
