"""The operator as one process against a scripted API server: it leads, watches, reconciles, serves, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest

from paddlejob import contract
from paddlejob.engine.queue import KeyedQueue
from paddlejob.errors import BadInput, NotLeader, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES
from paddlejob.objects.resources import PADDLEJOBS, POD_GROUPS
from paddlejob.operator import main
from paddlejob.operator.health import Health, serving
from paddlejob.operator.informers import Informers
from paddlejob.operator.logs import set_up_logs
from paddlejob.operator.main import IDENTITY, Options
from paddlejob.operator.manifests import LEASE_NAME
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.nodes import Nodes
from paddlejob.plan import Create, Delete, DeleteJob, Kind
from paddlejob.plan.world import NodeState
from tests.support.operator_process import free_port
from tests.support.scripted_api import Object, ScriptedApi, failure
from tests.unit.kube.conftest import Serve, serve
from tests.unit.operator.test_backend import KEY, UID, node, staged, stored_job, stored_pod

__all__ = ["serve"]

LEASE = f"default/leases/{LEASE_NAME}"


def lease(holder: str) -> tuple[str, Object]:
    return LEASE, {
        "metadata": {"namespace": "default"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600},
    }


class Operator:
    def __init__(self, api: ScriptedApi, task: asyncio.Task[None], options: Options) -> None:
        self.api = api
        self.task = task
        self.options = options

    async def get(self, address: str, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1{address}{path}") as response:
            return response.status, await response.text()

    async def metric(self, name: str) -> float | None:
        _, text = await self.get(self.options.metrics, "/metrics")
        lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(lines[0][2]) if lines else None

    async def jobs(self) -> list[str]:
        """How many jobs are counted in each phase that has any."""
        _, text = await self.get(self.options.metrics, "/metrics")
        counts = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("paddlejob_jobs{")]
        return [count for count in counts if count != "0.0"]


@contextlib.asynccontextmanager
async def operating(serve: Serve, *objects: tuple[str, Object], **more: Any) -> AsyncIterator[Operator]:
    api = ScriptedApi(*objects)
    options = Options(**{"metrics": f":{free_port()}", "probes": f":{free_port()}", **more})
    access = await serve(api.respond)
    task = asyncio.create_task(main.run(access, options))
    try:
        yield Operator(api, task, options)
    finally:
        if not task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await task


@pytest.fixture
def handlers_of_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_job_gets_its_pods_and_the_endpoints_tell_how_the_operator_is(serve: Serve):
    async with operating(serve, stored_job(workers=2)) as operator:
        await until(lambda: len(operator.api.written("POST", "default/pods")) == 2)
        assert await operator.get(operator.options.probes, "/healthz") == (200, "ok")
        assert await operator.get(operator.options.probes, "/readyz") == (200, "ok")
        assert await operator.jobs() == ["1.0"]
        assert await operator.metric("paddlejob_reconcile_errors_total") == 0
        assert await operator.metric("paddlejob_leader") == 1
        assert (await operator.metric("paddlejob_reconcile_seconds_count") or 0) > 0
        assert (await operator.metric("paddlejob_queue_wait_seconds_count") or 0) > 0
        assert await operator.metric("paddlejob_queue_depth") in (0, 1)
        request = 'paddlejob_api_requests_total{code="201",resource="pods",verb="create"}'
        assert await operator.metric(request) == 2
    assert not operator.api.written("POST", "leases"), "without leader election there is no lease"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_operator_and_the_lease_is_free_at_once(serve: Serve, number: signal.Signals):
    async with operating(serve, stored_job(workers=1), leader_elect=True) as operator:
        await until(lambda: operator.api.written("POST", "default/pods"))
        assert operator.api.objects[LEASE]["spec"]["holderIdentity"] == IDENTITY
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):
            await operator.task
        assert operator.api.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_the_lease_is_in_the_namespace_of_the_option_and_lasts_as_long_as_it_says(serve: Serve):
    options = {"leader_elect": True, "leader_namespace": "system", "lease_seconds": 30.0}
    async with operating(serve, **options) as operator:
        await until(lambda: f"system/leases/{LEASE_NAME}" in operator.api.objects)
        assert operator.api.objects[f"system/leases/{LEASE_NAME}"]["spec"]["leaseDurationSeconds"] == 30


async def test_on_standby_nothing_is_reconciled_and_the_operator_is_ready(serve: Serve):
    async with operating(serve, stored_job(), lease("another"), leader_elect=True, lease_seconds=1.5) as operator:
        await asyncio.sleep(0.5)
        assert not operator.api.written("POST")
        assert await operator.metric("paddlejob_leader") == 0
        assert await operator.jobs() == []
        assert await operator.get(operator.options.probes, "/readyz") == (200, "ok")
        operator.api.put(*lease(""))
        await until(lambda: operator.api.written("POST", "default/pods"))


async def test_on_standby_metrics_are_served_to_whom_the_api_server_permits_to_read_them(serve: Serve):
    options = {"leader_elect": True, "metrics": f"127.0.0.1:{free_port()}", "metrics_auth": True}
    async with operating(serve, lease("another"), **options) as operator:
        operator.api.answers["POST", "tokenreviews"] = (
            201,
            {"status": {"authenticated": True, "user": {"username": "prometheus"}}},
        )
        operator.api.answers["POST", "subjectaccessreviews"] = 201, {"status": {"allowed": True}}
        url = f"http://{operator.options.metrics}/metrics"

        async def scraped(**headers: str) -> tuple[int, str]:
            async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
                return response.status, await response.text()

        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(aiohttp.ClientConnectorError):
                    assert (await scraped())[0] == 401
                    break
                await asyncio.sleep(0.01)
        code, text = await scraped(Authorization="Bearer good")
        assert code == 200
        assert "paddlejob_leader 0.0" in text
        assert 'paddlejob_api_requests_total{code="201",resource="tokenreviews",verb="create"} 1.0' in text


async def test_after_a_lost_lease_the_operator_stands_by_and_leads_again(serve: Serve):
    async with operating(serve, stored_job(workers=1), leader_elect=True, lease_seconds=1.5) as operator:
        await until(lambda: operator.api.written("POST", "default/pods"))
        operator.api.put(*lease("another"))
        await asyncio.sleep(1.2)
        del operator.api.objects["default/pods/mnist-worker-0"]
        before = len(operator.api.written("POST", "default/pods"))
        operator.api.put(*lease(""))
        await until(lambda: len(operator.api.written("POST", "default/pods")) > before)
        assert await operator.get(operator.options.probes, "/readyz") == (200, "ok")
        assert await operator.jobs() == ["1.0"], "counted once, from the informers of now"


async def test_a_failed_reconciliation_is_counted_logged_and_tried_again(
    serve: Serve, caplog: pytest.LogCaptureFixture
):
    async with operating(serve, stored_job(workers=1)) as operator:
        operator.api.answers["PUT", "default/paddlejobs/mnist/status"] = failure(504, "Timeout", "try again")
        await until(lambda: "job default/mnist: " in caplog.text)
        assert (await operator.metric("paddlejob_reconcile_errors_total") or 0) > 0
        del operator.api.answers["PUT", "default/paddlejobs/mnist/status"]
        await until(lambda: operator.api.written("POST", "default/pods"))


async def test_a_line_of_the_log_about_a_job_has_its_namespace_name_and_attempt_as_fields(
    serve: Serve, capsys: pytest.CaptureFixture[str], handlers_of_before: None
):
    set_up_logs("json")
    seen: list[Object] = []

    def failed() -> list[Object]:
        seen.extend(json.loads(line) for line in capsys.readouterr().err.splitlines())
        return [one for one in seen if one["message"].startswith("job default/mnist: ")]

    async with operating(serve, stored_job(workers=1)) as operator:
        operator.api.answers["PUT", "default/paddlejobs/mnist/status"] = failure(504, "Timeout", "try again")
        await until(failed)
    line = failed()[0]
    assert (line["namespace"], line["job"], line["attempt"]) == ("default", "mnist", 1)
    (watching,) = [one for one in seen if one["message"].startswith("watching")]
    assert "job" not in watching


def test_an_error_that_the_client_does_not_know_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture):
    failed = main._on_failure(Metrics())
    try:
        raise KeyError("uid")
    except KeyError as error:
        failed(KEY, error)
    assert "job default/mnist: unexpected error; retrying" in caplog.text
    assert "KeyError: 'uid'" in caplog.text
    caplog.clear()
    failed(KEY, NotLeader("not sent"))
    assert caplog.text == "", "a lost lease is logged once, not per job"


async def test_an_error_that_ends_the_operator_is_in_its_log_with_the_traceback(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], handlers_of_before: None
):
    async def broken(self: Informers) -> None:
        raise KeyError("items")

    set_up_logs("json")
    monkeypatch.setattr(Informers, "run", broken)
    with pytest.raises(ExceptionGroup):
        async with operating(serve) as operator:
            await until(operator.task.done)
    (line,) = [one for one in map(json.loads, capsys.readouterr().err.splitlines()) if "error" in one]
    assert line["message"] == "unexpected error; the operator ends"
    assert "KeyError: 'items'" in line["error"]


async def test_a_job_is_looked_at_again_when_its_plan_wants_it(serve: Serve):
    """Nothing changes: only the clock makes the deadline pass."""
    path, made = stored_job(workers=1, activeDeadlineSeconds=1)
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made["status"] = {"phase": "Pending", "attempt": 1, "startTime": began}
    async with operating(serve, (path, made)) as operator:

        def reason() -> str:
            return str(operator.api.objects[path].get("status", {}).get("reason"))

        await until(lambda: reason() == "DeadlineExceeded")


async def test_an_address_of_0_serves_nothing_and_others_must_be_addresses(serve: Serve):
    registry = Metrics().registry
    async with serving(Health(), registry, "0", "0"):
        pass
    with pytest.raises(BadInput, match="not an address; use HOST:PORT"):
        async with serving(Health(), registry, "0", "localhost"):
            pass


async def test_an_address_in_use_is_an_error_with_the_remedy(serve: Serve):
    registry = Metrics().registry
    port = free_port()
    async with serving(Health(), registry, f"127.0.0.1:{port}", "0"):
        with pytest.raises(NotPossible, match=f"cannot listen on 127.0.0.1:{port}: .*; choose another address"):
            async with serving(Health(), registry, "0", f"127.0.0.1:{port}"):
                pass
    async with (
        serving(Health(), registry, f"[::1]:{port}", "0"),
        aiohttp.ClientSession() as session,
        session.get(f"http://[::1]:{port}/metrics") as response,
    ):
        assert response.status == 200


async def test_an_operator_that_is_not_well_says_so_to_its_probes(serve: Serve):
    health, port = Health(), free_port()
    health.standby = False
    health.last_contact = lambda: -1e9
    async with serving(health, Metrics().registry, "0", f":{port}"), aiohttp.ClientSession() as session:

        async def probe(path: str) -> tuple[int, str]:
            async with session.get(f"http://127.0.0.1:{port}/{path}") as response:
                return response.status, await response.text()

        assert await probe("readyz") == (503, "the informers have not synced yet")
        health.synced = True
        assert await probe("healthz") == (503, "no response from the API server for ten minutes")


CREATED = {"creationTimestamp": "2027-01-15T08:00:00Z"}


def owned(kind: str) -> Object:
    pod = stored_pod()[1]
    return {**pod, "kind": kind, "metadata": {**pod["metadata"], "uid": "u-1", "resourceVersion": "900", **CREATED}}


async def test_a_change_of_a_job_or_of_what_it_owns_is_a_change_of_the_job(serve: Serve):
    async with staged(serve) as stage:
        keys: list[tuple[str, str]] = []
        stage.informers.enqueue_changes(keys.append)

        def changed() -> list[tuple[str, str]]:
            taken = list(keys)
            keys.clear()
            return taken

        job = {**stored_job()[1]}
        job["metadata"] = {**job["metadata"], "resourceVersion": "900"}
        stage.informers.record_write(PADDLEJOBS, job)
        assert changed() == [KEY]
        stage.informers.record_delete(PADDLEJOBS, "default", "mnist", UID)
        assert changed() == [KEY], "also that it is gone"
        for resource in (PODS, SERVICES):
            one = owned(resource.kind)
            stage.informers.record_write(resource, one)
            assert changed() == [KEY]
            stage.informers.record_delete(resource, "default", one["metadata"]["name"], "u-1")
            assert changed() == [KEY]
        environment = {**owned("ConfigMap"), "data": {}}
        stage.informers.record_write(CONFIGMAPS, environment)
        assert changed() == [KEY]


def pod_group(name: str, **metadata: Any) -> Object:
    about = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "900", **metadata}
    return {"kind": "PodGroup", "metadata": about, "status": {"phase": "Running"}}


async def test_a_pod_group_of_the_user_belongs_to_the_job_of_its_name(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        keys: list[tuple[str, str]] = []
        stage.informers.enqueue_changes(keys.append)
        stage.informers.record_write(POD_GROUPS, pod_group("mnist"))
        assert keys == [KEY]
        view = await stage.backend.observe(KEY)
        assert view is not None
        (group,) = view.world.pod_groups
        assert (group.name, group.owned, group.phase) == ("mnist", False, "Running")
        reference = stored_pod()[1]["metadata"]["ownerReferences"]
        stage.informers.record_write(POD_GROUPS, pod_group("mnist", ownerReferences=reference, resourceVersion="901"))
        view = await stage.backend.observe(KEY)
        assert view is not None
        assert [one.owned for one in view.world.pod_groups] == [True], "and it is one, however it is found"
        stage.informers.record_delete(POD_GROUPS, "default", "mnist", "uid-mnist")
        assert keys[-1] == KEY
        labelled = pod_group("of-another-name", labels={contract.LABEL_JOB: "mnist"})
        stage.informers.record_write(POD_GROUPS, labelled)
        assert keys[-1] == KEY, "its label says whose it is"


async def test_the_last_contact_is_that_of_any_informer_and_those_that_fail_are_named(serve: Serve):
    async with staged(serve) as stage:
        stage.informers.services.last_contact = 1e12
        assert stage.informers.last_contact == 1e12
        assert stage.informers.failing == {}
        stage.informers.services.failing_since = time.monotonic() - 50
        ((resource, seconds),) = stage.informers.failing.items()
        assert resource == SERVICES
        assert 49 < seconds < 1000


async def test_jobs_are_counted_by_phase_also_those_that_are_new_or_unreadable(serve: Serve):
    jobs = []
    for name, status in (("a", {}), ("b", {"phase": "Running"}), ("c", {"phase": "Running"}), ("d", {"phase": "Odd"})):
        made = stored_job()[1]
        jobs.append((f"default/paddlejobs/{name}", {**made, "metadata": {"namespace": "default"}, "status": status}))
    async with staged(serve, *jobs) as stage:
        metrics = Metrics()
        queue: KeyedQueue[Any] = KeyedQueue()
        queue.add_after(KEY, 3600)
        with metrics.collecting(Informers(stage.client, None), queue, stage.recorder):
            assert 'paddlejob_jobs{phase="Running"} 0.0' in generate_latest(metrics.registry).decode()
        with metrics.collecting(stage.informers, queue, stage.recorder):
            text = generate_latest(metrics.registry).decode()
        counted = [line for line in text.splitlines() if line.startswith(("paddlejob_jobs{", "paddlejob_queue_depth "))]
        assert counted == [
            'paddlejob_jobs{phase="Pending"} 0.0',
            'paddlejob_jobs{phase="Starting"} 0.0',
            'paddlejob_jobs{phase="Running"} 2.0',
            'paddlejob_jobs{phase="Restarting"} 0.0',
            'paddlejob_jobs{phase="Suspended"} 0.0',
            'paddlejob_jobs{phase="Completed"} 0.0',
            'paddlejob_jobs{phase="Failed"} 0.0',
            'paddlejob_jobs{phase="Unseen"} 1.0',
            'paddlejob_jobs{phase="Unreadable"} 1.0',
            "paddlejob_queue_depth 1.0",
        ]
        assert "paddlejob_jobs" not in generate_latest(metrics.registry).decode(), "not after the term as leader"


async def test_a_node_is_read_once_in_a_while_and_not_more(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    api = ScriptedApi(node("True"))
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


async def test_a_job_that_was_replaced_meanwhile_is_not_deleted(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        stage.api.answers["DELETE", "default/paddlejobs/mnist"] = failure(409, "Conflict")
        await stage.backend.perform(await stage.job(), DeleteJob("ttl"))


async def test_whether_gangs_can_be_scheduled_is_whether_pod_groups_are_served(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        for absent in (False, True):
            stage.informers.pod_groups.absent = absent
            view = await stage.backend.observe(KEY)
            assert view is not None
            assert view.world.gang_scheduler is not absent
