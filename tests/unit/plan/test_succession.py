"""From one attempt to the next: a pod is created once its name is free, and none starts before the old are gone."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Plan, PodGroup, PodPhase, Rejection, World, plan, times
from tests.support.builders import NOON, created, deleted, having, job, pod, running, template
from tests.support.kueue_model import KueueModel, queued_job
from tests.support.model import Model

CLAIM: dict[str, Any] = template(volumeMounts=[{"name": "out", "mountPath": "/out"}])
CLAIM["spec"]["volumes"] = [{"name": "out", "persistentVolumeClaim": {"claimName": "out"}}]
RESTORING: dict[str, Any] = template()
RESTORING["spec"] |= {
    "initContainers": [{"name": "restore", "image": "a", "volumeMounts": [{"name": "out", "mountPath": "/out"}]}],
    "volumes": [{"name": "out", "nfs": {"server": "files", "path": "/"}}],
}
GROUP = PodGroup("mnist", "uid-of-group", owned=False)
TOGETHER: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a volume is written back": ({"worker_": {"template": CLAIM}}, {}, {}),
    "an init container reads what they write": ({"worker_": {"template": RESTORING}}, {}, {}),
    "Volcano places them": ({"schedulingPolicy": {"minAvailable": 3}}, {}, {"pod_groups": (GROUP,)}),
    "they share a domain": ({"schedulingPolicy": {"topology": {"preferred": "rack"}}}, {}, {}),
    "it is this machine": ({}, {}, {"one_machine": True}),
    "the delay is not over": ({}, {"nextRestartTime": times.format(NOON + 9)}, {}),
    "a quota counts the old": (
        {},
        {},
        {"rejections": (Rejection("mnist-worker-0", "Forbidden", "exceeded quota: pods", NOON - 60),)},
    ),
    "a policy denies their deletion": (
        {},
        {},
        {"rejections": (Rejection("deleting mnist-worker-2", "Forbidden", "denied", NOON - 60),)},
    ),
}


def second_attempt(
    options: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    world: dict[str, Any] | None = None,
    **old: Any,
) -> Plan:
    """Of three workers the first has no pod, the second a new one, and the third an old one that is ending."""
    made = running(job(workers=3, **(options or {})))
    left = pod(made, "worker", 2, **{"deletion_due": NOON + 2, **old})
    changes = {"attempt": 2, "phase": Phase.RESTARTING, "reason": "ProgramFailed", **(status or {})}
    made = having(made, made.status.model_copy(update=changes))
    begun = pod(made, "worker", 1, PodPhase.WAITING, attempt=2)
    # Before the delay is over there is none.
    pods = (left,) if status else (begun, left)
    return plan(made, World(pods=pods, **(world or {})), NOON)


def test_a_pod_is_created_while_others_of_the_attempt_before_end():
    decided = second_attempt()
    assert created(decided) == ["mnist-worker-0"]
    assert decided.status.reason == "ProgramFailed", "why it restarts is still the news"


@pytest.mark.parametrize(("options", "status", "world"), TOGETHER.values(), ids=TOGETHER)
def test_none_is_created_before_all_old_ones_are_gone_where(
    options: dict[str, Any], status: dict[str, Any], world: dict[str, Any]
):
    assert not created(second_attempt(options, status, world))


async def test_nor_where_kueue_admits_them():
    model = KueueModel(queued_job())
    await model.settle()
    model.now += 100
    model.kubelet_runs = False
    model.end("mnist-worker-1", 1)
    for _ in range(3):
        await model.step()
        model.tick()
    assert model.pods.keys() == {"mnist-worker-0"}


def test_nothing_is_held_beside_an_old_pod_that_does_not_go():
    decided = second_attempt(deletion_due=NOON - 60)
    assert (decided.status.attempt, decided.status.reason) == (3, "OldPodRemains")
    assert "mnist-worker-1" in deleted(decided), "it gives its node back"
    assert not created(second_attempt(deletion_due=NOON - 30)), "and creates no more"


async def test_a_quota_that_still_counts_old_pods_alarms_nobody():
    model = Model(job(workers=2))
    await model.settle()
    model.now += 100
    model.removed_per_tick = 1
    model.end("mnist-worker-1", 1)
    await model.step()
    model.rejects["mnist-worker-1"] = Rejected("Forbidden", "exceeded quota: pods")
    await model.step()
    await model.step()
    assert model.pods.keys() == {"mnist-worker-0"}
    model.rejects.clear()
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert [one.reason for one in model.events if one.warning] == ["ProgramFailed"]


async def test_one_that_stays_too_small_is_the_reason_soon_after():
    model = Model(job(workers=2))
    await model.settle()
    model.now += 100
    model.end("mnist-worker-1", 1)
    model.rejects["mnist-worker-1"] = Rejected("Forbidden", "exceeded quota: pods")
    for _ in range(4):
        await model.step()
        model.tick()
        model.now += 3
    assert model.status.reason == "QuotaExceeded"
