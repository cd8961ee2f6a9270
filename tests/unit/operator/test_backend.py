"""The operator's backend against a scripted API server: which requests an action becomes, and what follows."""

from __future__ import annotations

import time
from typing import Any

import pytest
from prometheus_client import generate_latest

from paddlejob import contract
from paddlejob.api.types import Phase, Role, Status
from paddlejob.engine.backend import Outdated, Rejected
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.errors import ApiError
from paddlejob.kube.client import Client
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.nodes import Nodes
from paddlejob.plan import Create, Delete, DeleteJob, DropFinalizer, Kind, RecordEvent, Stop, Wake, times
from paddlejob.plan.manifests.pod import pod_manifest
from paddlejob.plan.world import NodeState
from tests.support.builders import job
from tests.support.scripted_cluster import JOB, Object, ScriptedCluster, Serve, failure
from tests.support.waiting import until
from tests.unit.operator.stage import KEY, POD, UID, staged, stored_job, stored_pod


def create_pod(attempt: int = 1) -> Create:
    return Create(Kind.POD, "mnist-worker-0", pod_manifest(job(), Role.WORKER, 0, attempt, "build"))


async def test_the_world_has_only_what_the_job_owns(serve: Serve) -> None:
    other = stored_pod()[1]
    other["metadata"] = {**other["metadata"], "ownerReferences": [], "namespace": "default"}
    async with staged(serve, stored_job(), stored_pod(), ("default/pods/stray", other)) as stage:
        assert [(pod.name, pod.node) for pod in await stage.pods()] == [("mnist-worker-0", "node-1")]
        assert await stage.backend.observe(("default", "unknown")) is None


