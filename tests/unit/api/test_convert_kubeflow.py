"""From Kubeflow's PaddleJob to ours."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.convert import convert
from paddlejob.api.validate import faults, parse
from paddlejob.errors import BadInput


def kubeflow(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "paddle", "image": "x"}]
    role = {"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers": containers}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "paddle-simple-cpu", "namespace": "kubeflow"},
        "spec": {"paddleReplicaSpecs": {"Worker": role}} | spec,
    }


def test_a_kubeflow_job_of_workers_is_collective():
    made = convert(kubeflow())
    assert faults(made.job) == []
    assert parse(made.job).mode == "Collective"
    assert made.job["metadata"] == {"name": "paddle-simple-cpu", "namespace": "kubeflow"}
    assert made.job["spec"]["cleanPodPolicy"] == "Never", "what Kubeflow takes where it is absent"
    assert made.notes == ()


def test_a_kubeflow_master_is_a_parameter_server():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role | {"replicas": 1}, "Worker": role}))
    assert parse(made.job).mode == "PS"
    assert made.job["spec"]["ps"]["replicas"] == 1
    assert any("Master is now ps" in note for note in made.notes)


def test_kubeflows_policies_become_ours_with_a_note_where_they_differ():
    policy = {"minAvailable": 2, "queue": "q", "priorityClass": "high", "minResources": {"cpu": "4"}}
    run = {
        "cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 30, "activeDeadlineSeconds": 900, "suspend": True,
        "schedulingPolicy": {**policy, "scheduleTimeoutSeconds": 60}, "managedBy": "kueue.x-k8s.io/multikueue",
    }  # fmt: skip
    elastic = {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 7, "metrics": []}
    made = convert(kubeflow(runPolicy=run, elasticPolicy=elastic))
    spec = made.job["spec"]
    assert faults(made.job) == []
    assert (spec["cleanPodPolicy"], spec["backoffLimit"], spec["elastic"]) == ("OnCompletion", 7, 1)
    for same in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "suspend"):
        assert spec[same] == run[same]
    assert spec["schedulingPolicy"] == policy
    assert (spec["worker"]["requests"], spec["worker"]["limits"]) == (1, 4)
    assert "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds has no counterpart and is left out" in made.notes
    notes = "\n".join(made.notes)
    for name in ("cleanPodPolicy: Running", "managedBy", "maxRestarts", "elasticPolicy.metrics"):
        assert name in notes
    assert convert(kubeflow(runPolicy={"backoffLimit": 2})).job["spec"]["backoffLimit"] == 2


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("OnFailure", "was OnFailure; a failure now restarts the job as a whole"),
        (
            "Always",
            "was Always; a failure now restarts the job as a whole, and the success of a worker restarts nothing",
        ),
        ("ExitCode", "was ExitCode; a failure now restarts the job as a whole, whatever its exit status"),
        (None, "defaulted to OnFailure; a failure now restarts the job as a whole"),
    ],
)
def test_a_restart_policy_of_a_role_is_noted_as_gone(policy: str | None, message: str):
    given = kubeflow()
    given["spec"]["paddleReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    given["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] = "Always"
    made = convert(given)
    assert made.notes == (f"spec.paddleReplicaSpecs.Worker.restartPolicy {message}",)
    assert "restartPolicy" not in made.job["spec"]["worker"]["template"]["spec"]


def test_a_kubeflow_job_with_only_a_master_has_a_worker():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role}))
    assert set(made.job["spec"]) == {"cleanPodPolicy", "worker"}
    assert faults(made.job) == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("All", "Always"), ("None", "Never"), ("Running", "OnCompletion"), ("Other", "OnCompletion"), (None, "Never")],
)
def test_clean_policies_have_other_names(theirs: str | None, ours: str):
    made = convert(kubeflow(runPolicy={"cleanPodPolicy": theirs}))
    assert made.job["spec"]["cleanPodPolicy"] == ours
    assert bool(made.notes) == (ours == "OnCompletion")
    assert faults(made.job) == []


def test_what_kubeflows_elastic_policy_has_in_common_with_ours_is_not_called_left_out():
    policy = {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 7, "rdzvBackend": "etcd"}
    notes = [note for note in convert(kubeflow(elasticPolicy=policy)).notes if "is left out" in note]
    assert [note.split()[0].rstrip(":") for note in notes] == ["spec.elasticPolicy.rdzvBackend"]


def test_roles_may_be_spelt_in_any_case_as_kubeflow_takes_them():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    made = convert(kubeflow(paddleReplicaSpecs={"master": {**role, "replicas": 1}, "WORKER": role}))
    assert parse(made.job).mode == "PS"


def test_a_number_of_replicas_that_is_absent_is_one_and_a_master_without_any_is_left_out():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    del role["replicas"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": {**role, "replicas": 0}, "Worker": role}))
    assert made.job["spec"]["worker"]["replicas"] == 1
    assert "ps" not in made.job["spec"]
    assert made.notes == ("spec.paddleReplicaSpecs.Master has no replicas and is left out",)


@pytest.mark.parametrize(("replicas", "now"), [(1, 2), (2, 2), (3, 3), (4, 4), (9, 4)])
def test_replicas_outside_of_the_elastic_policy_are_brought_into_it(replicas: int, now: int):
    given = kubeflow(elasticPolicy={"minReplicas": 2, "maxReplicas": 4})
    given["spec"]["paddleReplicaSpecs"]["Worker"]["replicas"] = replicas
    made = convert(given)
    worker = made.job["spec"]["worker"]
    assert (worker["replicas"], worker["requests"], worker["limits"]) == (now, 2, 4)
    assert faults(made.job) == []
    changed = f"spec.paddleReplicaSpecs.Worker.replicas was {replicas}, outside elasticPolicy; now {now}"
    assert (changed in made.notes) == (replicas != now)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["python", "-m", "paddle.distributed.launch", "train.py", "--lr", "1"], ["python", "train.py", "--lr", "1"]),
        (["python", "-m", "paddle.distributed.launch", "--run_mode", "ps", "--log_dir=x", "t.py"], ["python", "t.py"]),
        (["python", "train.py"], ["python", "train.py"]),
    ],
)
def test_with_servers_paddles_launcher_is_left_out(arguments: list[str], left: list[str]):
    """In this environment it would wait for trainers in the servers' pods, for ever."""
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    role["template"]["spec"]["containers"][0] |= {"command": arguments[:1], "args": arguments[1:]}
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role, "Worker": role}))
    for name in ("ps", "worker"):
        (container,) = made.job["spec"][name]["template"]["spec"]["containers"]
        assert container["command"] + container["args"] == left
        noted = any(note.startswith(f"{name}: container paddle: paddle.dist") for note in made.notes)
        assert noted == (arguments != left)
    alone = convert(kubeflow(paddleReplicaSpecs={"Worker": role}))
    (container,) = alone.job["spec"]["worker"]["template"]["spec"]["containers"]
    assert container["args"] == arguments[1:], "workers alone keep it"


