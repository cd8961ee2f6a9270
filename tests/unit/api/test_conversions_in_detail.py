"""Conversions field by field, and the tables that checks of job files go by."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlejob.api.checks.misplaced import METADATA_FIELDS
from paddlejob.api.checks.pods import check_job
from paddlejob.api.checks.variables import FIELDS
from paddlejob.api.convert import convert
from paddlejob.api.convert.job import INSTEAD
from paddlejob.api.types import CleanPodPolicy, Phase, deletes_pods
from paddlejob.api.yaml_problem import FULL_WIDTH
from tests.support.builders import document, job

Object = dict[str, Any]


def batch(
    env: list[Object] | None = None, template: Object | None = None, pod: Object | None = None, **spec: Any
) -> Object:
    marks = [{"name": "CONF_PADDLE_PORT", "value": "7164"}]
    containers = [{"name": "t", "image": "i", "env": [*marks, *(env or [])]}]
    made = {"spec": {"restartPolicy": "Never", "containers": containers, **(pod or {})}, **(template or {})}
    full = {"parallelism": 2, "template": made, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "old"}, "spec": full}


@pytest.mark.parametrize(
    "name",
    [
        "CONF_PADDLE_NIC", "CONF_PADDLE_PORT", "CONF_PADDLE_PORTS_NUM", "CONF_PADDLE_PORTS_NUM_SPARSE",
        "CONF_PADDLE_GRADIENT_NUM", "JOB_NAMESPACE", "JOB_SERVICE", "JOB_WAIT_SECONDS",
    ],
)  # fmt: skip
def test_each_variable_for_finding_peers_is_left_out_with_a_note_unless_it_is_used(name: str):
    made = convert(batch([{"name": name, "value": "1"}, {"name": "OWN", "value": "x"}]))
    container = made.job["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert [one["name"] for one in container["env"]] == ["OWN"]
    assert any(note.startswith(f"container t: env {name} is left out; ") for note in made.notes)
    for text in (f"${name}", f"${{{name}}}", f"$({name})"):
        used = convert(batch([{"name": name, "value": "1"}, {"name": "OWN", "value": text}]))
        kept = used.job["spec"]["worker"]["template"]["spec"]["containers"][0]["env"]
        assert name in [one["name"] for one in kept]
        assert f"container t: env {name} is kept because its command or another variable refers to it" in used.notes


@pytest.mark.parametrize(
    "label",
    ["job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"],
)
def test_labels_of_the_job_controller_are_removed_and_own_ones_stay(label: str):
    made = convert(batch(template={"metadata": {"name": "x", "labels": {label: "x", "own": "y"}}}))
    assert made.job["spec"]["ps"]["template"]["metadata"] == {"labels": {"own": "y"}}


@pytest.mark.parametrize("field", INSTEAD)
def test_a_field_without_a_counterpart_says_what_happens_instead(field: str):
    assert f"spec.{field}: is left out; {INSTEAD[field]}" in convert(batch(**{field: {}})).notes
    assert set(INSTEAD) == {
        "podFailurePolicy", "backoffLimitPerIndex", "maxFailedIndexes", "successPolicy", "podReplacementPolicy"
    }  # fmt: skip


def test_the_network_and_names_of_the_old_pods_are_replaced():
    made = convert(batch(pod={"hostname": "h", "subdomain": "s", "hostNetwork": True, "restartPolicy": "OnFailure"}))
    pod = made.job["spec"]["worker"]["template"]["spec"]
    assert not {"hostname", "subdomain", "hostNetwork", "restartPolicy"} & pod.keys()
    assert made.job["spec"]["intranet"] == "Host"
    for part in (
        "hostname: is left out",
        "subdomain: is left out",
        "hostNetwork: is now",
        "restartPolicy: was OnFailure",
    ):
        assert any(part in note for note in made.notes)


def test_host_ports_are_left_out_but_for_the_names_that_probes_use():
    ports = [
        {"containerPort": 1, "hostPort": 1, "name": "a"},
        {"containerPort": 2, "hostPort": 2, "hostIP": "x", "name": "b"},
        {"containerPort": 3},
    ]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
        old = batch()
        old["spec"]["template"]["spec"]["containers"][0] |= {
            "ports": copy.deepcopy(ports), probe: {"tcpSocket": {"port": "b"}}
        }  # fmt: skip
        container = convert(old).job["spec"]["worker"]["template"]["spec"]["containers"][0]
        assert container["ports"] == [{"containerPort": 2, "name": "b"}, {"containerPort": 3}]
    old = batch()
    old["spec"]["template"]["spec"]["containers"][0]["ports"] = copy.deepcopy(ports[:1])
    assert "ports" not in convert(old).job["spec"]["worker"]["template"]["spec"]["containers"][0]


def kubeflow(
    worker: Object | None = None, master: Object | None = None, container: Object | None = None, **spec: Any
) -> Object:
    def role(more: Object) -> Object:
        one = {"name": "paddle", "image": "i", **(container or {})}
        return {"restartPolicy": "Never", "template": {"spec": {"containers": [one]}}, **more}

    roles = {"Worker": role(worker or {"replicas": 2})} | ({"Master": role(master)} if master else {})
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": "k"},
        "spec": {"paddleReplicaSpecs": roles, **spec},
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"]
)
def test_a_variable_that_only_kubeflow_sets_is_pointed_at(name: str):
    (note,) = convert(kubeflow(container={"args": [f"$({name})"]}, runPolicy={"cleanPodPolicy": "All"})).notes
    assert f"uses {name}, which paddlejob does not set" in note


@pytest.mark.parametrize(
    ("policy", "becomes"),
    [("All", "Always"), ("None", "Never"), ("Running", "OnCompletion"), ("Other", "OnCompletion")],
)
def test_the_policy_of_kubeflow_for_ended_pods_becomes_ours(policy: str, becomes: str):
    made = convert(kubeflow(runPolicy={"cleanPodPolicy": policy}))
    assert made.job["spec"]["cleanPodPolicy"] == becomes
    assert bool(made.notes) == (policy not in ("All", "None"))


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "ExitCode", "Unknown"])
def test_a_restart_policy_of_kubeflow_says_what_restarts_now(policy: str):
    (note,) = convert(kubeflow({"restartPolicy": policy}, runPolicy={"cleanPodPolicy": "All"})).notes
    assert note.startswith(
        f"spec.paddleReplicaSpecs.Worker.restartPolicy: was {policy}; a failure now restarts the job"
    )


def test_limits_and_scheduling_of_kubeflow_are_kept_and_the_rest_is_named():
    scheduling = {
        "minAvailable": 2,
        "queue": "q",
        "priorityClass": "p",
        "minResources": {"cpu": "1"},
        "scheduleTimeoutSeconds": 5,
    }
    limits = {"activeDeadlineSeconds": 9, "backoffLimit": 1, "suspend": True, "ttlSecondsAfterFinished": 7}
    made = convert(
        kubeflow(runPolicy={"cleanPodPolicy": "None", "schedulingPolicy": scheduling, "managedBy": "x", **limits})
    )
    assert {key: made.job["spec"][key] for key in limits} == limits
    assert made.job["spec"]["schedulingPolicy"] == {
        key: scheduling[key] for key in ("minAvailable", "queue", "priorityClass", "minResources")
    }
    assert made.notes == (
        "spec.runPolicy.backoffLimit: now counts restarts of the whole job",
        "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: has no counterpart and is left out",
        "spec.runPolicy.managedBy: has no counterpart and is left out",
    )
    order = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend")
    assert tuple(made.job["spec"])[:5] == order


@pytest.mark.parametrize(("replicas", "fits"), [(1, 2), (2, 2), (5, 5), (8, 8), (9, 8)])
def test_an_elastic_job_of_kubeflow_stays_within_its_bounds(replicas: int, fits: int):
    policy = {"minReplicas": 2, "maxReplicas": 8, "maxRestarts": 4, "rdzvBackend": "x"}
    made = convert(kubeflow({"replicas": replicas}, elasticPolicy=policy, runPolicy={"cleanPodPolicy": "All"}))
    worker = made.job["spec"]["worker"]
    assert (worker["replicas"], worker["requests"], worker["limits"]) == (fits, 2, 8)
    assert (made.job["spec"]["elastic"], made.job["spec"]["backoffLimit"]) == (1, 4)
    changed = f"spec.paddleReplicaSpecs.Worker.replicas: was {replicas}, outside elasticPolicy; now {fits}"
    assert (changed in made.notes) == (fits != replicas)
    assert any(note.startswith("spec.elasticPolicy.rdzvBackend: has no counterpart") for note in made.notes)
    assert not any("maxReplicas" in note or "minReplicas" in note for note in made.notes)


def test_arguments_that_are_no_list_are_left_as_they_are():
    for field in ("command", "args"):
        text = "python -m paddle.distributed.launch t.py"
        made = convert(kubeflow(master={"replicas": 1}, container={field: text}))
        assert made.job["spec"]["ps"]["template"]["spec"]["containers"][0][field] == text


def test_the_tables_of_the_checks_are_complete():
    assert set(FULL_WIDTH) == set("：，“”‘’［］｛｝【】＃－\u3000\xa0")
    assert set(FIELDS) == {
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    }  # fmt: skip
    assert set(METADATA_FIELDS) == {
        "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
        "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
        "resourceVersion", "selfLink", "uid",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["gpu", "gpus", "nvidia", "cuda", "GPU"])
def test_each_short_name_of_a_gpu_is_answered_with_its_full_one(name: str):
    made = document(workers=1)
    made["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {name: 2}}
    (fault,) = check_job(made)
    assert fault.message.endswith("write nvidia.com/gpu: 2")


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "storage", "hugepages-2Mi"])
def test_each_plain_resource_of_kubernetes_is_accepted(name: str):
    made = document(workers=1)
    made["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {name: 2}}
    assert check_job(made) == []


@pytest.mark.parametrize(
    ("policy", "phases"),
    [
        (CleanPodPolicy.ALWAYS, {Phase.COMPLETED, Phase.FAILED}),
        (CleanPodPolicy.ON_COMPLETION, {Phase.COMPLETED}),
        (CleanPodPolicy.ON_FAILURE, {Phase.FAILED}),
        (CleanPodPolicy.NEVER, set()),
    ],
)
def test_when_pods_are_deleted_follows_from_the_policy(policy: CleanPodPolicy, phases: set[Phase]):
    assert {phase for phase in Phase if deletes_pods(policy, phase)} == phases


@pytest.mark.parametrize(("old", "new"), [("OnFailed", "OnFailure"), ("Oncompletion", "OnCompletion")])
def test_names_of_policies_that_older_jobs_use_are_understood(old: str, new: str):
    assert job(cleanPodPolicy=old).spec.clean == new
    assert job(cleanPolicy=old).spec.clean == new
