"""From a Job of the documents, or of Kubeflow, to a PaddleJob."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.convert import as_workers, convert, is_training_job
from paddlejob.api.validate import faults, parse
from paddlejob.errors import BadInput

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples" / "batch-job"


def example(name: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((EXAMPLES / name).read_text())
    return next(one for one in documents if one["kind"] == "Job")


def kubeflow(**spec: Any) -> dict[str, Any]:
    role = {"replicas": 2, "template": {"spec": {"containers": [{"name": "paddle", "image": "x"}]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "paddle-simple-cpu", "namespace": "kubeflow"},
        "spec": {"paddleReplicaSpecs": {"Worker": role}} | spec,
    }


@pytest.mark.parametrize("name", ["paddle-cluster-job.yaml", "paddle-indexed-job.yaml", "hostpath-cluster-job.yaml"])
def test_the_documents_jobs_become_good_paddle_jobs_with_three_servers_and_three_workers(name: str):
    made = convert(example(name))
    assert faults(made.job) == []
    job = parse(made.job)
    assert job.mode == "PS"
    assert (job.spec.roles["ps"].replicas, job.spec.roles["worker"].replicas) == (3, 3)


def test_what_a_job_needed_to_find_its_peers_is_gone_and_said():
    made = convert(example("paddle-cluster-job.yaml"))
    for role in ("ps", "worker"):
        pod = made.job["spec"][role]["template"]["spec"]
        (container,) = pod["containers"]
        assert {one["name"] for one in container["env"]} == {
            "JOB_NAME",
            "JOB_PATH",
            "TRAIN_CONFIG_DIR",
            "TRAINER_COUNT",
        }
        assert "ports" not in container
        assert "restartPolicy" not in pod
        assert container["command"] == ["bin/bash", "-c", "/root/start.sh"]
        assert pod["volumes"] == [{"name": "efs", "persistentVolumeClaim": {"claimName": "efsvol"}}]
    said = "\n".join(made.notes)
    for name in ("CONF_PADDLE_NIC", "CONF_PADDLE_PORT ", "CONF_PADDLE_GRADIENT_NUM", "hostPorts", "backoffLimit"):
        assert name in said
    assert "JOB_PATH/JOB_NAME/<PADDLE_TRAINER_ID>/data" in said


def test_the_job_given_is_not_changed():
    given = example("paddle-cluster-job.yaml")
    convert(given)
    assert given == example("paddle-cluster-job.yaml")


def test_limits_of_the_job_are_kept_and_what_has_no_counterpart_is_named():
    given = example("paddle-indexed-job.yaml")
    given["spec"] |= {"ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 900, "completions": 5}
    made = convert(given)
    spec = made.job["spec"]
    assert (spec["ttlSecondsAfterFinished"], spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (60, 900, 6)
    said = "\n".join(made.notes)
    assert "spec.podFailurePolicy: has no counterpart" in said
    assert "spec.completions: was 5; all 3 workers must succeed" in said
    assert "spec.template.spec.subdomain: left out" in said
    assert "spec.completionMode: every PaddleJob gives its pods an index" in said


def test_a_job_on_the_nodes_network_stays_there():
    given = example("paddle-cluster-job.yaml")
    given["spec"]["template"]["spec"]["hostNetwork"] = True
    made = convert(given)
    assert made.job["spec"]["intranet"] == "Host"
    assert "hostNetwork" not in made.job["spec"]["worker"]["template"]["spec"]
    assert faults(made.job) == []


def test_a_job_that_does_not_train_is_not_converted():
    given = example("paddle-data-job.yaml")
    assert not is_training_job(given)
    with pytest.raises(BadInput, match="batch/v1 Job: is no job that can be converted; a batch/v1 Job that sets CONF"):
        convert(given)


def test_a_kubeflow_job_of_workers_is_collective():
    made = convert(kubeflow())
    assert faults(made.job) == []
    assert parse(made.job).mode == "Collective"
    assert made.job["metadata"] == {"name": "paddle-simple-cpu", "namespace": "kubeflow"}
    assert made.notes == ()


def test_a_kubeflow_master_is_a_parameter_server():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role | {"replicas": 1}, "Worker": role}))
    assert parse(made.job).mode == "PS"
    assert made.job["spec"]["ps"]["replicas"] == 1
    assert any("Master: is now ps" in note for note in made.notes)


def test_kubeflows_policies_become_ours_with_a_note_where_they_differ():
    made = convert(
        kubeflow(
            runPolicy={
                "cleanPodPolicy": "Running",
                "ttlSecondsAfterFinished": 30,
                "suspend": True,
                "schedulingPolicy": {"queue": "gpu", "minAvailable": 2, "scheduleTimeoutSeconds": 60},
                "managedBy": "kueue.x-k8s.io/multikueue",
            },
            elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 7, "metrics": []},
        )
    )
    spec = made.job["spec"]
    assert faults(made.job) == []
    assert (spec["cleanPodPolicy"], spec["suspend"], spec["backoffLimit"], spec["elastic"]) == (
        "OnCompletion",
        True,
        7,
        1,
    )
    assert spec["schedulingPolicy"] == {"queue": "gpu", "minAvailable": 2}
    assert (spec["worker"]["requests"], spec["worker"]["limits"]) == (1, 4)
    said = "\n".join(made.notes)
    for name in (
        "cleanPodPolicy: Running",
        "scheduleTimeoutSeconds",
        "managedBy",
        "maxRestarts",
        "elasticPolicy.metrics",
    ):
        assert name in said


def test_a_restart_policy_of_a_kubeflow_role_is_said_to_be_gone():
    given = kubeflow()
    given["spec"]["paddleReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    (note,) = convert(given).notes
    assert note == "paddleReplicaSpecs.Worker.restartPolicy: was OnFailure; a failure now rebuilds the job as a whole"


def test_a_kubeflow_job_with_only_a_master_has_a_worker():
    role = kubeflow()["spec"]["paddleReplicaSpecs"]["Worker"]
    made = convert(kubeflow(paddleReplicaSpecs={"Master": role}))
    assert set(made.job["spec"]) == {"worker"}
    assert faults(made.job) == []


@pytest.mark.parametrize("name", ["paddle-data-job.yaml", "paddle-cluster-job.yaml", "paddle-indexed-job.yaml"])
def test_any_job_runs_as_workers_where_there_are_no_jobs(name: str):
    given = example(name)
    made = as_workers(given)
    assert faults(made.job) == []
    worker = made.job["spec"]["worker"]
    assert worker["replicas"] == given["spec"].get("parallelism", 1)
    assert set(made.job["spec"]) & {"ps", "heter"} == set()
    (container,) = worker["template"]["spec"]["containers"]
    assert container["env"] == given["spec"]["template"]["spec"]["containers"][0]["env"]
    assert worker["template"]["metadata"]["labels"]["job-name"] == given["metadata"]["name"]
    assert "ports" not in container, "on one machine no two pods may have the same host port"
