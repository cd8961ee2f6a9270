"""A second tenant, with `view` here and `edit` there, does no harm to the jobs of the first."""

from __future__ import annotations

import json

import pytest

from paddlejob import contract
from paddlejob.kube.resource import PODS
from testbed.addons.tenant import Tenant, forgeries
from testbed.controlplane import ControlPlane
from tests.support.operator_stage import OperatorStage

CHANGES = (
    ("delete", "pdj", "story"),
    ("scale", "pdj", "story", "--replicas=7"),
    ("create", "configmap", "code-0123456789-0"),
    ("create", "configmap", "story-env-12345-2"),
    ("run", "story-worker-0", "--image=busybox"),
)


@pytest.fixture
def tenant(installed: ControlPlane, namespace: str) -> Tenant:
    installed.create_namespace(f"{namespace}-other")
    return Tenant(installed, views=namespace, edits=f"{namespace}-other")


@pytest.mark.parametrize("attempt", [1, 2], ids=["the attempt that trains", "the next attempt"])
async def test_objects_that_name_the_job_of_another_namespace_as_their_owner_change_nothing(
    stage: OperatorStage, tenant: Tenant, attempt: int
):
    await stage.submit()
    await stage.until(phase="Running")
    before = await stage.pods()
    job = await stage.job()
    forged = {"apiVersion": "v1", "kind": "List", "items": forgeries(job, tenant.namespace, attempt, ["false"])}
    tenant.kubectl("create", "-f", "-", input=json.dumps(forged))
    failed = {"phase": "Failed", "reason": "Error"}
    await stage.client.patch(PODS, "story-worker-0", tenant.namespace, {"status": failed}, subresource="status")
    await stage.exit("story-worker-0", 0)
    await stage.until(worker_finished="0")
    assert await stage.pods() == before
    await stage.exit("story-worker-1", 0)
    await stage.until(phase="Completed", attempt=1, restarts=0, disruptions=0)


async def test_pods_with_the_labels_of_a_job_and_without_its_owner_are_left_alone(
    stage: OperatorStage, tenant: Tenant, installed: ControlPlane
):
    await stage.submit()
    await stage.until(phase="Running")
    labels = f"{contract.LABEL_JOB}=story,{contract.LABEL_ROLE}=worker,{contract.LABEL_INDEX}=0"
    tenant.kubectl("run", "story-worker-0", "--image=busybox", f"--labels={labels},{contract.LABEL_ATTEMPT}=0")
    read = ("-n", tenant.namespace, "get", "pod", "story-worker-0", "-o", "jsonpath={.metadata.uid}")
    uid = installed.kubectl(*read).stdout
    await stage.exit("story-worker-0", 1)
    await stage.until(phase="Running", attempt=2, restarts=1, disruptions=0)
    assert installed.kubectl(*read).stdout == uid


async def test_to_view_jobs_is_not_to_change_them(stage: OperatorStage, tenant: Tenant):
    await stage.submit(suspend=True)
    assert tenant.kubectl("-n", stage.namespace, "get", "pdj", "story").returncode == 0
    for command in CHANGES:
        tried = tenant.kubectl("-n", stage.namespace, *command, check=False)
        assert (tried.returncode, "forbidden" in tried.stderr.lower()) == (1, True), command
