"""The verbs as users type them, against an API server that answers as a test scripts it."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob import contract
from paddlejob.api.crd import crd
from paddlejob.cli.doctor.webhooks import Leftover, delete_commands, describe
from paddlejob.cli.install import rollout, uninstall
from paddlejob.cli.install.install import RESOURCES
from paddlejob.cli.install.rollout import (
    UNLIKELY_TO_RECOVER,
    _is_rolled_out,
    _pod_progress,
    wait_until_available,
    wait_until_established,
)
from paddlejob.code.archive import pack
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.operator.manifests import LABELS, NAME, NAMESPACE
from tests.support.builders import document
from tests.support.cluster_verbs import Pdj, established
from tests.support.scripted_api import Object, failure
from tests.support.scripted_cluster import JOB, ScriptedCluster, operator

RUNNING = {"phase": "Running", "reason": "Running", "message": "all pods are running", "attempt": 1}
ENDED = {
    "phase": "Completed",
    "message": "all workers succeeded",
    "attempt": 1,
    "completionTime": "2027-01-15T09:00:00Z",
}


async def test_jobs_are_listed_with_their_target(api: ScriptedCluster, called: Pdj):
    empty = await called("list", "--cluster")
    assert empty.stderr.splitlines()[0] == "No jobs found; start one with `pdj submit FILE`."
    api.add_job(RUNNING, ps=1)
    done = await called("list", "--cluster")
    assert done.stdout.split()[:8] == ["NAME", "STATUS", "MODE", "PS", "WORKER", "PROGRESS", "AGE", "mnist"]
    assert "target: cluster at http://127.0.0.1:" in done.stderr and "all namespaces; change it" in done.stderr
    wide = await called("list", "--cluster", "-n", "default", "-o", "wide")
    assert wide.stdout.splitlines()[1].endswith("all pods are running")
    assert "namespace default;" in wide.stderr
    listed = json.loads((await called("list", "--cluster", "-o", "json")).stdout)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["mnist"]
    history = await called("list", "--cluster", "--history")
    assert (history.returncode, "a cluster keeps no former runs" in history.stderr) == (2, True)


async def test_a_job_is_shown_and_explained(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING)
    name = api.add_pod()["metadata"]["name"]
    api.logs[name] = ["loss=1"]
    shown = await called("get", "mnist", "--cluster")
    assert shown.stdout.splitlines()[0].startswith("mnist: Running (Collective)")
    assert "last output" in shown.stdout
    assert yaml.safe_load((await called("get", "mnist", "--cluster", "-o", "yaml")).stdout)["kind"] == "PaddleJob"
    why = await called("why", "mnist", "--cluster")
    assert "from worker-0." in why.stdout
    assert why.stdout.endswith("Next: follow its output with `pdj logs -f mnist --cluster`.\n")
    assert json.loads((await called("why", "mnist", "--cluster", "-o", "json")).stdout)["phase"] == "Running"
    missing = await called("get", "absent", "--cluster")
    assert (missing.returncode, "existing jobs: mnist" in missing.stderr) == (2, True)


async def test_logs_are_printed_chosen_and_saved(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    api.add_job(ENDED)
    for index in (0, 1):
        api.logs[api.add_pod(index, state="terminated")["metadata"]["name"]] = [f"start {index}", "loss=1", "end"]
    every = await called("logs", "mnist", "--cluster")
    assert every.stdout.splitlines()[0] == "[worker-0] start 0"
    one = await called("logs", "mnist", "--cluster", "--role", "worker", "--index", "1", "--tail", "1")
    assert one.stdout == "end\n"
    assert (await called("logs", "mnist", "--cluster", "--index", "0", "--grep", "loss")).stdout == "loss=1\n"
    saved = await called("logs", "mnist", "--cluster", "--save", "out")
    assert saved.stdout == every.stdout
    assert (tmp_path / "out/mnist-worker-1.log").read_text() == "start 1\nloss=1\nend\n"
    again = await called("logs", "mnist", "--cluster", "--save", "out")
    assert (again.returncode, "has logs of mnist already" in again.stderr) == (2, True)
    assert "use ps, worker or heter" in (await called("logs", "mnist", "--cluster", "--role", "x")).stderr
    assert "is not a duration" in (await called("logs", "mnist", "--cluster", "--since", "x")).stderr
    await called("logs", "mnist", "--cluster", "--since", "10m")
    assert "sinceTime" in api.queries[-1][1]


async def test_metrics_are_printed_in_three_formats(api: ScriptedCluster, called: Pdj):
    api.add_job(ENDED)
    name = api.add_pod(state="terminated")["metadata"]["name"]
    api.logs[name] = ["step 1/2 loss=0.5", "hello", "step 2/2 loss=nan"]
    table = (await called("metrics", "mnist", "--cluster")).stdout.splitlines()
    assert [line.split()[-2:] for line in table] == [["STEP", "LOSS"], ["1/2", "0.5"], ["2/2", "nan"]]
    csv = (await called("metrics", "mnist", "--cluster", "-o", "csv")).stdout.splitlines()
    assert csv[0].startswith("time,attempt,step,total_steps") and csv[1].startswith("2027-01-15T08:00:00Z,1,1,2,")
    rows = json.loads((await called("metrics", "mnist", "--cluster", "-o", "json")).stdout)
    assert rows[1] == {"time": "2027-01-15T08:00:02Z", "attempt": 1, "step": 2, "total_steps": 2, "loss": "nan"}
    followed = await called("metrics", "mnist", "--cluster", "-o", "json", "-f")
    assert [json.loads(line)["step"] for line in followed.stdout.splitlines()] == [1, 2]
    assert "cannot be used with a table" in (await called("metrics", "mnist", "--cluster", "-f")).stderr
    api.logs[name] = ["hello"]
    nothing = await called("metrics", "mnist", "--cluster")
    assert "the log of job mnist shows no progress in 1 line. Lines such as" in nothing.stderr
    api.add_job(ENDED, progress={"pattern": r"at (?P<step>\d+)"})
    assert (
        "matches none of 1 line of its log; change or remove it"
        in (await called("metrics", "mnist", "--cluster")).stderr
    )


async def test_jobs_are_changed_and_deleted(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING, elastic=1)
    assert (await called("scale", "mnist", "3", "--cluster")).stdout == "mnist scaled to 3 workers\n"
    assert (await called("suspend", "mnist", "--context", "west")).stdout == (
        "mnist suspended; run `pdj resume mnist --context west` to continue\n"
    )
    assert (await called("resume", "mnist", "--cluster")).stdout == (
        "mnist resumed in the background; follow it with `pdj logs -f mnist --cluster`\n"
    )
    assert [one.body["spec"] for one in api.written("PATCH")] == [
        {"worker": {"replicas": 3}}, {"suspend": True}, {"suspend": False}
    ]  # fmt: skip
    early = await called("rerun", "mnist", "--cluster")
    assert "job mnist has not ended (Running); end it with `pdj delete mnist --cluster` first" in early.stderr
    assert (await called("delete", "mnist", "--cluster", "--no-wait")).stdout == "mnist is being deleted\n"
    bad = await called("delete", "a/b", "--cluster")
    assert (bad.returncode, "is not a valid job name" in bad.stderr) == (2, True)


async def test_a_job_that_has_ended_runs_again(api: ScriptedCluster, called: Pdj):
    api.add_job(ENDED)
    done = await called("rerun", "mnist", "--cluster")
    assert done.stdout == "mnist runs again; follow it with `pdj logs -f mnist --cluster`\n"
    assert [one.method for one in api.asked] == ["DELETE", "POST"]
    assert api.tried == ["mnist-rerun"]


async def test_a_file_is_submitted_with_its_objects(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    made = document()
    del made["metadata"]["namespace"]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([made, secret]))
    dry = await called("submit", "job.yaml", "-n", "team", "--dry-run")
    assert [one["metadata"]["namespace"] for one in yaml.safe_load_all(dry.stdout)] == ["team", "team"]
    listed = json.loads((await called("submit", "job.yaml", "--dry-run", "-o", "json")).stdout)
    assert [one["kind"] for one in listed["items"]] == ["Secret", "PaddleJob"]
    assert api.asked == []
    done = await called("submit", "job.yaml")
    assert done.stdout.splitlines() == [
        "Secret s in namespace default: created",
        "job mnist in namespace default: created",
        "next: `pdj why mnist --cluster`, `pdj logs -f mnist --cluster`, `pdj delete mnist --cluster`",
    ]
    assert done.stderr == ""
    api.deployments = []
    api.objects.clear()
    warned = await called("submit", "job.yaml", "--context", "west")
    assert "warning: no operator is installed in this cluster" in warned.stderr
    assert "`pdj install --context west`" in warned.stderr
    refused = await called("submit", "job.yaml", "--save-logs", "x")
    assert "--save-logs: works with --follow and a single job" in refused.stderr


async def test_a_submitted_job_is_waited_for(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document()))
    api.answers["POST", "default/paddlejobs"] = lambda body: (201, api.put(JOB, {**body, "status": ENDED}))
    done = await called("submit", "job.yaml", "--wait")
    assert (done.returncode, "mnist: Completed: all workers succeeded" in done.stdout) == (0, True)
    failed = {**ENDED, "phase": "Failed", "message": "a worker failed"}
    api.answers["POST", "default/paddlejobs"] = lambda body: (201, api.put(JOB, {**body, "status": failed}))
    lost = await called("submit", "job.yaml", "--wait")
    assert (lost.returncode, lost.stderr) == (1, "pdj: mnist failed: a worker failed\n")
    name = api.add_pod(state="terminated")["metadata"]["name"]
    api.logs[name] = ["hello"]
    followed = await called("submit", "job.yaml", "--follow", "--save-logs", "logs")
    assert "[worker-0] hello\n" in followed.stdout
    assert (tmp_path / "logs/mnist-worker-0.log").read_text() == "hello\n"


async def test_a_program_is_submitted_with_its_code(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print(1)\n")
    done = await called(
        "submit", "src/train.py", "--image", "i:1", "--workers", "2", "--gpus", "1", "--queue", "q", "--env", "A=1",
        "--volume", "data=/d", "--volume", "more", "--name", "mine", "--dry-run", "--", "--epochs", "3",
    )  # fmt: skip
    made = yaml.safe_load(done.stdout)
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "src/train.py", "--epochs", "3"]
    assert (container["image"], container["resources"]["limits"]) == ("i:1", {"nvidia.com/gpu": 1})
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/d", "/mnt/more"]
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("mine", {"kueue.x-k8s.io/queue-name": "q"})
    outside = await called("submit", "src/train.py", "--image", "i:1", "--code", "src", "--dry-run")
    assert "src/train.py: is not shipped with --code src" in outside.stderr
    bad = await called("submit", "src/train.py", "--image", "a=b")
    assert "is not the name of an image" in bad.stderr


async def test_the_code_of_a_job_is_written_back(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print(1)\n")
    archive = pack(str(tmp_path / "src"))
    made = api.add_job(ENDED)
    without = await called("code", "mnist", "-o", "out")
    assert "job mnist was submitted without --code; its code is in its image" in without.stderr
    made["metadata"]["annotations"] = {contract.ANNOTATION_CODE: f"{archive.digest}/1"}
    gone = await called("code", "mnist", "-o", "out")
    assert f"ConfigMap code-{archive.digest}-0 with the code of job mnist is gone" in gone.stderr
    data = {"part-000": base64.b64encode(archive.content).decode()}
    path = f"default/configmaps/code-{archive.digest}-0"
    api.put(path, {"metadata": {"namespace": "default"}, "binaryData": data})
    done = await called("code", "mnist", "-o", "out")
    assert done.stdout == "wrote 1 files to out\n"
    assert (tmp_path / "out/train.py").read_text() == "print(1)\n"
    again = await called("code", "mnist", "-o", "out")
    assert "--output out: is not an empty directory; choose another" in again.stderr
    api.put(path, {"metadata": {"namespace": "default"}, "binaryData": {"part-000": ""}})
    assert "was changed in the cluster; it is not written" in (await called("code", "mnist", "-o", "new")).stderr
    assert hashlib.sha256(archive.content).hexdigest().startswith(archive.digest)


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
    api.add_job(RUNNING)
    api.add_job(ENDED, "done")
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
        await uninstall._wait_until_removed(
            client, {"kind": "Deployment", "metadata": {"name": "x", "namespace": "team"}}
        )


def deployment(generation: int = 2, **status: Any) -> Object:
    counts = {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}}
    metadata = {"name": NAME, "namespace": NAMESPACE, "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": {**counts, **status}}


def test_a_rollout_is_over_when_all_replicas_are_new_and_available():
    assert _is_rolled_out(deployment())
    assert not _is_rolled_out(deployment(generation=3))
    for count in ("updatedReplicas", "replicas", "availableReplicas"):
        assert not _is_rolled_out(deployment(**{count: 1})) and not _is_rolled_out(deployment(**{count: 3}))
    assert not _is_rolled_out({**deployment(), "status": {}})


@pytest.mark.parametrize("reason", UNLIKELY_TO_RECOVER)
def test_a_container_that_will_hardly_start_says_why(reason: str):
    waiting = {"reason": reason, "message": " details "}
    pod = {
        "metadata": {"name": "p"}, "spec": {"containers": [{"image": "i:1"}]},
        "status": {"containerStatuses": [{"state": {"running": {}}}, {"state": {"waiting": waiting}}]},
    }  # fmt: skip
    found = _pod_progress(pod, deployment())
    assert found and found.permanent
    assert found.message.startswith(f"pod p: {reason}: ") and found.message.endswith(' ("details")')
    waiting["reason"] = "ContainerCreating"
    assert _pod_progress(pod, deployment()) is None
    pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no nodes"}]}
    unscheduled = _pod_progress(pod, deployment())
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
