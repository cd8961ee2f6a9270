"""From a Job of the documents to a PaddleJob."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.convert import as_workers, convert, is_training_job
from paddlejob.api.validate import faults, parse
from paddlejob.errors import BadInput

EVERYTHING = Path(__file__).with_name("everything.yaml")
EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples" / "batch-job"


def example(name: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((EXAMPLES / name).read_text())
    return next(one for one in documents if one["kind"] == "Job")


@pytest.mark.parametrize("name", ["paddle-cluster-job.yaml", "paddle-indexed-job.yaml", "hostpath-cluster-job.yaml"])
def test_the_documents_jobs_become_good_paddle_jobs_with_three_servers_and_three_workers(name: str):
    made = convert(example(name))
    assert faults(made.job) == []
    job = parse(made.job)
    assert job.mode == "PS"
    assert (job.spec.roles["ps"].replicas, job.spec.roles["worker"].replicas) == (3, 3)


def test_settings_for_finding_peers_are_removed_and_noted():
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
    notes = "\n".join(made.notes)
    for name in ("CONF_PADDLE_NIC", "CONF_PADDLE_PORT ", "CONF_PADDLE_GRADIENT_NUM", "hostPorts", "backoffLimit"):
        assert name in notes
    assert "JOB_PATH/JOB_NAME/<PADDLE_TRAINER_ID>/data" in notes


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
    notes = "\n".join(made.notes)
    assert "spec.podFailurePolicy is left out; an eviction or a lost node never counts" in notes
    assert "spec.completions was 5; all 3 workers must succeed" in notes
    assert "spec.template.spec.subdomain is left out" in notes
    assert "spec.completionMode: every PaddleJob gives its pods an index" in notes


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
    with pytest.raises(BadInput, match="batch/v1 Job cannot be converted; `pdj convert` accepts a batch/v1 Job whose"):
        convert(given)


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


def test_a_job_with_every_field_becomes_a_valid_paddle_job_and_each_loss_is_noted():
    made = convert(yaml.safe_load(EVERYTHING.read_text()))
    assert faults(made.job) == []
    spec = made.job["spec"]
    assert (spec["suspend"], spec["ttlSecondsAfterFinished"], spec["activeDeadlineSeconds"]) == (True, 60, 900)
    assert spec["intranet"] == "Host"
    assert made.job["metadata"] == {"name": "all", "labels": {"team": "vision"}}
    for role in ("ps", "worker"):
        template = spec[role]["template"]
        assert template["metadata"] == {"labels": {"app": "train"}}
        pod = template["spec"]
        assert [one["name"] for one in pod["containers"]] == ["trainer", "logs"], "the first says how a pod ended"
        assert pod["initContainers"] == [{"name": "fetch", "image": "fetch:1"}]
        assert {"serviceAccountName", "nodeSelector", "tolerations", "priorityClassName"} <= pod.keys()
        assert not {"hostNetwork", "subdomain", "restartPolicy"} & pod.keys()
        trainer = pod["containers"][0]
        assert [pair["name"] for pair in trainer["env"]] == ["CONF_PADDLE_PORT", "SECRET", "JOB_PATH", "JOB_NAME"]
        assert trainer["env"][1]["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
        assert trainer["envFrom"] == [{"configMapRef": {"name": "more"}}]
        assert trainer["ports"] == [{"name": "health", "containerPort": 8080}, {"containerPort": 9090}]
    notes = "\n".join(made.notes)
    for loss in (
        "spec.backoffLimitPerIndex is left out", "spec.maxFailedIndexes is left out", "spec.successPolicy is left",
        "spec.podFailurePolicy is left out", "spec.podReplacementPolicy is left out", "spec.managedBy is left out",
        "spec.selector is left out", "spec.completionMode: every", "spec.template.spec.restartPolicy was OnFailure",
        "spec.template.spec.subdomain is left out", "spec.template.spec.hostNetwork is now spec.intranet: Host",
        "container trainer: env CONF_PADDLE_GRADIENT_NUM is left out", "container trainer: its hostPorts are left out",
        "container trainer: env CONF_PADDLE_PORT is kept because its command or another variable refers to it",
        "container trainer: determines the pod's result, so it is now first; logs may keep running",
        "requests and limits count twice, and initContainers run in both", "metadata.ownerReferences is left out",
        "`cleanPodPolicy: Never` keeps them",
    ):  # fmt: skip
        assert loss in notes, loss
    assert "uid" not in notes, "what the API server adds is no loss"


def test_a_job_that_was_paused_by_its_parallelism_is_suspended():
    given = example("paddle-cluster-job.yaml")
    given["spec"]["parallelism"] = 0
    made = convert(given)
    assert made.job["spec"]["suspend"] is True
    assert made.job["spec"]["worker"]["replicas"] == 3, "as CONF_PADDLE_GRADIENT_NUM says"
    assert any(note.startswith("spec.parallelism was 0") for note in made.notes)


def test_a_name_that_kubernetes_would_make_becomes_a_name():
    given = example("paddle-cluster-job.yaml")
    given["metadata"] = {"generateName": "train-"}
    made = convert(given)
    assert made.job["metadata"] == {"name": "train"}
    assert faults(made.job) == []
    assert any(note.startswith("metadata.generateName is now metadata.name: train") for note in made.notes)


def test_a_sidecar_of_the_name_that_decides_is_pointed_at():
    given = example("paddle-cluster-job.yaml")
    given["spec"]["template"]["spec"]["containers"].append({"name": "paddle", "image": "x"})
    assert any(note.startswith("container paddle: rename it") for note in convert(given).notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"template": None}, None),
        ({"template": "x"}, "spec.template: 'x' is not a mapping"),
        ({"template": {"spec": {"containers": "x"}}}, "spec.template.spec.containers is not a list"),
        ({"template": {"spec": {"containers": [{}]}}}, "spec.template.spec.containers is not a list"),
        ({"template": {"spec": {"containers": [{"name": "a", "env": [1]}]}}}, "env of a is not a list"),
        ({"parallelism": "three"}, "spec.parallelism: 'three' is not a whole number"),
        ({"parallelism": True}, "spec.parallelism: 'True' is not a whole number"),
    ],
)
def test_a_job_of_another_shape_is_rejected_with_its_path(change: dict[str, Any], message: str | None):
    given = example("paddle-cluster-job.yaml")
    given["spec"] |= change
    with pytest.raises(BadInput, match=message or "cannot be converted"):
        convert(given)
    with pytest.raises(BadInput, match=message or "spec.template is missing; add it"):
        as_workers(given)


def test_on_one_machine_a_job_that_would_start_no_pod_is_rejected():
    given = example("paddle-cluster-job.yaml")
    given["spec"]["parallelism"] = 0
    with pytest.raises(BadInput, match=r"spec\.parallelism is 0, so no pod would start"):
        as_workers(given)


def test_the_notes_of_a_conversion_name_what_was_left_out_and_nothing_else():
    plain = {"completions": 2, "completionMode": "NonIndexed", "selector": {}, "manualSelector": False}
    left_out = [note for note in convert(batch(**plain, backoffLimit=1)).notes if "is left out" in note]
    assert [note.partition(":")[0] for note in left_out] == ["container t"]
    made = convert(batch(successPolicy={}, pod={"hostname": "h"}))
    assert any(note.startswith("spec.successPolicy is left out; the job is complete") for note in made.notes)
    assert any("hostname is left out" in note for note in made.notes)
    assert "hostname" not in made.job["spec"]["worker"]["template"]["spec"]


def batch(
    env: list[dict[str, Any]] | None = None,
    template: dict[str, Any] | None = None,
    pod: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
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
