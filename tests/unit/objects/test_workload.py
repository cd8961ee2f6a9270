"""What the planner sees of a Workload and of a ResourceFlavor of Kueue."""

from __future__ import annotations

from typing import Any

from paddlejob.objects.workload import flavor, workload
from paddlejob.plan.workload import Assignment, Condition, PodUpdate, Workload

SPOT = {"key": "spot", "operator": "Exists"}


def seen(status: dict[str, Any] | None = None, **spec: Any) -> Workload:
    metadata = {"namespace": "ml", "name": "paddlejob-mnist", "uid": "w-1", "resourceVersion": "7"}
    found = workload({"metadata": metadata, "spec": spec, "status": status}).value
    assert found is not None
    return found


def admitted(*pod_sets: dict[str, Any], checks: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"admission": {"podSetAssignments": list(pod_sets)}, "admissionChecks": checks}


def test_a_workload_that_kueue_has_not_seen_yet():
    found = seen(queueName="team", podSets=[{"name": "ps", "count": 1}, {"name": "worker", "count": 4, "minCount": 2}])
    assert (found.name, found.uid, found.version, found.queue) == ("paddlejob-mnist", "w-1", "7", "team")
    assert (found.counts, found.fewest, found.active, found.deleting) == ({"ps": 1, "worker": 4}, 2, True, False)
    assert (found.conditions, found.checks, found.assignments, found.reclaimable) == ({}, (), {}, {})


def test_the_priority_class_is_read_in_the_way_of_each_version():
    assert seen(priorityClassName="high").priority_class == "high"
    assert seen(priorityClassRef={"name": "low"}, priorityClassName="high").priority_class == "low"


def test_conditions_have_their_reason_and_message():
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no room"}
    found = seen({"conditions": [condition, {"type": "Admitted", "status": "True"}]}).conditions
    assert found == {
        "QuotaReserved": Condition("QuotaReserved", False, "Pending", "no room"),
        "Admitted": Condition("Admitted", True, "", ""),
    }


def test_admission_checks_that_are_not_ready_say_what_the_job_waits_for():
    checks = [
        {"name": "budget", "state": "Ready", "message": "approved"},
        {"name": "provision", "state": "Pending", "message": "2 nodes are being created"},
        {"name": "review", "state": "Retry"},
    ]
    waits = ("provision is Pending: 2 nodes are being created", "review is Retry")
    assert seen({"admissionChecks": checks}).checks == waits


def test_pods_get_what_kueue_and_its_admission_checks_assigned_to_their_role():
    whole = {
        "name": "worker", "nodeSelector": {"pool": "new"}, "tolerations": [SPOT], "labels": {"a": "b"},
        "annotations": {"c": "d"},
    }  # fmt: skip
    checks = [{"name": "provision", "state": "Ready", "podSetUpdates": [whole, {"name": "ps"}]}]
    worker = {"name": "worker", "count": 3, "flavors": {"cpu": "spot", "memory": "spot", "nvidia.com/gpu": "a100"}}
    found = seen(
        admitted(worker, {"name": "ps", "topologyAssignment": {"levels": ["rack"]}}, checks=checks),
        podSets=[{"name": "ps", "count": 2}, {"name": "worker", "count": 4}],
    )
    update = PodUpdate({"pool": "new"}, (SPOT,), {"a": "b"}, {"c": "d"})
    assert found.assignments == {
        "worker": Assignment(count=3, flavors=("spot", "a100"), updates=(update,), has_topology=False),
        "ps": Assignment(count=2, flavors=(), updates=(PodUpdate(),), has_topology=True),
    }


def test_workers_that_have_succeeded_give_their_quota_back():
    assert seen({"reclaimablePods": [{"name": "worker", "count": 2}]}).reclaimable == {"worker": 2}


def test_a_flavor_adds_its_node_labels_and_tolerations_to_pods():
    assert flavor({"spec": {"nodeLabels": {"pool": "spot"}, "tolerations": [SPOT]}}) == PodUpdate(
        {"pool": "spot"}, (SPOT,)
    )
    assert flavor({}) == PodUpdate()
