"""Liveness and readiness of the operator."""

from __future__ import annotations

import time

import pytest

from paddlejob.kube.resource import PODS
from paddlejob.operator.health import CONTACT_TIMEOUT, FAILING_SECONDS, Health


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
    assert "not synced" in health.not_ready()


def test_an_operator_whose_cache_is_no_longer_current_says_which_resource_fails():
    health = Health()
    health.standby, health.synced = False, True
    health.failing = lambda: {PODS: FAILING_SECONDS - 1}
    assert health.not_ready() == "", "a connection that broke a moment ago"
    health.failing = lambda: {PODS: FAILING_SECONDS + 1}
    assert health.not_ready() == "list or watch fails: pods; see the log"
    health.standby = True
    assert health.not_ready() == "", "on standby the informers do not run"
