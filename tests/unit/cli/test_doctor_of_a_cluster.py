"""`pdj doctor --cluster`: what is asked of the API server, and what each answer means."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.cli.doctor import machine
from paddlejob.cli.doctor.check import Check, Verdict
from paddlejob.cli.doctor.cluster import (
    check_crd,
    check_kueue,
    check_operators,
    check_permissions,
    check_version,
    check_volcano,
    check_webhooks,
)
from paddlejob.kube.client import Client
from tests.support.called_pdj import pdj
from tests.support.cluster_verbs import established
from tests.support.scripted_api import Object, failure
from tests.support.scripted_cluster import ScriptedCluster, operator

CRD = f"customresourcedefinitions/{contract.PLURAL}.{contract.GROUP}"
TARGET: Any = SimpleNamespace(context_flag=" --context west")


async def test_permissions_are_asked_for_the_namespace_as_the_api_server_expects_it(
    api: ScriptedCluster, client: Client
):
    def review(body: Object) -> tuple[int, Object]:
        return 201, {**body, "status": {"allowed": True}}

    api.answers["POST", "selfsubjectaccessreviews"] = review
    check = await check_permissions(client, "team")
    assert check == Check("permissions", Verdict.GOOD, "in namespace team you may manage jobs and read their logs", "")
    bodies = [one.body for one in api.written("POST", "selfsubjectaccessreviews")]
    assert {(one["apiVersion"], one["kind"]) for one in bodies} == {
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview")
    }
    asked = [one["spec"]["resourceAttributes"] for one in bodies]
    assert asked[0] == {"namespace": "team", "group": contract.GROUP, "resource": "paddlejobs", "verb": "create"}
    assert asked[5] == {"namespace": "team", "group": "", "resource": "pods", "subresource": "log", "verb": "get"}
    assert len(asked) == 7


async def test_a_review_without_an_answer_is_no_permission(api: ScriptedCluster, client: Client):
    api.answers["POST", "selfsubjectaccessreviews"] = lambda body: (201, {**body, "status": {}})
    check = await check_permissions(client, "team")
    assert check.found.startswith("in namespace team you may not submit jobs, list jobs, change jobs, delete jobs, ")
    assert check.advice == "ask for a Role with these permissions, or choose another namespace with -n"


@pytest.mark.parametrize(
    ("major", "minor", "verdict"),
    [("1", "29", "good"), ("1", "29+", "good"), ("1", "28", "change"), ("2", "0", "good"), ("1", "", "change")],
)
async def test_the_oldest_version_is_1_29(
    client: Client, major: str, minor: str, verdict: str, monkeypatch: pytest.MonkeyPatch
):
    async def read(self: Client, path: str) -> Object:
        assert path == "/version"
        return {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.1"}

    monkeypatch.setattr(Client, "read", read)
    check = await check_version(client)
    assert str(check.verdict) == verdict
    assert check.found.endswith(f"runs Kubernetes v{major}.{minor}.1")


async def test_who_may_not_read_crds_is_answered_by_what_the_server_serves(api: ScriptedCluster, client: Client):
    api.answers["GET", CRD] = failure(403, "Forbidden")
    served = await check_crd(client, TARGET)
    assert (served.verdict, served.found) == (Verdict.GOOD, "the API server serves this kind")
    api.kinds = []
    absent = await check_crd(client, TARGET)
    assert (absent.verdict, absent.found) == (Verdict.CHANGE, "the API server does not serve this kind")


async def test_a_crd_of_this_version_is_good_and_a_missing_one_is_installed_in_that_context(
    api: ScriptedCluster, client: Client
):
    established(api)
    assert (await check_crd(client, TARGET)).found == f"{contract.PLURAL}.{contract.GROUP} is installed"
    api.answers["GET", CRD] = failure(404, "NotFound")
    assert (await check_crd(client, TARGET)).advice == "run `pdj install --context west`"


@pytest.mark.parametrize("part", ["spec", "status"])
async def test_a_crd_whose_fields_differ_is_from_another_version(api: ScriptedCluster, client: Client, part: str):
    established(api)
    _, stored = api.answers["GET", CRD]
    changed = json.loads(json.dumps(stored))
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"][part]["properties"]["later"] = {"type": "string"}
    api.answers["GET", CRD] = 200, changed
    check = await check_crd(client, TARGET)
    assert (check.verdict, check.advice) == (Verdict.NOTE, "run `pdj install --context west` to update it")


async def test_an_operator_without_a_ready_replica_says_how_to_find_the_cause(api: ScriptedCluster, client: Client):
    api.deployments = [operator(available=0), operator("team", namespace="team")]
    down, up = await check_operators(client, TARGET, "team")
    assert (down.verdict, up.verdict) == (Verdict.CHANGE, Verdict.GOOD)
    assert "watches all namespaces; 0 of 2 replicas ready" in down.found
    assert down.advice.startswith("find the cause with `kubectl describe deployment ")
    assert "(operator:1) watches namespace team; 1 of 2 replicas ready" in up.found
    api.deployments = []
    (none,) = await check_operators(client, TARGET, "team")
    assert (none.verdict, none.advice) == (Verdict.CHANGE, "run `pdj install --context west`")


async def test_volcano_and_kueue_are_needed_only_by_some_jobs(api: ScriptedCluster, client: Client):
    for check in (await check_volcano(client), await check_kueue(client)):
        assert (check.verdict, check.found) == (Verdict.NOTE, "not installed")
    api.kinds += [
        {"name": "podgroups", "kind": "PodGroup", "namespaced": True},
        {"name": "workloads", "kind": "Workload", "namespaced": True},
    ]
    assert (await check_volcano(client)).found == "installed; gang scheduling is available"
    kueue = await check_kueue(client)
    assert (kueue.verdict, kueue.found) == (
        Verdict.GOOD,
        f"installed ({contract.KUEUE_VERSIONS[0]}); jobs can wait for quota in its queues",
    )


async def test_webhooks_that_a_removed_volcano_left_are_named_with_the_commands_that_delete_them(
    api: ScriptedCluster, client: Client
):
    established(api)
    assert (await check_webhooks(client)).verdict is Verdict.GOOD
    hook = {"clientConfig": {"service": {"namespace": "volcano-system", "name": "admission"}}}
    for kind in ("validating", "mutating"):
        left = {"metadata": {"name": f"volcano-admission-service-{kind}"}, "webhooks": [hook]}
        api.answers["GET", f"{kind}webhookconfigurations"] = 200, {"metadata": {}, "items": [left]}
    check = await check_webhooks(client)
    assert check == Check(
        "webhooks",
        Verdict.CHANGE,
        "leftovers of a removed Volcano: volcano-admission-service-validating, volcano-admission-service-mutating",
        "kubectl delete validatingwebhookconfigurations volcano-admission-service-validating; "
        "kubectl delete mutatingwebhookconfigurations volcano-admission-service-mutating",
    )
    api.answers["GET", "validatingwebhookconfigurations"] = failure(403, "Forbidden")
    assert (await check_webhooks(client)).verdict is Verdict.GOOD, "who may not list webhooks learns nothing"


def test_the_doctor_makes_every_check_of_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "probe_python", lambda _: {"python": "3.11.9", "paddle": "2.6.2", "cuda": False})
    found = [one["what"] for one in json.loads(pdj("doctor", "--local", "-o", "json").stdout)]
    assert found == [
        *("system", "python", "paddle", "parameter server", "GPUs", "memory", "shared memory", "disk", "ports"),
        "mounts",
    ]
