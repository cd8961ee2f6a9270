"""`pdj doctor --cluster`: what is asked of the API server, and what each answer means."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.crd import crd
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
from paddlejob.operator.manifests import NAME, NAMESPACE
from tests.support.called_pdj import pdj
from tests.support.cluster_verbs import Pdj, established
from tests.support.scripted_cluster import Object, ScriptedCluster, failure, operator

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
    api.kueue = set(contract.KUEUE_VERSIONS)
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


async def checks(called: Pdj, *options: str) -> dict[str, tuple[str, str, str]]:
    done = await called("doctor", "--cluster", "-o", "json", *options)
    found = [(one["what"], one["verdict"], one["found"], one["advice"]) for one in json.loads(done.stdout)]
    assert done.returncode == int(any(verdict == "change" for _, verdict, _, _ in found))
    return {what: (verdict, text, advice) for what, verdict, text, advice in found}


async def test_the_doctor_examines_a_cluster(api: ScriptedCluster, called: Pdj, monkeypatch: pytest.MonkeyPatch):
    established(api)
    versions = {"major": "1", "minor": "29+", "gitVersion": "v1.29.3"}
    reviews: list[Object] = []
    denied: set[str] = set()

    def review(body: Object) -> tuple[int, Object]:
        reviews.append(body["spec"]["resourceAttributes"])
        return 201, {**body, "status": {"allowed": reviews[-1]["verb"] not in denied}}

    api.answers["POST", "selfsubjectaccessreviews"] = review
    read = Client.read

    async def version(self: Client, path: str) -> Object:
        return versions if path == "/version" else await read(self, path)

    monkeypatch.setattr(Client, "read", version)
    api.deployments = [operator()]
    api.kinds += [{"name": "podgroups", "kind": "PodGroup", "namespaced": True}]
    good = await checks(called)
    assert {what: verdict for what, (verdict, _, _) in good.items()} == {
        "cluster": "good", "PaddleJob": "good", "operator": "good", "permissions": "good", "Volcano": "good",
        "Kueue": "note", "webhooks": "good",
    }  # fmt: skip
    assert "1 of 2 replicas ready" in good["operator"][1] and "watches all namespaces" in good["operator"][1]
    assert {(one["resource"], one.get("subresource"), one["verb"]) for one in reviews} == {
        ("paddlejobs", None, "create"), ("paddlejobs", None, "list"), ("paddlejobs", None, "patch"),
        ("paddlejobs", None, "delete"), ("pods", None, "list"), ("pods", "log", "get"), ("events", None, "list"),
    }  # fmt: skip
    denied.update({"patch", "get"})
    versions["minor"] = "28"
    api.kinds = []
    api.deployments = [operator("team", available=0)]
    bad = await checks(called, "-n", "own")
    assert bad["cluster"][0] == "change" and "1.29 and newer" in bad["cluster"][2]
    assert bad["permissions"][1] == "in namespace own you may not change jobs, read logs"
    assert bad["operator"] == (
        "change", "none watches namespace own",
        "choose a watched namespace with -n, or install another operator with `pdj install -n own --watch own`",
    )  # fmt: skip
    assert bad["Volcano"][0] == "note"
    api.deployments = []
    assert (await checks(called))["operator"][1] == "not installed"
    api.answers["GET", "deployments"] = failure(403, "Forbidden")
    api.answers["GET", f"{NAMESPACE}/deployments/{NAME}"] = failure(403, "Forbidden")
    assert (await checks(called))["operator"][0] == "note"
    name = f"customresourcedefinitions/{contract.PLURAL}.{contract.GROUP}"
    api.answers["GET", name] = failure(404, "NotFound")
    assert (await checks(called))["PaddleJob"][1] == "the CRD is not installed"
    api.answers["GET", name] = failure(403, "Forbidden")
    assert (await checks(called))["PaddleJob"][1] == "the API server does not serve this kind"
    older = copy.deepcopy(crd())
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("elastic")
    api.answers["GET", name] = 200, older
    assert (await checks(called))["PaddleJob"][0] == "note"
    page = (await called("doctor", "--cluster")).stdout
    assert page.splitlines()[0].split() == ["CHECK", "VERDICT", "FOUND"]
    assert "\n\nChanges needed:\n" in page and "\n\nNotes:\n" in page and "No changes needed." not in page
