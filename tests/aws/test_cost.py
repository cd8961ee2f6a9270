"""What an idle cluster costs: a rough sum, and said to be rough."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paddlejob.cloud.aws.config import ClusterConfig
from paddlejob.cloud.aws.cost import hourly_price, idle_items, idle_line, table

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
    assert total == pytest.approx(0.10 + 3 * 0.192 + 0.05 + (3 * 8 + 0.5 + 1.0) / 730)
    assert f"about ${total:.2f} an hour" in idle_line(config)
    assert "approximate" in idle_line(config)


def test_a_price_that_is_not_known_is_not_silently_nothing(configured: Configured) -> None:
    config = configured(workerInstanceType="x9.huge", workerCount=2)
    assert "and 2 x x9.huge (on demand), whose price is not known here" in idle_line(config)
    assert any("not known here" in line for line in table(idle_items(config)))


def test_no_nodes_cost_no_nodes_and_an_own_key_is_not_counted(configured: Configured) -> None:
    dear, cheap = configured(workerCount=2), configured(workerCount=0)
    assert sum(i.hourly or 0 for i in idle_items(cheap)) < sum(i.hourly or 0 for i in idle_items(dear))
    own = configured(kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/1")
    assert len(idle_items(own)) == len(idle_items(dear)) - 1
