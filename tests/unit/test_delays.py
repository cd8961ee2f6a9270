"""Delays that grow."""

from __future__ import annotations

import pytest

from paddlejob.delays import exponential_delay


@pytest.mark.parametrize(("count", "seconds"), [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 5), (6, 5), (10_000, 5)])
def test_each_delay_is_twice_the_one_before_up_to_the_longest(count: int, seconds: float):
    assert exponential_delay(count, 0.5, 5.0) == seconds


def test_a_delay_without_a_practical_limit_still_ends():
    assert exponential_delay(10_000, 1.0, 1e9) == 2.0**20
