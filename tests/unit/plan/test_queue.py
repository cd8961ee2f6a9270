"""A job in a queue of Kueue: it waits for quota, stops when it loses it, and gives it back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Create, Kind, plan
from paddlejob.plan.quota import entered_queue, is_held
from paddlejob.plan.workload import Priority, Queueing
from tests.support.builders import NOON, all_pods, job, running, template, world
from tests.support.kueue_model import KueueModel, queued_job
from tests.support.model import Model


async def settled(**options: Any) -> KueueModel:
    model = KueueModel(queued_job(**options))
    await model.settle()
    return model


async def succeed(model: KueueModel, *workers: int) -> None:
    for index in workers:
        model.end(f"mnist-worker-{index}", 0)
        if f"mnist-worker-{index}" in model.pods:
            model.change(f"mnist-worker-{index}", lingers=False)
    await model.settle()


async def test_without_quota_there_is_a_workload_and_no_pod():
    model = KueueModel(queued_job(ps=1))
    model.quota = 0
    await model.settle()
    assert not model.pods
    assert (model.status.phase, model.status.reason, model.status.queue) == (
        Phase.PENDING,
        "WaitingForQuota",
        "research",
    )
    assert "insufficient unused quota for cpu" in model.status.message
    assert model.status.startTime == "", "the time in the queue counts against no deadline"
    assert model.status.condition("QuotaReserved").status == "False"


async def test_the_workload_asks_for_one_pod_set_per_role():
    model = await settled(
        ps=1, worker_={"template": {"spec": {"priorityClassName": "high", "containers": [{"name": "a"}]}}}
    )
    spec = model.raw["spec"]
    assert [(one["name"], one["count"], one.get("minCount")) for one in spec["podSets"]] == [
        ("ps", 1, None),
        ("worker", 2, None),
    ]
    assert spec["queueName"] == "research"
    assert model.raw["metadata"]["ownerReferences"][0]["uid"] == "uid-of-mnist"
    assert model.raw["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == "uid-of-mnist"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "v1beta2",
            {
                "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "urgent"},
                "priority": 7,
            },
        ),
        (
            "v1beta1",
            {
                "priorityClassName": "urgent",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
                "priority": 7,
            },
        ),
    ],
)
def test_the_priority_is_written_as_the_version_of_the_api_wants_it(version: str, expected: dict[str, Any]):
    from paddlejob.plan.manifests.workload import workload_manifest

    made = workload_manifest(queued_job(), version, Priority("urgent", 7))
    assert made["apiVersion"] == f"kueue.x-k8s.io/{version}"
    assert {key: made["spec"][key] for key in expected} == expected


async def test_an_admitted_job_runs_on_the_nodes_of_its_flavor():
    model = await settled()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)
    pod = model.manifests["mnist-worker-0"]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert {"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]
    assert model.status.condition("QuotaReserved").status == "True"
    assert model.workload.is_true("PodsReady")


@pytest.mark.parametrize("kind", ["required", "preferred"])
async def test_a_topology_that_the_template_asks_for_is_requested_of_kueue(kind: str):
    annotations = {f"kueue.x-k8s.io/podset-{kind}-topology": "rack"}
    spec = {"containers": [{"name": "paddle", "image": "i"}]}
    model = KueueModel(queued_job(worker_={"template": {"metadata": {"annotations": annotations}, "spec": spec}}))
    await model.step()
    (pod_set,) = model.raw["spec"]["podSets"]
    assert pod_set["topologyRequest"] == {kind: "rack", "podIndexLabel": "batch.paddlepaddle.org/index"}


async def test_pods_whose_nodes_kueue_chooses_wait_for_it():
    model = KueueModel(queued_job())
    await model.step()
    model.tick()
    for one in model.raw["status"]["admission"]["podSetAssignments"]:
        one["topologyAssignment"] = {"levels": ["rack"], "slices": []}
    await model.step()
    pod = model.manifests["mnist-worker-1"]
    assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-unconstrained-topology"] == "true"
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == "paddlejob-mnist-uid-o"
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "worker"


async def test_a_preempted_job_stops_gives_its_quota_back_and_continues_later():
    model = await settled()
    model.quota = 0
    model.preempt()
    await model.settle()
    assert not model.pods
    assert (model.status.phase, model.used) == (Phase.SUSPENDED, 0)
    assert any(event.reason == "Preempted" for event in model.events)
    assert model.workload.conditions["Requeued"].true
    model.quota = 2
    model.set("Pending", "", QuotaReserved=False)
    await model.settle()
    status = model.status
    assert (status.phase, status.attempt, status.restarts, status.disruptions) == (Phase.RUNNING, 2, 0, 0)


async def test_quota_is_held_until_the_last_pod_is_gone():
    model = await settled()
    model.preempt()
    await model.step()
    assert model.used == 2
    assert all(pod.deleting for pod in model.pods.values())
    assert model.status.reason == "Preempted"


async def test_a_deactivated_workload_says_how_to_queue_the_job_again():
    model = await settled()
    model.activate(False)
    await model.settle()
    assert (model.status.phase, model.status.reason, model.used) == (Phase.SUSPENDED, "Deactivated", 0)
    assert '"active":true' in model.status.message
    model.activate(True)
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_an_elastic_job_trains_with_the_workers_that_have_quota():
    model = KueueModel(queued_job(workers=4, elastic=1, worker_={"requests": 2, "limits": 4}))
    model.quota = 3
    await model.settle()
    assert model.raw["spec"]["podSets"][0]["minCount"] == 2
    assert sorted(model.pods) == [f"mnist-worker-{index}" for index in range(3)]
    assert model.status.phase is Phase.RUNNING
    assert "3 of 4 workers" in model.status.message
    model.now += 1000
    await model.settle()
    assert len(model.pods) == 3, "it does not grow beyond its quota"


async def test_workers_that_are_done_give_their_quota_back():
    model = await settled(workers=3)
    await succeed(model, 1)
    assert model.workload.reclaimable == {"worker": 1}
    assert model.used == 2


async def test_a_job_that_has_to_train_with_returned_quota_again_waits_for_it():
    model = await settled(workers=2)
    await succeed(model, 1)
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert (model.status.restarts, model.made, model.used) == (1, 2, 2)
    assert any(event.reason == "Requeued" for event in model.events)


async def test_a_worker_whose_sidecar_still_runs_has_not_given_its_quota_back():
    model = await settled(workers=2)
    model.end("mnist-worker-1", 0, lingers=True)
    await model.step()
    assert (model.used, model.pods["mnist-worker-1"].lingers) == (2, True)
    await model.settle()
    assert (model.used, model.pods["mnist-worker-1"].lingers) == (1, False), "it was stopped once its success was known"


@pytest.mark.parametrize("policy", ["Always", "Never", "OnFailure"])
async def test_a_finished_job_gives_its_quota_back(policy: str):
    model = await settled(ps=1, cleanPodPolicy=policy)
    await succeed(model, 0, 1)
    for name in model.pods:
        model.change(name, lingers=False)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    assert (model.used, model.workload.conditions["Finished"].reason) == (0, "Succeeded")


async def test_a_failed_restart_is_not_a_reason_to_queue_again():
    model = await settled()
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.made) == (Phase.RUNNING, 1, 1)
    assert model.workload.conditions["PodsReady"].reason == "Recovered"


async def test_a_suspended_job_leaves_the_queue():
    model = await settled()
    model.edit(suspend=True, labels=dict(model.job.metadata.labels))
    await model.settle()
    assert (model.status.phase, model.status.reason, model.raw) == (Phase.SUSPENDED, "Suspended", None)
    model.edit(suspend=False)
    await model.settle()
    assert (model.status.phase, model.made) == (Phase.RUNNING, 2)


async def test_a_job_that_was_scaled_is_queued_again():
    model = await settled()
    model.edit(workers=3)
    await model.settle()
    assert (model.status.phase, len(model.pods), model.used, model.made) == (Phase.RUNNING, 3, 3, 2)


async def test_a_running_job_keeps_its_quota_if_a_newer_crd_adds_a_default_and_another_field_is_changed():
    model = await settled()
    later = {"template": {"spec": {**template()["spec"], "dnsPolicy": "ClusterFirst"}}}
    model.job = model.job.model_copy(update={"spec": queued_job(worker_=later).spec})
    await model.settle()
    labels = dict(model.job.metadata.labels)
    model.edit(worker_=later, labels=labels, ttlSecondsAfterFinished=60)
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.made) == (Phase.RUNNING, 1, 1)
    model.edit(worker_=later, labels=labels, workers=3)
    await model.settle()
    assert (model.status.attempt, len(model.pods), model.used, model.made) == (2, 3, 3, 2), "scaled: queued again"


@pytest.mark.parametrize("seen", [True, False])
async def test_a_job_that_gets_another_template_while_it_is_suspended_gets_another_workload(seen: bool):
    model = await settled()
    labels, other = dict(model.job.metadata.labels), {"template": template(command=["other"])}
    model.edit(worker_=other, labels=labels, suspend=True)
    if seen:
        await model.step()
        assert model.raw is not None, "its pods are not gone yet"
    model.edit(worker_=other, labels=labels)
    await model.settle()
    assert (model.status.phase, model.made) == (Phase.RUNNING, 2)
    assert model.raw["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["command"] == ["other"]


async def test_a_job_whose_workload_was_deleted_stops_and_is_queued_again():
    model = await settled()
    model.raw = None
    await model.settle()
    assert any(event.reason == "WorkloadDeleted" for event in model.events)
    assert (model.status.phase, model.status.attempt, model.made) == (Phase.RUNNING, 2, 2)


async def test_without_kueue_the_job_says_so_and_waits():
    model = KueueModel(queued_job())
    model.installed = False
    await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.PENDING, "KueueMissing")
    assert "install Kueue" in model.status.message
    model.installed = True
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_a_running_job_does_not_stop_when_kueue_is_uninstalled():
    model = await settled()
    model.installed, model.raw = False, None
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


async def test_a_job_that_ran_before_it_was_queued_runs_on_and_is_queued_when_it_is_rebuilt():
    """An older operator ignored the label; its upgrade stops no job."""
    model = KueueModel(queued_job())
    labels, model.job = model.job.metadata.labels, model.job.model_copy(deep=True)
    model.job.metadata.labels.clear()
    await model.settle()
    model.job.metadata.labels.update(labels)
    await model.settle()
    assert (model.status.attempt, model.raw) == (1, None)
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert (model.status.phase, model.status.queue, model.used) == (Phase.RUNNING, "research", 2)


async def test_a_job_whose_label_is_removed_leaves_the_queue_and_runs_on():
    model = await settled()
    model.job = model.job.model_copy(deep=True)
    model.job.metadata.labels.clear()
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.queue, model.raw) == (Phase.RUNNING, 1, "", None)


async def test_a_flavor_that_cannot_be_read_is_reported_before_any_pod_is_created():
    model = KueueModel(queued_job())
    await model.step()
    model.tick()
    model.error = "ResourceFlavor ssd does not exist; create it, or name another"
    await model.step()
    assert (model.status.reason, model.pods) == ("FlavorUnreadable", {})
    assert "ssd" in model.status.message
    model.error = ""
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_a_priority_class_that_does_not_exist_is_reported():
    model = KueueModel(queued_job(labels={"kueue.x-k8s.io/priority-class": "urgent"}))
    model.error = "WorkloadPriorityClass urgent does not exist; create it, or name another"
    await model.step()
    assert (model.status.reason, model.raw) == ("PriorityClassUnreadable", None)


async def test_a_new_priority_class_counts_while_the_job_waits():
    model = KueueModel(queued_job())
    model.quota, model.priority = 0, Priority("low", 1)
    await model.settle()
    model.job = model.job.model_copy(deep=True)
    model.job.metadata.labels["kueue.x-k8s.io/priority-class"] = "urgent"
    model.priority = Priority("urgent", 9)
    await model.settle()
    assert (model.made, model.workload.priority_class) == (2, "urgent")


async def test_admission_checks_that_are_not_ready_are_named():
    model = KueueModel(queued_job())
    await model.step()
    model.raw["status"]["admissionChecks"] = [{"name": "capacity", "state": "Pending", "message": "asking for nodes"}]
    model.set("QuotaReserved", "", QuotaReserved=True)
    await model.step()
    assert model.status.reason == "WaitingForAdmissionChecks"
    assert "capacity is Pending: asking for nodes" in model.status.message


async def test_a_queue_that_does_not_exist_is_named():
    model = KueueModel(queued_job())
    await model.step()
    model.set("Inadmissible", "LocalQueue research doesn't exist", QuotaReserved=False)
    await model.step()
    assert model.status.reason == "Inadmissible"
    assert "LocalQueue research doesn't exist" in model.status.message


def test_on_this_machine_a_queue_has_no_meaning():
    made = queued_job()
    created = [one for one in plan(made, world(), NOON).actions if isinstance(one, Create)]
    assert {one.kind for one in created} == {Kind.POD}


def test_a_job_in_no_queue_is_planned_as_before():
    for made in (job(), running(job())):
        pods = all_pods(made) if made.status.attempt else ()
        without, within = plan(made, world(*pods), NOON), plan(made, world(*pods, queueing=Queueing("v1beta2")), NOON)
        assert without.status == within.status
        assert [repr(one) for one in without.actions] == [repr(one) for one in within.actions]


async def test_a_job_is_in_its_queue_from_its_workload_on_and_is_not_held_once_it_has_ended():
    model = await settled()
    made, seen = model.job, model.world()
    assert made is not None
    unrecorded = made.model_copy(update={"status": made.status.model_copy(update={"queue": ""})})
    assert (entered_queue(unrecorded, seen), is_held(unrecorded, seen)) == ("research", False)
    without = replace(seen, pods=(), queueing=Queueing("v1beta2"))
    assert is_held(made, without)
    ended = made.model_copy(update={"status": made.status.model_copy(update={"phase": Phase.COMPLETED})})
    assert not is_held(ended, without)


async def test_what_an_admission_check_adds_to_the_pods_is_read():
    model = await settled()
    update = {"name": "worker", "nodeSelector": {"zone": "a"}, "labels": {"by": "check"}}
    model.raw["status"]["admissionChecks"] = [{"name": "check", "state": "Ready", "podSetUpdates": [update]}]
    (found,) = model.workload.assignments["worker"].updates
    assert (found.node_selector, found.labels, found.annotations) == ({"zone": "a"}, {"by": "check"}, {})


async def test_a_role_that_asks_for_no_resources_is_admitted_without_a_flavor():
    model = await settled()
    (assigned,) = model.raw["status"]["admission"]["podSetAssignments"]
    del assigned["flavors"]
    assert model.workload.assignments["worker"].flavors == ()


async def test_kueue_changes_nothing_for_a_job_without_a_queue():
    plain, beside = Model(KueueModel(queued_job()).job.model_copy(deep=True)), KueueModel(queued_job())
    beside.job = beside.job.model_copy(deep=True)
    beside.job.metadata.labels.clear()
    plain.job.metadata.labels.clear()
    await plain.settle()
    await beside.settle()
    assert [repr(one) for one in plain.done] == [repr(one) for one in beside.done]
    assert beside.raw is None