async def test_a_job_of_another_controller_is_left_alone(serve: Serve) -> None:
    managed = stored_job(managedBy="kueue.x-k8s.io/multikueue")
    managed[1]["metadata"] |= {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": [contract.OLD_FINALIZER]}
    async with staged(serve, managed) as stage:
        assert await Reconciler(stage.backend).step(KEY) is None
        assert not stage.api.asked
    async with staged(serve, stored_job(managedBy=contract.MANAGER)) as stage:
        assert (await stage.job()).name == "mnist"


async def test_a_pod_is_created_and_seen_at_once(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        await stage.perform(create_pod())
        assert [pod.name for pod in await stage.pods()] == ["mnist-worker-0"], "without waiting for the watch"


async def test_waking_a_pod_writes_how_often_and_when_and_names_its_uid(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_pod(uid="u-1")) as stage:
        (pod,) = await stage.pods()
        await stage.perform(Wake(pod, 2, 1_800_000_003.25))
        (asked,) = stage.api.written("PATCH", "pods")
        assert asked.body["metadata"] == {
            "uid": "u-1",
            "annotations": {"batch.paddlepaddle.org/wake": "2 1800000003.250"},
        }
        (woken,) = await stage.pods()
        assert (woken.woken, woken.woken_at) == (2, 1_800_000_003.25)


async def test_stopping_a_pod_ends_its_processes_and_keeps_it(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_pod(uid="u-1")) as stage:
        (pod,) = await stage.pods()
        await stage.perform(Stop(pod, "done"))
        (asked,) = stage.api.written("PATCH", "pods")
        assert asked.body == {"spec": {"activeDeadlineSeconds": 1}, "metadata": {"uid": "u-1"}}
        (stopped,) = await stage.pods()
        assert stopped.stopping


@pytest.mark.parametrize("code", [404, 409])
async def test_a_pod_that_is_gone_or_replaced_is_not_patched(serve: Serve, code: int) -> None:
    async with staged(serve, stored_job(), stored_pod()) as stage:
        (pod,) = await stage.pods()
        stage.api.answers["PATCH", POD] = failure(code, "x")
        await stage.perform(Stop(pod, "done"))


@pytest.mark.parametrize(("how", "grace"), [({}, None), ({"force": True}, 0), ({"grace": 2}, 2)])
async def test_a_deletion_names_the_uid_and_has_the_grace_period_of_the_plan(
    serve: Serve, how: dict[str, Any], grace: int | None
) -> None:
    async with staged(serve, stored_job(), stored_pod(uid="u-1")) as stage:
        await stage.perform(Delete(Kind.POD, "mnist-worker-0", "u-1", "", **how))
        (asked,) = stage.api.written("DELETE")
        assert asked.body["preconditions"] == {"uid": "u-1"}
        assert asked.body.get("gracePeriodSeconds") == grace
        assert await stage.pods() == (), "it was gone with the response"


ENDING = {"deletionTimestamp": "2027-01-15T08:00:30Z"}


@pytest.mark.parametrize(
    ("metadata", "force", "due"),
    [
        ({"deletionGracePeriodSeconds": 30}, False, [1_800_000_030.0]),
        ({"finalizers": ["example.com/hold"]}, True, [1_800_000_030.0]),
        ({}, True, []),
    ],
    ids=["until its kubelet has ended it", "while a finalizer keeps it, even after force", "not after force"],
)
async def test_a_pod_that_the_response_still_shows_keeps_its_name(
    serve: Serve, metadata: Object, force: bool, due: list[float]
) -> None:
    async with staged(serve, stored_job(), stored_pod(uid="u-1")) as stage:
        terminating = stage.api.put(*stored_pod(uid="u-1", **ENDING, **metadata))
        stage.api.answers["DELETE", POD] = (200, {**terminating, "kind": "Pod"})
        await stage.perform(Delete(Kind.POD, "mnist-worker-0", "u-1", "", force=force))
        assert [pod.deletion_due for pod in await stage.pods()] == due


@pytest.mark.parametrize("code", [404, 409])
async def test_what_is_gone_or_replaced_already_counts_as_deleted(serve: Serve, code: int) -> None:
    async with staged(serve, stored_job(), stored_pod(uid="u-1")) as stage:
        stage.api.answers["DELETE", POD] = failure(code, "x")
        await stage.perform(Delete(Kind.POD, "mnist-worker-0", "u-1", ""))
        assert len(await stage.pods()) == 1, "the watch tells when it is gone"


async def test_an_existing_pod_of_the_attempt_is_accepted(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.put(*stored_pod())
        await stage.perform(create_pod())
        assert len(await stage.pods()) == 1


@pytest.mark.parametrize("metadata", [{"attempt": 1}, {"attempt": 2, **ENDING}], ids=["older", "ending"])
async def test_an_existing_pod_of_another_attempt_is_waited_for(serve: Serve, metadata: Object) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.put(*stored_pod(**metadata))
        with pytest.raises(Outdated):
            await stage.perform(create_pod(attempt=2))
        assert len(await stage.pods()) == 1, "but it is known from now on"


OTHER_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "backup", "uid": "x", "controller": True}
PREVIOUS = {**OTHER_OWNER, "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "name": "mnist"}


@pytest.mark.parametrize(
    ("metadata", "reason", "message"),
    [
        ({"ownerReferences": [OTHER_OWNER]}, "NameTaken", "Pod mnist-worker-0 exists, owned by Job backup"),
        ({"ownerReferences": []}, "NameTaken", "exists, without an owner"),
        ({"ownerReferences": [PREVIOUS]}, "BeingDeleted", "owned by PaddleJob mnist"),
        ({"ownerReferences": [OTHER_OWNER], **ENDING}, "BeingDeleted", "owned by Job backup"),
        ({"labels": {}}, "NameTaken", "lacks its labels"),
    ],
)
async def test_the_pod_of_another_owner_is_never_touched(
    serve: Serve, metadata: Object, reason: str, message: str
) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.put(*stored_pod(**metadata))
        with pytest.raises(Rejected) as rejected:
            await stage.perform(create_pod())
        assert rejected.value.reason == reason
        assert message in rejected.value.message
        assert not stage.api.written("DELETE") and not stage.api.written("PATCH")


async def test_an_object_that_vanishes_while_it_is_in_the_way_is_looked_for_again(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["POST", "default/pods"] = failure(409, "AlreadyExists")
        with pytest.raises(Outdated):
            await stage.perform(create_pod())


@pytest.mark.parametrize(
    ("code", "reason", "message", "error"),
    [
        (403, "Forbidden", "exceeded quota", Rejected),
        (422, "Invalid", "spec.containers: required", Rejected),
        (400, "BadRequest", "denied the request", Rejected),
        (500, "InternalError", 'failed calling webhook "x"', Rejected),
        (404, "NotFound", "namespace not found", ApiError),
        (409, "Conflict", "being written", ApiError),
        (504, "Timeout", "no", ApiError),
    ],
)
async def test_a_rejected_object_is_remembered_and_an_error_of_the_server_itself_blames_no_job(
    serve: Serve, code: int, reason: str, message: str, error: type[Exception]
) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["POST", "default/pods"] = failure(code, reason, message)
        with pytest.raises(error, match=message) as raised:
            await stage.perform(create_pod())
        assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("code", "reason", "error"), [(403, "Forbidden", Rejected), (422, "Invalid", Rejected), (504, "Timeout", ApiError)]
)
async def test_a_policy_that_denies_a_deletion_is_a_rejection(
    serve: Serve, code: int, reason: str, error: type[Exception]
) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["DELETE", "default/pods/mnist-worker-0"] = failure(code, reason, "must not be deleted")
        with pytest.raises(error, match="must not be deleted"):
            await stage.perform(Delete(Kind.POD, "mnist-worker-0", "u", "restart 1"))


@pytest.mark.parametrize("message", ["etcdserver: request timed out", "rpc error: code = Unavailable"])
async def test_an_error_of_etcd_is_on_the_job_and_does_not_ask_to_change_it(serve: Serve, message: str) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["POST", "default/pods"] = failure(500, "", message)
        loop = Reconciler(stage.backend)
        await loop.step(KEY)
        await loop.step(KEY)
        status = (await stage.job()).status
        assert status.reason == "ApiServerError"
        assert message in status.message
        assert "The job needs no change" in status.message


async def test_a_status_is_written_over_the_one_it_was_made_from_and_seen_at_once(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        made = await stage.job()
        await stage.backend.report(made, Status(phase=Phase.PENDING, attempt=1))
        (asked,) = stage.api.written("PUT", "status")
        assert asked.body["metadata"]["resourceVersion"] == made.metadata.resourceVersion
        assert asked.body["metadata"]["uid"] == UID
        assert asked.body["status"] == {"phase": "Pending", "attempt": 1}
        assert (await stage.job()).status.attempt == 1


async def test_a_job_that_changed_meanwhile_is_read_again_and_one_that_is_gone_is_no_error(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        made = await stage.job()
        stage.api.answers["PUT", f"{JOB}/status"] = failure(404, "NotFound")
        with pytest.raises(Outdated):
            await stage.backend.report(made, Status(phase=Phase.PENDING))
        stage.api.put(*stored_job(ttlSecondsAfterFinished=7))
        stage.api.answers["PUT", f"{JOB}/status"] = failure(409, "Conflict")
        with pytest.raises(Outdated):
            await stage.backend.report(made, Status(phase=Phase.PENDING))
        assert (await stage.job()).spec.ttlSecondsAfterFinished == 7, "although the watch is silent"


async def test_a_status_that_the_server_rejects_is_an_event_on_the_job(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["PUT", f"{JOB}/status"] = failure(422, "Invalid", "spec.worker.replicas: too small")
        with pytest.raises(ApiError):
            await stage.backend.report(await stage.job(), Status(phase=Phase.PENDING))
        ((kind, reason, message),) = await stage.events()
        assert (kind, reason) == ("Warning", "StatusRejected")
        assert "spec.worker.replicas: too small" in message


@pytest.mark.parametrize(("warning", "kind"), [(True, "Warning"), (False, "Normal")])
async def test_events_are_recorded_on_the_job(serve: Serve, warning: bool, kind: str) -> None:
    async with staged(serve, stored_job()) as stage:
        await stage.perform(RecordEvent("Completed", "all done", warning))
        assert await stage.events() == [(kind, "Completed", "all done")]
        (asked,) = stage.api.written("POST", "events")
        assert asked.body["involvedObject"]["uid"] == UID
        assert asked.body["involvedObject"]["kind"] == "PaddleJob"


async def test_a_finalizer_is_removed_and_others_stay(serve: Serve) -> None:
    path, made = stored_job()
    made["metadata"]["finalizers"] = ["keep", "finalizers.paddlepaddle.org"]
    async with staged(serve, (path, made)) as stage:
        version = (await stage.job()).metadata.resourceVersion
        await stage.perform(DropFinalizer("finalizers.paddlepaddle.org"))
        (asked,) = stage.api.written("PATCH", "paddlejobs")
        assert asked.body == {"metadata": {"finalizers": ["keep"], "resourceVersion": version}}
        stage.api.answers["PATCH", JOB] = failure(409, "Conflict")
        with pytest.raises(Outdated):
            await stage.perform(DropFinalizer("finalizers.paddlepaddle.org"))
        stage.api.answers["PATCH", JOB] = failure(404, "NotFound")
        await stage.perform(DropFinalizer("finalizers.paddlepaddle.org"))


async def test_an_expired_job_is_deleted_with_its_objects_unless_it_was_replaced_meanwhile(serve: Serve) -> None:
    async with staged(serve, stored_job()) as stage:
        made = await stage.job()
        await stage.backend.perform(made, DeleteJob("ttl"))
        (asked,) = stage.api.written("DELETE")
        assert asked.body["preconditions"] == {"uid": UID}
        assert asked.body["propagationPolicy"] == "Background"
        await stage.backend.perform(made, DeleteJob("ttl"))
        stage.api.answers["DELETE", JOB] = failure(409, "Conflict")
        await stage.backend.perform(made, DeleteJob("ttl"))
        stage.api.answers["DELETE", JOB] = failure(403, "Forbidden", "a policy keeps it")
        with pytest.raises(Rejected, match="a policy keeps it"):
            await stage.backend.perform(made, DeleteJob("ttl"))


async def test_nothing_changed_nothing_is_written(serve: Serve) -> None:
    async with staged(serve, stored_job(workers=1)) as stage:
        now = time.time()
        loop = Reconciler(stage.backend, clock=lambda: now)
        for _ in range(3):
            await loop.step(KEY)
            now += 5
        before = len(stage.api.asked)
        for _ in range(5):
            await loop.step(KEY)
            now += 60
        assert stage.api.asked[before:] == []


@pytest.mark.parametrize("phase", ["Aborted", "Unknown", "Succeed"])
async def test_a_job_that_cannot_be_read_gets_an_event_with_the_remedy(serve: Serve, phase: str) -> None:
    path, made = stored_job()
    async with staged(serve, (path, made | {"status": {"phase": phase}})) as stage:
        assert await stage.backend.observe(KEY) is None
        ((kind, reason, message),) = await stage.events()
        assert (kind, reason) == ("Warning", "UnreadableJob")
        assert phase in message and "delete the job" in message


async def test_a_load_balancer_that_finds_no_pods_restarts_no_job(serve: Serve) -> None:
    """It has no backend for a moment and answers every list and watch of pods with 404."""
    async with staged(serve, stored_job(workers=1)) as stage:
        metrics, now = Metrics(), time.time()
        loop = Reconciler(stage.backend, clock=lambda: now)
        await loop.step(KEY)
        running = {"phase": "Running", "podIP": "10.0.0.1"}
        states = {"containerStatuses": [{"name": "paddle", "state": {"running": {}}}]}
        stage.informers.pods.record_write(stage.api.put(POD, stage.api.objects[POD] | {"status": running | states}))
        published = Status(phase=Phase.RUNNING, attempt=1, publishedAttempt=1, observedGeneration=1)
        await stage.backend.report(await stage.job(), published)
        before = len(stage.api.asked)
        stage.api.answers["GET", "pods"] = failure(404, "NotFound", "default backend - 404")
        stage.api.watches_end.set()
        await until(lambda: stage.informers.pods.last_error)
        for _ in range(3):
            await loop.step(KEY)
            now += 60
        assert not [one for one in stage.api.asked[before:] if one.method == "DELETE"]
        assert ((await stage.job()).status.phase, (await stage.job()).status.attempt) == (Phase.RUNNING, 1)
        with metrics.collecting(stage.informers, KeyedQueue(), stage.recorder):
            exposed = generate_latest(metrics.registry)
        assert b'paddlejob_informer_failing_seconds{resource="pods"}' in exposed
        assert b'paddlejob_informer_errors_total{resource="pods"}' in exposed


def node(status: str, *taints: str) -> tuple[str, Object]:
    spec = {"taints": [{"key": taint, "effect": "NoExecute"} for taint in taints]}
    return "nodes/node-1", {"spec": spec, "status": {"conditions": [{"type": "Ready", "status": status}]}}


@pytest.mark.parametrize(
    ("nodes", "state"),
    [
        ([node("True")], NodeState.READY),
        ([node("False")], NodeState.NOT_READY),
        ([node("Unknown")], NodeState.UNREACHABLE),
        ([node("True", "node.kubernetes.io/out-of-service")], NodeState.GONE),
        ([node("True", "dedicated")], NodeState.READY),
        ([], NodeState.GONE),
    ],
)
async def test_the_node_of_a_pod_that_should_be_gone_is_looked_at(
    serve: Serve, nodes: list[tuple[str, Object]], state: NodeState
) -> None:
    overdue = stored_pod(deletionTimestamp=times.format(time.time() - 60))
    async with staged(serve, stored_job(), overdue, *nodes) as stage:
        assert (await stage.view()).world.nodes == {"node-1": state}


async def test_without_permission_to_read_nodes_the_clock_decides_and_the_log_says_so_once(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.operator.nodes.REMEMBERED_SECONDS", 0.0)
    overdue = stored_pod(deletionTimestamp=times.format(time.time() - 60))
    async with staged(serve, stored_job(), overdue, node("True")) as stage:
        stage.api.answers["GET", "nodes/node-1"] = failure(403, "Forbidden", "nodes is forbidden")
        for _ in range(3):
            assert (await stage.view()).world.nodes == {}
        assert caplog.text.count("without checking the node") == 1
        stage.api.answers["GET", "nodes/node-1"] = failure(500, "InternalError")
        assert (await stage.view()).world.nodes == {"node-1": NodeState.READY}, "no error is a reason for force"


async def test_nodes_of_pods_that_end_in_time_are_not_read(serve: Serve) -> None:
    ending = stored_pod(deletionTimestamp=times.format(time.time() + 30))
    async with staged(serve, stored_job(), ending, node("True")) as stage:
        assert (await stage.view()).world.nodes == {}


async def test_the_node_of_a_pod_that_kubernetes_gave_up_is_read_at_once(serve: Serve) -> None:
    lost = stored_pod(deletionTimestamp=times.format(time.time() + 30))
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    lost[1]["status"]["conditions"] = [condition]
    async with staged(serve, stored_job(), lost, node("Unknown")) as stage:
        assert (await stage.view()).world.nodes == {"node-1": NodeState.UNREACHABLE}


async def test_a_node_is_read_once_in_a_while_and_not_more(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    api = ScriptedCluster(node("True"))
    async with Client(await serve(api.respond)) as client:
        nodes = Nodes(client)
        assert await nodes.states(["node-1", "node-1"]) == {"node-1": NodeState.READY}
        api.put(*node("False"))
        assert await nodes.states(["node-1"]) == {"node-1": NodeState.READY}, "as remembered"
        monkeypatch.setattr("paddlejob.operator.nodes.REMEMBERED_SECONDS", 0.0)
        assert await nodes.states(["node-1"]) == {"node-1": NodeState.NOT_READY}


async def test_services_and_environments_are_created_and_deleted_like_pods(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        job = await stage.job()
        for kind, path in ((Kind.SERVICE, "services"), (Kind.ENVIRONMENT, "configmaps"), (Kind.POD_GROUP, "podgroups")):
            about = {"name": "one", "namespace": "default", "ownerReferences": [], "labels": {}}
            await stage.backend.perform(job, Create(kind, "one", {"metadata": about}))
            assert f"default/{path}/one" in stage.api.objects
            await stage.backend.perform(job, Delete(kind, "one", "", "a test"))
            assert f"default/{path}/one" not in stage.api.objects


async def test_whether_gangs_can_be_scheduled_is_whether_pod_groups_are_served(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        for absent in (False, True):
            stage.informers.pod_groups.absent = absent
            assert (await stage.view()).world.gang_scheduler is not absent
