"""Laws of spec.failurePolicy, for any rules and any life of a job, on models of both backends."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.reasons import ENDS_AN_ATTEMPT
from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Model

CODES = (1, 42, 75)
EXITS = st.fixed_dictionaries(
    {"operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(st.sampled_from(CODES), min_size=1, max_size=3)},
    optional={"role": st.just("worker")},
)
ACTIONS = st.sampled_from(["Restart", "Fail", "Ignore"])
REASONS = st.lists(st.sampled_from(ENDS_AN_ATTEMPT), min_size=1, max_size=3)
RULE = st.one_of(
    st.fixed_dictionaries({"action": ACTIONS, "onExitCodes": EXITS}),
    st.fixed_dictionaries({"action": ACTIONS, "onReasons": REASONS}),
)
RULES = st.lists(RULE, min_size=1, max_size=3)
FAULTS = st.lists(st.tuples(st.sampled_from([*CODES, "evict", "delete"]), st.integers(0, 1)), max_size=5)
CRASHES = st.lists(st.integers(0, 12), max_size=6)
LIMIT = 2
both_backends = pytest.mark.parametrize("backend", [Model, LocalModel])


async def life(backend: type[Model], rules: list[dict], faults: list, crashes: list[int]) -> Model:
    model = backend(job(failurePolicy={"rules": rules}, backoffLimit=LIMIT))
    await model.settle()
    for number, (fault, worker) in enumerate(faults):
        if model.status.phase is not Phase.RUNNING:
            break
        name = f"mnist-worker-{worker}"
        if fault == "evict":
            model.change(name, phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
        elif fault == "delete":
            model.pods.pop(name)
        else:
            model.end(name, fault)
        model.crash_after = crashes[number] if number < len(crashes) else None
        await model.settle()
    model.crash_after = None
    return model


@both_backends
@examples(80)
@given(rules=RULES, faults=FAULTS, crashes=CRASHES)
def test_every_attempt_has_exactly_one_counted_cause(backend, rules, faults, crashes):
    status = asyncio.run(life(backend, rules, faults, crashes)).status
    assert status.attempt == 1 + status.restarts + status.disruptions + status.ignoredFailures
    assert status.restarts <= LIMIT
    assert status.phase in (Phase.RUNNING, Phase.FAILED)


@examples(80)
@given(rules=RULES, faults=FAULTS, crashes=CRASHES)
def test_a_crash_changes_no_decision(rules, faults, crashes):
    undisturbed = asyncio.run(life(Model, rules, faults, [])).status
    crashed = asyncio.run(life(Model, rules, faults, crashes)).status
    counters = ("phase", "reason", "attempt", "restarts", "disruptions", "ignoredFailures")
    assert [getattr(crashed, name) for name in counters] == [getattr(undisturbed, name) for name in counters]


@examples(80)
@given(rules=RULES, faults=FAULTS)
def test_only_a_rule_or_the_limit_fails_a_job(rules, faults):
    status = asyncio.run(life(Model, rules, faults, [])).status
    if status.phase is Phase.FAILED:
        rule_fails = any(rule["action"] == "Fail" for rule in rules)
        assert (status.reason == "FailurePolicy" and rule_fails) or status.reason == "BackoffLimitExceeded"
