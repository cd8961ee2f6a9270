"""Liveness and readiness of the operator."""

from __future__ import annotations

import time

import pytest

from paddlejob.operator.health import CONTACT_TIMEOUT, Health


@pytest.mark.parametrize("standby", [True, False], ids=["standby", "leader"])
def test_an_operator_without_contact_for_long_is_not_live(standby: bool):
    health = Health()
    health.standby, health.synced = standby, True
    assert health.live()
    health.last_contact = lambda: time.monotonic() - CONTACT_TIMEOUT - 1
    assert not health.live()


def test_the_first_list_of_a_large_cluster_may_take_long():
    health = Health()
    health.standby, health.last_contact = False, lambda: 0.0
    assert health.live()
    assert not health.ready()
