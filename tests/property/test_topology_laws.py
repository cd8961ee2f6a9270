"""Laws of ranks that follow a topology, for pods on any nodes and any crash of the engine."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase
from paddlejob.plan.ranks import in_order
from tests.support.builders import job, pod
from tests.support.examples import examples
from tests.support.model import Model

NODES = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12)
DOMAINS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["east", "west", "north"]))
CRASHES = st.lists(st.integers(0, 15), max_size=6)
FAULTS = st.lists(st.sampled_from(["fail", "delete", "forget", "relabel"]), max_size=5)


def are_contiguous(values: list[Any]) -> bool:
    runs = [value for value, _ in groupby(values)]
    return len(runs) == len(set(runs))


@examples(200)
@given(nodes=NODES, domains=DOMAINS)
def test_each_rank_is_given_once_and_nodes_and_domains_are_not_interrupted(nodes, domains):
    made = job(workers=len(nodes))
    order = in_order([pod(made, "worker", index, node=node) for index, node in enumerate(nodes)], domains)
    assert sorted(order) == list(range(len(nodes)))
    assert order[0] == 0, "the first worker is the master and shows the progress"
    assert are_contiguous([nodes[index] for index in order])
    assert are_contiguous([domains.get(nodes[index], "") for index in order])


@examples(200)
@given(nodes=NODES)
def test_pods_that_are_placed_in_order_have_their_index_as_rank(nodes):
    made, nodes = job(workers=len(nodes)), sorted(nodes)
    order = in_order([pod(made, "worker", index, node=node) for index, node in enumerate(nodes)], {})
    assert order == list(range(len(nodes)))


async def life(nodes: list[str], domains: dict[str, str], faults: list[str], crashes: list[int]) -> None:
    """An environment that exists once never has other ranks, whatever happens."""
    policy = {"topology": {"preferred": "zone"}}
    model = Model(job(workers=len(nodes), schedulingPolicy=policy, backoffLimit=9))
    model.nodes, model.domains = {f"mnist-worker-{index}": node for index, node in enumerate(nodes)}, domains
    seen: dict[int, dict[str, str]] = {}
    for number, fault in enumerate(["", *faults]):
        if fault == "fail":
            model.end("mnist-worker-0", 1)
        elif fault == "delete":
            model.pods.pop("mnist-worker-0", None)
        elif fault == "forget":
            model.environments.clear()
        elif fault == "relabel":
            model.domains = dict(zip(domains, reversed(domains.values()), strict=True))
        model.crash_after = crashes[number] if number < len(crashes) else None
        await model.settle(limit=120)
        for attempt, data in model.environments.items():
            assert seen.setdefault(attempt, data) == data
    assert model.status.phase is Phase.RUNNING, model.status


@examples(80)
@given(nodes=NODES, domains=DOMAINS, faults=FAULTS, crashes=CRASHES)
def test_the_ranks_of_an_attempt_never_change(nodes, domains, faults, crashes):
    asyncio.run(life(nodes, domains, faults, crashes))
