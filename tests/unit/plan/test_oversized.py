"""Environments that no process could start with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Create, PodPhase, World, plan
from tests.support.builders import NOON, all_pods, having, job

LONG_IPV6 = "2001:0db8:85a3:08d3:1319:8a2e:0370:7344"


@pytest.mark.parametrize(("address", "phase"), [("10.200.100.101", Phase.STARTING), (LONG_IPV6, Phase.FAILED)])
def test_a_job_that_fits_with_ipv4_addresses_only_fails_with_ipv6_ones_before_it_starts(address: str, phase: Phase):
    made = job(workers=4000)
    first = plan(made, World(), NOON)
    assert first.status.phase is Phase.PENDING, "the addresses are not known yet"
    made = having(made, first.status)
    pods = [replace(pod, address=address) for pod in all_pods(made, PodPhase.WAITING)]
    decided = plan(made, World(pods=tuple(pods)), NOON)
    assert decided.status.phase is phase
    if phase is Phase.FAILED:
        assert decided.status.reason == "EnvironmentTooLarge"
        assert not any(isinstance(one, Create) for one in decided.actions)
