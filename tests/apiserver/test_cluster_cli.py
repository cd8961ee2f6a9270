"""The verbs on a cluster: real API server, real operator, simulated kubelet, and `pdj` as a user starts it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from paddlejob.operator.manifests import IMAGE
from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.cluster_pdj import ClusterPdj
from tests.support.operator_stage import OperatorStage


@pytest.fixture
def pdj(installed: ControlPlane, tmp_path: Path) -> ClusterPdj:
    return ClusterPdj(installed, tmp_path)


def job(namespace: str, name: str = "story", **options: Any) -> dict[str, Any]:
    made = document(name, **options)
    made["metadata"] = {"name": name, "namespace": namespace}
    return made


async def test_a_job_is_submitted_looked_at_and_deleted(pdj: ClusterPdj, stage: OperatorStage, namespace: str) -> None:
    file = pdj.write(job(namespace, ps=1, workers=2))
    done = await pdj("submit", file)
    assert done.returncode == 0, done.stderr
    assert f"job story in namespace {namespace}: created" in done.stdout
    assert f"pdj logs -f story --cluster -n {namespace}" in done.stdout
    await stage.until(phase="Running")

    listed = await pdj("list", "--cluster", "-n", namespace)
    assert listed.stdout.split()[:13] == [
        *("NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE"),
        *("story", "Running", "PS", "1/1", "2/2"),
        listed.stdout.split()[12],
    ]
    shown = await pdj("get", "story", "--cluster", "-n", namespace)
    assert shown.stdout.startswith("story: Running (PS)")
    assert [line.split()[:3] for line in shown.stdout.splitlines()[-3:]] == [
        ["ps-0", "Running", "1"],
        ["worker-0", "Running", "1"],
        ["worker-1", "Running", "1"],
    ]
    everywhere = await pdj("list", "--cluster")
    assert [line.split()[:2] for line in everywhere.stdout.splitlines()] == [
        ["NAMESPACE", "NAME"],
        [namespace, "story"],
    ]
    why = await pdj("why", "story", "--cluster", "-n", namespace)
    assert why.stdout.startswith("story is running: "), why.stdout
    assert why.stdout.endswith(f"Next: follow its output with `pdj logs -f story --cluster -n {namespace}`.\n")

    deleted = await pdj("delete", "story", "--cluster", "-n", namespace)
    assert deleted.stdout == "story deleted\n", deleted.stderr
    assert await stage.pods() == {}
    again = await pdj("get", "story", "--cluster", "-n", namespace)
    assert (again.returncode, again.stderr) == (
        2,
        f"pdj: job story not found in namespace {namespace}; start one with `pdj submit FILE -n {namespace}`\n",
    )


async def test_a_job_is_suspended_scaled_and_resumed(pdj: ClusterPdj, stage: OperatorStage, namespace: str) -> None:
    where = ("--cluster", "-n", namespace)
    await pdj("submit", pdj.write(job(namespace, workers=2)))
    await stage.until(phase="Running")

    rejected = await pdj("scale", "story", "3", *where)
    assert rejected.returncode == 2
    assert "elastic" in rejected.stderr

    done = await pdj("suspend", "story", *where)
    resume = f"pdj resume story --cluster -n {namespace}"
    assert done.stdout == f"story suspended; run `{resume}` to continue\n", done.stderr
    await stage.until(phase="Suspended")
    assert (await pdj("scale", "story", "3", *where)).stdout == "story scaled to 3 workers\n"
    assert (await pdj("resume", "story", *where)).returncode == 0
    await stage.until(phase="Running", worker_ready="3/3")


async def test_a_job_that_failed_says_why_on_a_cluster_too(
    pdj: ClusterPdj, stage: OperatorStage, namespace: str
) -> None:
    await pdj("submit", pdj.write(job(namespace, workers=2, backoffLimit=0)))
    await stage.until(phase="Running")
    await stage.exit("story-worker-1", 1, "ModuleNotFoundError: No module named 'pandas'")
    await stage.until(phase="Failed")

    why = await pdj("why", "story", "--cluster", "-n", namespace)
    assert why.stdout.startswith("story failed: "), why.stdout
    assert "Events:" in why.stdout
    assert "The Python that ran the job has no module pandas" in why.stdout
    assert f"pdj logs story --role worker --index 1 --cluster -n {namespace}" in why.stdout
    changed = await pdj("suspend", "story", "--cluster", "-n", namespace)
    assert "job story has ended (Failed) and cannot be changed" in changed.stderr


async def test_submit_waits_and_its_exit_status_shows_how_the_job_ended(
    pdj: ClusterPdj, stage: OperatorStage, namespace: str
) -> None:
    waiting = asyncio.create_task(pdj("submit", "--wait", pdj.write(job(namespace, workers=1))))
    await _until_there(stage)
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 0)
    done = await waiting
    assert done.returncode == 0, done.stderr
    assert "story: Completed" in done.stdout

    failing = pdj.write(job(namespace, "second", workers=1, backoffLimit=0), name="second.yaml")
    waiting = asyncio.create_task(pdj("submit", "--wait", failing))
    second = OperatorStage(stage.client, stage.kubelet, namespace, "second")
    await _until_there(second)
    await second.until(phase="Running")
    await second.exit("second-worker-0", 3)
    done = await waiting
    assert (done.returncode, "pdj: second failed: " in done.stderr) == (1, True), done.stderr


async def test_a_name_in_use_is_reported_with_its_remedy(pdj: ClusterPdj, admin: Client, namespace: str) -> None:
    file = pdj.write(job(namespace))
    assert (await pdj("submit", file)).returncode == 0
    twice = await pdj("submit", file)
    assert twice.returncode == 1
    assert f"job story in namespace {namespace} already exists" in twice.stderr
    assert f"pdj delete story --cluster -n {namespace}" in twice.stderr


async def test_all_errors_in_all_files_are_reported_and_nothing_is_sent(
    pdj: ClusterPdj, admin: Client, namespace: str
) -> None:
    bad = job(namespace, workers=2)
    bad["spec"]["worker"]["replicas"] = 0
    bad["spec"]["intranet"] = "Carrier"
    first = pdj.write(claim("data", namespace), bad)
    second = pdj.write({"kind": "ConfigMap"}, name="second.yaml")
    done = await pdj("submit", first, second, "missing.yaml")
    assert done.returncode == 2
    for message in (
        "spec.worker.replicas: 0 is less than 1",
        'spec.intranet: "Carrier" is not valid',
        "second.yaml contains no PaddleJob",
        "missing.yaml: no such file",
    ):
        assert message in done.stderr, done.stderr
    assert await admin.list(PERSISTENT_VOLUME_CLAIMS, namespace) == []


async def test_other_objects_of_a_file_come_before_the_job_and_may_be_there_already(
    pdj: ClusterPdj, admin: Client, namespace: str
) -> None:
    file = pdj.write(job(namespace), claim("data", namespace))
    done = await pdj("submit", file)
    assert done.stdout.splitlines()[:2] == [
        f"PersistentVolumeClaim data in namespace {namespace}: created",
        f"job story in namespace {namespace}: created",
    ], done.stderr
    await pdj("delete", "story", "--cluster", "-n", namespace)
    again = await pdj("submit", file)
    assert f"PersistentVolumeClaim data in namespace {namespace}: unchanged" in again.stdout, again.stderr
    assert f"job story in namespace {namespace}: created" in again.stdout


async def test_a_kind_that_the_cluster_lacks_is_reported_before_anything_is_created(
    pdj: ClusterPdj, admin: Client, namespace: str
) -> None:
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "story"}}
    done = await pdj("submit", "-n", namespace, pdj.write(job(namespace), claim("data"), group))
    assert done.returncode == 1
    assert "the cluster has no PodGroup in scheduling.volcano.sh/v1beta1; install Volcano" in done.stderr
    assert await admin.list(PERSISTENT_VOLUME_CLAIMS, namespace) == []


async def test_a_rejection_by_the_server_leaves_nothing_behind(pdj: ClusterPdj, admin: Client, namespace: str) -> None:
    impossible = claim("data")
    impossible["spec"]["resources"]["requests"]["storage"] = "-1Gi"
    missing = job("nowhere-at-all")
    done = await pdj("submit", pdj.write(claim("fine", namespace), impossible | {}, missing))
    assert done.returncode == 1
    assert "must be greater than zero" in done.stderr
    assert "create it with `kubectl create namespace nowhere-at-all`" in done.stderr
    assert await admin.list(PERSISTENT_VOLUME_CLAIMS, namespace) == []


async def test_a_dry_run_prints_what_would_be_sent_and_sends_nothing(
    pdj: ClusterPdj, stage: OperatorStage, namespace: str
) -> None:
    made = job(namespace)
    del made["metadata"]["namespace"]
    done = await pdj("submit", "--dry-run", "-n", namespace, pdj.write(made))
    assert done.returncode == 0
    assert f"namespace: {namespace}" in done.stdout
    with pytest.raises(NotFound):
        await stage.job()


async def test_a_user_of_one_namespace_lists_and_submits_there(
    pdj: ClusterPdj, installed: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    installed.kubectl("create", "serviceaccount", "ada", "-n", namespace)
    rights = ("--verb=create,get,list", "--resource=paddlejobs.batch.paddlepaddle.org")
    installed.kubectl("create", "role", "ada", "-n", namespace, *rights)
    installed.kubectl(
        "create", "rolebinding", "ada", "-n", namespace, "--role=ada", f"--serviceaccount={namespace}:ada"
    )
    ada = ClusterPdj(installed, tmp_path, installed.kubeconfig_for(namespace, "ada"))

    made = job(namespace)
    del made["metadata"]["namespace"]
    done = await ada("submit", ada.write(made))
    assert done.returncode == 0, done.stderr
    listed = await ada("list", "--cluster")
    assert "story" in listed.stdout, listed.stderr
    deleted = await ada("delete", "story", "--cluster")
    assert deleted.returncode == 1
    assert "cannot delete resource" in deleted.stderr
    health = await ada("doctor", "--cluster")
    assert health.returncode == 1
    assert "you may not change jobs, delete jobs, list pods, read logs, list events" in health.stdout


def test_as_a_plugin_of_kubectl_the_cluster_is_the_default(pdj: ClusterPdj, namespace: str) -> None:
    assert pdj.plugin("submit", pdj.write(job(namespace))).returncode == 0
    listed = pdj.plugin("list", "-n", namespace)
    assert "story" in listed.stdout, listed.stderr
    usage = pdj.plugin("get", "--help")
    assert "Usage: kubectl pdj get" in usage.stdout
    here = pdj.run("list", "-n", namespace)
    assert f"No jobs found; start one with `pdj run FILE -n {namespace}`." in here.stderr


async def test_logs_that_do_not_exist_yet_are_reported(pdj: ClusterPdj, stage: OperatorStage, namespace: str) -> None:
    stage.kubelet.hold |= {"story-worker-0", "story-worker-1"}
    await pdj("submit", pdj.write(job(namespace)))
    await stage.until(phase="Pending", attempt=1)
    done = await pdj("logs", "story", "--cluster", "-n", namespace)
    assert (done.returncode, done.stderr) == (
        2,
        f"pdj: job story has no such log; list its replicas with `pdj get story --cluster -n {namespace}`\n",
    )


@pytest.mark.parametrize("follow", [(), ("-f",)])
async def test_the_logs_of_a_completed_job_are_gone_with_its_pods_and_the_policy_is_named(
    pdj: ClusterPdj, stage: OperatorStage, namespace: str, follow: tuple[str, ...]
) -> None:
    await pdj("submit", pdj.write(job(namespace, workers=1)))
    await stage.until(phase="Running")
    await stage.exit("story-worker-0", 0)
    await stage.until(phase="Completed")
    await stage.until_gone("story-worker-0")
    done = await pdj("logs", "story", *follow, "--cluster", "-n", namespace)
    assert (done.returncode, done.stderr) == (
        2,
        "pdj: job story has ended (Completed) and its pods were removed with their logs "
        "(cleanPodPolicy: OnCompletion); to keep them, set cleanPodPolicy to OnFailure or Never "
        "and run the job again\n",
    )
    why = await pdj("why", "story", "--cluster", "-n", namespace)
    assert why.stdout.endswith(f"Next: remove the job and its logs with `pdj delete story --cluster -n {namespace}`.\n")


async def test_an_operator_image_that_cannot_be_pulled_is_reported(pdj: ClusterPdj, admin: Client) -> None:
    """There are no nodes here; the pod's status is what a kubelet writes in that case."""
    installing = asyncio.create_task(pdj("install", "--image", "example/none:1", "--timeout", "12"))
    try:
        name = await _pod_with_image(admin, "example/none:1")
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        status = {"name": "manager", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
        changes = {"status": {"containerStatuses": [status]}}
        await admin.patch(PODS, name, "paddle-system", changes, subresource="status")
        done = await installing
    finally:
        await pdj("install", "--no-wait", "--image", IMAGE)
    assert done.returncode == 1
    assert f"pod {name}: ImagePullBackOff: cannot pull the image example/none:1" in done.stderr
    assert "--image" in done.stderr


async def _pod_with_image(admin: Client, image: str) -> str:
    for _ in range(600):
        for pod in await admin.list(PODS, "paddle-system"):
            if pod["spec"]["containers"][0]["image"] == image:
                return str(pod["metadata"]["name"])
        await asyncio.sleep(0.1)
    raise AssertionError("no pod was made")


def test_an_unknown_context_is_reported(pdj: ClusterPdj) -> None:
    done = pdj.run("list", "--context", "moon")
    assert done.returncode == 1
    assert "moon" in done.stderr


async def _until_there(stage: OperatorStage) -> None:
    for _ in range(600):
        try:
            await stage.job()
            return
        except NotFound:
            await asyncio.sleep(0.1)
    raise AssertionError("the job was not submitted")


def claim(name: str, namespace: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
