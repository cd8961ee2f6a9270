"""`pdj install` and `pdj uninstall`, against an API server that answers as a test scripts it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from paddlejob import contract
from paddlejob.cli.doctor.webhooks import Leftover, delete_commands, describe
from paddlejob.cli.install import rollout, uninstall
from paddlejob.cli.install.install import RESOURCES
from paddlejob.cli.install.rollout import (
    UNLIKELY_TO_RECOVER,
    is_rolled_out,
    pod_progress,
    wait_until_available,
    wait_until_established,
)
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.operator.manifests import LABELS, NAME, NAMESPACE
from tests.support.cluster_verbs import Pdj, established
from tests.support.scripted_cluster import Object, ScriptedCluster, failure, operator


def deployment(generation: int = 2, **status: Any) -> Object:
    counts = {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}}
    metadata = {"name": NAME, "namespace": NAMESPACE, "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": {**counts, **status}}


async def test_the_operator_is_installed(api: ScriptedCluster, called: Pdj):
    established(api)
    done = await called("install")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("CustomResourceDefinition paddlejobs.")
    assert f"Namespace {NAMESPACE}: applied" in lines
    assert lines[-1] == "The operator is ready and watches all namespaces; next: `pdj submit FILE`"
    assert all(query.get("fieldManager") == "pdj-install" for _, query in api.queries if "fieldManager" in query)
    assert all(query.get("force") == "true" for _, query in api.queries if "fieldManager" in query)
    quick = await called("install", "--no-wait", "--context", "west")
    assert quick.stdout.splitlines()[-1] == (
        "The operator is starting and will watch all namespaces; next: `pdj submit FILE --context west`"
    )
    dry = await called("install", "--dry-run", "--replicas", "2", "--image", "i:2")
    kinds = [one["kind"] for one in yaml.safe_load_all(dry.stdout)]
    assert set(kinds) <= set(RESOURCES) and kinds[0] == "CustomResourceDefinition"
    assert "exclude each other" in (await called("install", "--watch", "a", "-A")).stderr


async def test_a_second_installation_keeps_what_was_chosen_and_two_operators_are_kept_apart(
    api: ScriptedCluster, called: Pdj
):
    established(api)
    api.deployments = [operator()]
    again = await called("install", "--no-wait")
    assert "keeps the image operator:1; change it with --image" in again.stdout
    assert "keeps 2 replicas; change it with --replicas" in again.stdout
    other = await called("install", "-n", "other", "--no-wait")
    assert "already watches all namespaces, and two operators must not manage the same jobs" in other.stderr
    assert f"`pdj uninstall -n {NAMESPACE} --keep-jobs`" in other.stderr
    api.deployments = [operator("team")]
    narrow = await called("install", "--no-wait")
    assert "watches only namespace team, and this would make it watch all of them" in narrow.stderr
    wider = await called("install", "--no-wait", "-A")
    assert wider.returncode == 0
    beside = await called("install", "--no-wait", "-n", "b", "--watch", "b")
    assert beside.returncode == 0, beside.stderr
    assert "--watch: namespace absent not found" in (await called("install", "--no-wait", "--watch", "absent")).stderr
    api.objects["team"] = {"metadata": {"name": "team"}}
    api.deployments[0]["metadata"]["annotations"] = {"meta.helm.sh/release-name": "ours"}
    assert (
        "belongs to the Helm release ours; update it with `helm upgrade`"
        in (await called("install", "--no-wait", "--watch", "team")).stderr
    )
    assert "remove it with `helm uninstall`" in (await called("uninstall", "--yes")).stderr


async def test_leftovers_of_volcano_are_found_before_an_installation(api: ScriptedCluster, called: Pdj):
    established(api)
    hook = {"clientConfig": {"service": {"namespace": "volcano-system", "name": "admission"}}}
    hook["rules"] = [{"resources": ["jobs"]}]  # type: ignore[assignment]
    left = {"metadata": {"name": "volcano-admission-service-x"}, "webhooks": [hook]}
    other = {"metadata": {"name": "another"}, "webhooks": [hook]}
    api.answers["GET", "mutatingwebhookconfigurations"] = 200, {"metadata": {}, "items": [left, other]}
    warned = await called("install", "--no-wait")
    assert "warning: Volcano was removed but its webhooks remain, so some requests are rejected" in warned.stderr
    hook["rules"] = [{"resources": ["pods"]}]  # type: ignore[assignment]
    blocked = await called("install", "--no-wait")
    assert (blocked.returncode, "so no pod can start; delete them:" in blocked.stderr) == (1, True)
    assert "kubectl delete mutatingwebhookconfigurations volcano-admission-service-x" in blocked.stderr
    api.objects["volcano-system/services/admission"] = {"metadata": {"name": "admission"}}
    assert "warning" not in (await called("install", "--no-wait")).stderr
    del api.objects["volcano-system/services/admission"]
    api.answers["GET", "volcano-system/services/admission"] = failure(403, "Forbidden")
    assert (await called("install", "--no-wait")).returncode == 0
    hook["failurePolicy"] = "Ignore"  # type: ignore[assignment]
    del api.answers["GET", "volcano-system/services/admission"]
    assert (await called("install", "--no-wait")).returncode == 0


def test_the_commands_that_remove_leftovers_are_one_per_kind():
    left = [Leftover("as", "x", False), Leftover("bs", "y", False), Leftover("as", "z", True)]
    assert delete_commands(left) == ["kubectl delete as x z", "kubectl delete bs y"]
    assert describe(left).splitlines()[1:] == ["  kubectl delete as x z", "  kubectl delete bs y"]


async def test_the_operator_is_removed_with_a_warning_about_what_goes_with_it(api: ScriptedCluster, called: Pdj):
    established(api)
    await called("install", "--no-wait")
    del api.answers["GET", f"customresourcedefinitions/{contract.PLURAL}.{contract.GROUP}"]
    del api.answers["GET", f"{NAMESPACE}/deployments/{NAME}"]
    api.deployments = [operator()]
    api.add_job({"phase": "Running", "attempt": 1})
    api.add_job({"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T09:00:00Z"}, "done")
    api.answers["GET", f"{NAMESPACE}/pods"] = 200, {"metadata": {}, "items": [
        {"metadata": {"name": f"{NAME}-x"}}, *({"metadata": {"name": f"p{number}"}} for number in range(6))
    ]}  # fmt: skip
    claims = {"metadata": {}, "items": [{"metadata": {"name": "data"}}]}
    api.answers["GET", f"{NAMESPACE}/persistentvolumeclaims"] = 200, claims
    asked = await called("uninstall")
    assert "cannot ask for confirmation without a terminal; confirm with --yes" in asked.stderr
    assert asked.stderr.splitlines()[:5] == [
        "Removing the operator:",
        "  deletes 2 PaddleJobs (1 unfinished) with all pods and logs: 2 in default",
        f"  deletes namespace {NAMESPACE} and everything in it",
        f"  deletes 6 pods in namespace {NAMESPACE}: p0, p1, p2, p3, p4 and 1 more",
        f"  deletes 1 persistent volume claim in namespace {NAMESPACE} with all data: data",
    ]
    kept = await called("uninstall", "--keep-jobs")
    assert "  keeps the PaddleJob CRD and all jobs" in kept.stderr
    wrong = await called("uninstall", "-n", "elsewhere", "--yes")
    assert f"no operator in namespace elsewhere; choose the namespace of one with -n: {NAMESPACE}" in wrong.stderr
    done = await called("uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("CustomResourceDefinition"), "its jobs go while the operator works"
    assert done.stdout.splitlines()[-1] == f"Namespace {NAMESPACE}: removed"
    api.deployments = []
    assert (await called("uninstall", "--yes")).stdout == "No operator is installed; nothing removed.\n"


async def test_an_object_that_stays_is_named(api: ScriptedCluster, client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(uninstall, "TIMEOUT", -1.0)
    api.answers["GET", "team/deployments/x"] = 200, {"metadata": {"name": "x"}}
    with pytest.raises(NotPossible, match=r"check its finalizers with `kubectl get deployment x -o yaml`"):
        await uninstall.wait_until_removed(
            client, {"kind": "Deployment", "metadata": {"name": "x", "namespace": "team"}}
        )


def test_a_rollout_is_over_when_all_replicas_are_new_and_available():
    assert is_rolled_out(deployment())
    assert not is_rolled_out(deployment(generation=3))
    for count in ("updatedReplicas", "replicas", "availableReplicas"):
        assert not is_rolled_out(deployment(**{count: 1})) and not is_rolled_out(deployment(**{count: 3}))
    assert not is_rolled_out({**deployment(), "status": {}})


@pytest.mark.parametrize("reason", UNLIKELY_TO_RECOVER)
def test_a_container_that_will_hardly_start_says_why(reason: str):
    waiting = {"reason": reason, "message": " details "}
    pod = {
        "metadata": {"name": "p"}, "spec": {"containers": [{"image": "i:1"}]},
        "status": {"containerStatuses": [{"state": {"running": {}}}, {"state": {"waiting": waiting}}]},
    }  # fmt: skip
    found = pod_progress(pod, deployment())
    assert found and found.permanent
    assert found.message.startswith(f"pod p: {reason}: ") and found.message.endswith(' ("details")')
    waiting["reason"] = "ContainerCreating"
    assert pod_progress(pod, deployment()) is None
    pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no nodes"}]}
    unscheduled = pod_progress(pod, deployment())
    assert unscheduled and (unscheduled.message, unscheduled.permanent) == ("pod p is not scheduled: no nodes", False)


async def test_an_installation_waits_and_gives_up_with_the_reason(
    api: ScriptedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rollout, "PAUSE", 0.0)
    said: list[str] = []
    path = f"{NAMESPACE}/deployments/{NAME}"
    states = iter([deployment(availableReplicas=0), deployment(availableReplicas=1), deployment(availableReplicas=1)])
    api.answers["GET", path] = lambda _: (200, next(states, deployment()))
    await wait_until_available(client, deployment(), 60, said.append)
    assert said == ["0 of 2 replicas ready", "1 of 2 replicas ready"]
    api.answers["GET", path] = 200, deployment(availableReplicas=0)
    with pytest.raises(NotPossible, match="the operator is not running after 0 s: 0 of 2 replicas ready"):
        await wait_until_available(client, deployment(), -1, said.append)
    rejected = {"type": "ReplicaFailure", "status": "True", "message": "quota"}
    api.answers["GET", path] = 200, deployment(availableReplicas=0, conditions=[rejected])
    monkeypatch.setattr(rollout, "GRACE_SECONDS", -1.0)
    with pytest.raises(NotPossible, match="the API server rejects its pods: quota"):
        await wait_until_available(client, deployment(), 60, said.append)


async def test_a_crd_that_is_not_served_is_named(api: ScriptedCluster, client: Client):
    api.answers["GET", "customresourcedefinitions/x"] = 200, {"status": {}}
    with pytest.raises(NotPossible, match="does not serve x after -1 s; check `kubectl describe crd x`"):
        await wait_until_established(client, "x", -1.0)
    conditions = [{"type": "Other", "status": "True"}, {"type": "Established", "status": "True"}]
    api.answers["GET", "customresourcedefinitions/x"] = 200, {"status": {"conditions": conditions}}
    await wait_until_established(client, "x", -1.0)
