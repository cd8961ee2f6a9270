"""The operator as one process against a scripted API server: it leads, watches, reconciles, serves, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import aiohttp
import pytest

from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, NotLeader, NotPossible
from paddlejob.kube.access import Access
from paddlejob.kube.loop_thread import LoopThread
from paddlejob.operator import main
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.health import Health, serving
from paddlejob.operator.informers import Informers
from paddlejob.operator.log_format import set_up_logs
from paddlejob.operator.main import IDENTITY, Options
from paddlejob.operator.manifests import LEASE_NAME
from paddlejob.operator.metrics import Metrics
from tests.support.operator_process import free_port
from tests.support.scripted_cluster import Handler, Object, ScriptedCluster, Serve, failure
from tests.support.serving import served
from tests.support.waiting import until
from tests.unit.operator.stage import stored_job

LEASE = f"default/leases/{LEASE_NAME}"


def lease(holder: str) -> tuple[str, Object]:
    return LEASE, {
        "metadata": {"namespace": "default"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600},
    }


class Operator:
    def __init__(self, api: ScriptedCluster, task: asyncio.Task[None], options: Options) -> None:
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
    api = ScriptedCluster(*objects)
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


async def test_the_lease_is_renewed_while_the_loop_of_the_operator_is_busy():
    async with contextlib.AsyncExitStack() as stack:
        elsewhere = stack.enter_context(LoopThread())

        def serve(handler: Handler) -> Awaitable[Access]:
            return elsewhere.enter(stack, served(handler))

        async with operating(serve, stored_job(workers=1), leader_elect=True, lease_seconds=3.0) as operator:
            await until(lambda: operator.api.written("POST", "default/pods"))
            before = operator.api.objects[LEASE]["spec"]["renewTime"]
            time.sleep(2.5)  # noqa: ASYNC251
            assert operator.api.objects[LEASE]["spec"]["renewTime"] > before


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


@pytest.mark.parametrize(
    ("error", "logged"),
    [(KeyError("uid"), "KeyError: 'uid'"), (NotLeader("not sent"), "")],
    ids=["unexpected", "a lost lease is logged once, not per job"],
)
async def test_an_error_that_the_client_does_not_know_is_logged_with_its_traceback(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, logged: str
):
    tries: list[Key] = []

    async def broken(self: KubeBackend, key: Key) -> None:
        tries.append(key)
        raise error

    monkeypatch.setattr(KubeBackend, "observe", broken)
    async with operating(serve, stored_job(workers=1)):
        await until(lambda: len(tries) > 1)
    assert ("job default/mnist: unexpected error; retrying" in caplog.text) is bool(logged)
    assert logged in caplog.text


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


async def test_events_about_a_job_reach_the_api_server(serve: Serve):
    """A job that is too large for any environment is failed with an event."""
    async with operating(serve, stored_job(workers=9_000)) as operator:
        await until(lambda: operator.api.written("POST", "events"), 60)
        event = operator.api.written("POST", "events")[0].body
    assert (event["involvedObject"]["name"], event["type"]) == ("mnist", "Warning")


async def test_a_job_is_looked_at_again_when_its_plan_wants_it(serve: Serve):
    """Nothing changes: only the clock makes the deadline pass."""
    path, made = stored_job(workers=1, activeDeadlineSeconds=1)
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made["status"] = {"phase": "Pending", "attempt": 1, "startTime": began}
    async with operating(serve, (path, made)) as operator:
        await until(lambda: operator.api.objects[path].get("status", {}).get("reason") == "DeadlineExceeded")


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
