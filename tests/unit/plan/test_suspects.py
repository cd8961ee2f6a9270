"""Nodes on which a job failed alone twice are avoided by its next attempts."""

from __future__ import annotations

from typing import Any

from paddlejob.api.types import Progress
from paddlejob.plan import Create, Kind
from tests.support.builders import job
from tests.support.local_model import LocalModel
from tests.support.model import Model

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


async def spread(backend: type[Model] = Model, **options: Any) -> Model:
    """A job that trains with each worker on a node of its own, and makes progress all the time."""
    model = backend(job(**{"workers": 3, "backoffLimit": 99, **options}))
    await model.settle()
    return model


async def fail(model: Model, *workers: int, **more: Any) -> None:
    """The nodes are those of the workers' numbers; every attempt came further than the one before."""
    for name, one in model.pods.items():
        model.change(name, node=f"node-{one.index}")
    assert model.job is not None
    progress = Progress(highestStep=(model.status.attempt + 1) * 10, stepAtStart=model.status.attempt * 10)
    model.job = model.job.model_copy(update={"status": model.status.model_copy(update={"progress": progress})})
    for index in workers:
        model.end(f"mnist-worker-{index}", more.get("code", 1), **{k: v for k, v in more.items() if k != "code"})
    await model.settle()


def affinity(model: Model) -> dict[str, Any]:
    """Of the pods that were created last."""
    created = [one for one in model.done if isinstance(one, Create) and one.kind is Kind.POD]
    found: dict[str, Any] = created[-1].manifest["spec"].get("affinity") or {}
    return found


async def test_a_node_on_which_the_job_failed_alone_twice_is_avoided_and_the_job_says_so():
    model = await spread()
    await fail(model, 1)
    assert (model.status.suspectNodes, model.status.avoidedNodes) == (("node-1",), ())
    assert not affinity(model)
    await fail(model, 1)
    assert (model.status.suspectNodes, model.status.avoidedNodes) == ((), ("node-1",))
    term = affinity(model)["nodeAffinity"][PREFERRED][0]["preference"]["matchExpressions"][0]
    assert term == {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-1"]}
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity(model)["nodeAffinity"]
    event = next(one for one in model.events if one.reason == "NodeAvoided")
    assert "node-1" in event.message and event.warning


async def test_failures_on_several_nodes_or_of_the_program_itself_blame_no_node():
    model = await spread()
    for _ in range(3):
        await fail(model, 0, 1)
        await fail(model, 2, code=137, reason="OOMKilled")
    assert not model.status.suspectNodes and not model.status.avoidedNodes


async def test_workers_that_abort_because_a_peer_died_do_not_share_the_blame():
    model = await spread()
    for name, one in model.pods.items():
        model.change(name, node=f"node-{one.index}")
    model.end("mnist-worker-0", 250, message="peer failure")
    model.end("mnist-worker-2", 139)
    await model.settle()
    assert model.status.suspectNodes == ("node-2",)


async def test_only_four_nodes_are_remembered_and_the_oldest_is_dropped():
    model = await spread(workers=6)
    for index in range(6):
        await fail(model, index)
        await fail(model, index)
    assert model.status.avoidedNodes == ("node-2", "node-3", "node-4", "node-5")
    assert not model.status.suspectNodes


async def test_on_one_machine_no_node_is_avoided():
    model = await spread(LocalModel)
    await fail(model, 1)
    await fail(model, 1)
    assert not model.status.suspectNodes and not model.status.avoidedNodes