def test_with_servers_a_launcher_inside_a_shell_command_is_pointed_at():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    role["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "python -m paddle.distributed.launch train.py"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role, "Worker": role}))
    assert any("paddle.distributed.launch must not start the program" in note for note in made.notes)


@pytest.mark.parametrize(
    "name", ["PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID", "PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"]
)
def test_variables_that_only_kubeflow_sets_are_pointed_at(name: str):
    for part in ({"args": [f"$({name})"]}, {"command": ["sh", "-c", f"echo ${name}"]}):
        given = kubeflow()
        given["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] |= part
        (note,) = convert(given).notes
        where = "spec.paddleReplicaSpecs.Worker.template"
        assert note.startswith(f"{where}: uses {name}, which paddlejob does not set; use")


def test_arguments_that_are_no_list_are_left_as_they_are():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    for field in ("command", "args"):
        role["template"]["spec"]["containers"][0][field] = "python -m paddle.distributed.launch t.py"
        made = convert(kubeflow(paddleReplicaSpecs={"Master": role, "Worker": role}))
        assert made.job["spec"]["ps"]["template"]["spec"]["containers"] == role["template"]["spec"]["containers"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "spec.paddleReplicaSpecs is missing; add it"),
        ({"paddleReplicaSpecs": []}, r"spec.paddleReplicaSpecs: '\[\]' is not a mapping"),
        (
            {"paddleReplicaSpecs": {"Chief": {}}},
            "spec.paddleReplicaSpecs.Chief is not a role of a PaddleJob; use Master",
        ),
        ({"paddleReplicaSpecs": {"Worker": {}}}, "spec.paddleReplicaSpecs.Worker.template is missing; add it"),
        (
            {"paddleReplicaSpecs": {**kubeflow()["spec"]["paddleReplicaSpecs"], "Master": 3}},
            "Master: '3' is not a mapping",
        ),
        ({"paddleReplicaSpecs": {"Worker": "x"}}, "spec.paddleReplicaSpecs.Worker: 'x' is not a mapping"),
    ],
)
def test_a_job_of_another_shape_is_rejected_with_its_path(spec: Any, message: str):
    with pytest.raises(BadInput, match=message):
        convert({**kubeflow(), "spec": spec})
