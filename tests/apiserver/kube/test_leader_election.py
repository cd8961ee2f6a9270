"""Leader election on a real API server, with real processes where they are stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from paddlejob.errors import NotLeader
from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector
from paddlejob.kube.resource import CONFIGMAPS, LEASES
from paddlejob.kube.server_clock import steady_clock
from tests.support.waiting import until

from .conftest import ControlPlane
from .support import LONG, background, configmap

QUICK = {"lease_duration": 4.0, "renew_deadline": 2.5, "retry_period": 0.3}


async def test_the_first_leads_and_the_second_waits_until_the_lease_is_released(client: Client, namespace: str) -> None:
    order: list[str] = []

    async def second() -> None:
        async with LeaderElector(client, namespace, "op", "second", **QUICK) as elector:
            order.append("second leads")
            assert elector.is_leader()
            await asyncio.sleep(3600)

    first = LeaderElector(client, namespace, "op", "first", **QUICK)
    async with asyncio.timeout(LONG), first, background(second()):
        await asyncio.sleep(QUICK["lease_duration"] + 1)
        assert first.is_leader(), "it is renewed while it is in use"
        assert order == []
        await first.__aexit__(None, None, None)
        holder = (await client.get(LEASES, "op", namespace))["spec"].get("holderIdentity")
        assert holder != "first", "it is released and need not expire"
        await until(lambda: order)
    record = (await client.get(LEASES, "op", namespace))["spec"]
    assert record["leaseTransitions"] == 1


async def test_a_lease_that_is_not_released_is_taken_after_it_expires(client: Client, namespace: str) -> None:
    spec = {"holderIdentity": "first", "leaseDurationSeconds": round(QUICK["lease_duration"])}
    await client.create(LEASES, {"metadata": {"name": "op", "namespace": namespace}, "spec": spec})
    begun = time.monotonic()
    async with asyncio.timeout(LONG), LeaderElector(client, namespace, "op", "second", **QUICK) as second:
        assert time.monotonic() - begun >= QUICK["lease_duration"] - 0.5
        assert second.is_leader()


async def test_a_leader_that_cannot_renew_stops_writing_after_the_deadline(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    elector = LeaderElector(client, namespace, "op", "only", **QUICK)
    async with elector, Client(client.access, may_write=elector.is_leader) as fenced:
        await fenced.create(CONFIGMAPS, configmap("before", namespace))
        await asyncio.to_thread(control_plane.kill_apiserver)
        try:
            async with asyncio.timeout(LONG):
                await elector.lost()
        finally:
            await asyncio.to_thread(control_plane.start_apiserver)
        assert not elector.is_leader()
        with pytest.raises(NotLeader):
            await fenced.create(CONFIGMAPS, configmap("after", namespace))
    assert len(await client.list(CONFIGMAPS, namespace, label_selector="app=test")) == 1


LEADER = """
import asyncio, itertools, sys
from paddlejob.errors import NotLeader
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.leader_election import LeaderElector
from paddlejob.kube.resource import CONFIGMAPS

async def main(namespace):
    access = find_access()
    async with Client(access) as plain:
        quick = {"lease_duration": 4.0, "renew_deadline": 2.5, "retry_period": 0.3}
        elector = LeaderElector(plain, namespace, "op", "child", **quick)
        async with elector, Client(access, may_write=elector.is_leader) as fenced:
            try:
                for number in itertools.count():
                    await fenced.patch(CONFIGMAPS, "work", namespace, {"data": {"child": str(number)}})
                    print(number, flush=True)
                    await asyncio.sleep(0.05)
            except NotLeader:
                print("deposed", flush=True)
            await elector.lost()
            print("lost", flush=True)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_leader_that_was_suspended_writes_nothing_after_it_resumes(
    client: Client, namespace: str, kubeconfig: Path
) -> None:
    await client.create(CONFIGMAPS, configmap("work", namespace))
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        LEADER,
        namespace,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(LONG):
            for _ in range(3):
                assert (await child.stdout.readline()).strip().isdigit()
            os.kill(child.pid, signal.SIGSTOP)
            async with LeaderElector(client, namespace, "op", "successor", **QUICK) as elector:
                taken = await client.patch(CONFIGMAPS, "work", namespace, {"data": {"successor": "1"}})
                os.kill(child.pid, signal.SIGCONT)
                output = (await child.stdout.read()).decode().split()
                assert output[-2:] == ["deposed", "lost"]
                assert elector.is_leader(), "the resumed process does not take it back"
        now = await client.get(CONFIGMAPS, "work", namespace)
        assert now["metadata"]["resourceVersion"] == taken["metadata"]["resourceVersion"]
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def test_the_clock_advances_while_the_process_is_stopped() -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        before = steady_clock()
        os.kill(os.getpid(), signal.SIGSTOP)
        os.write(writer, f"{steady_clock() - before}".encode())
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    time.sleep(1.0)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    assert float(os.read(reader, 100)) >= 1.0
