"""Jobs in a cache: complete as long as they live, small once they have ended."""

from __future__ import annotations

import pickle

from paddlejob.api.types import PaddleJob
from paddlejob.objects import transform
from paddlejob.objects.stored_job import LAST_APPLIED, StoredJob, stored
from paddlejob.plan import World, plan
from tests.support.builders import NOON, document, job, template


def large(phase: str) -> PaddleJob:
    """With a template of 200 KB."""
    variables = [{"name": f"V{number}", "value": "x" * 1000} for number in range(200)]
    status = {"phase": phase, "attempt": 1, "completionTime": "2027-01-15T08:00:00Z"}
    return job(ps=1, worker_={"template": template(env=variables)}, status=status)


def size(one: StoredJob) -> int:
    return len(pickle.dumps(one))


def test_a_live_job_is_whole_again():
    for phase in ("Pending", "Running", "Suspended"):
        made = large(phase)
        found = stored(made).whole()
        assert (found.metadata, found.spec, found.status) == (made.metadata, made.spec, made.status)


def test_a_stored_job_is_small_and_a_finished_one_has_no_templates():
    live, finished = stored(large("Running")), stored(large("Failed"))
    assert size(finished) < 5_000
    assert size(live) < 20_000, "compressed"
    assert finished.whole().spec.roles.keys() == live.spec.roles.keys()


def test_a_finished_job_is_planned_without_its_templates():
    made = large("Failed")
    assert plan(stored(made).whole(), World(), NOON) == plan(made, World(), NOON)


def test_the_copy_that_kubectl_keeps_of_a_job_is_left_out():
    made = document()
    made["metadata"] |= {"uid": "u", "annotations": {LAST_APPLIED: "x" * 10_000, "mine": "kept"}}
    found = transform.stored_job(made)
    assert isinstance(found, StoredJob)
    assert found.metadata.annotations == {"mine": "kept"}


def test_pod_groups_of_other_workloads_are_not_kept():
    def owned_by(api_version: str, kind: str) -> dict:
        return {"metadata": {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "controller": True}]}}

    assert transform.is_of_another_workload(owned_by("batch.volcano.sh/v1alpha1", "Job"))
    assert transform.is_of_another_workload(owned_by("v1", "Pod"))
    assert transform.is_of_another_workload(owned_by("apps/v1", "ReplicaSet"))
    assert transform.is_of_another_workload(owned_by("batch/v1", "Job"))
    assert not transform.is_of_another_workload(owned_by("batch.paddlepaddle.org/v1", "PaddleJob"))
    assert not transform.is_of_another_workload(owned_by("argoproj.io/v1alpha1", "Workflow")), "a user's own group"
    assert not transform.is_of_another_workload({"metadata": {}})
