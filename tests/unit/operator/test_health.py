"""Whether the kubelet should restart the operator, and whether it is ready."""

from __future__ import annotations

import time

import pytest

from paddlejob.operator.health import SILENCE_LIMIT, Health


@pytest.mark.parametrize("standby", [True, False], ids=["standing by", "leading"])
def test_an_operator_that_hears_nothing_for_long_is_restarted(standby: bool):
    health = Health()
    health.standby, health.synced = standby, True
    assert health.live()
    health.last_contact = lambda: time.monotonic() - SILENCE_LIMIT - 1
    assert not health.live()


def test_the_first_look_at_a_large_cluster_may_take_its_time():
    health = Health()
    health.standby, health.last_contact = False, lambda: 0.0
    assert health.live()
    assert not health.ready()
