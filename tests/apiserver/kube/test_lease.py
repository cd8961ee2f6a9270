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
from paddlejob.kube.lease import Lease, steady_clock
from paddlejob.kube.resource import CONFIGMAPS, LEASES

from .conftest import ControlPlane
from .support import LONG, background, configmap, until

QUICK = {"lease_seconds": 4.0, "renew_deadline": 2.5, "retry": 0.3}


async def test_the_first_leads_and_the_second_waits_until_it_is_given_back(client: Client, namespace: str) -> None:
    order: list[str] = []

    async def second() -> None:
        async with Lease(client, namespace, "op", "second", **QUICK) as lease:
            order.append("second leads")
            assert lease.held()
            await asyncio.sleep(3600)

    first = Lease(client, namespace, "op", "first", **QUICK)
    async with asyncio.timeout(LONG), first, background(second()):
        await asyncio.sleep(QUICK["lease_seconds"] + 1)
        assert first.held(), "it is renewed for as long as it is wanted"
        assert order == []
        await first.__aexit__(None, None, None)
        holder = (await client.get(LEASES, "op", namespace))["spec"].get("holderIdentity")
        assert holder != "first", "it is given back, and need not run out"
        await until(lambda: order)
    record = (await client.get(LEASES, "op", namespace))["spec"]
    assert record["leaseTransitions"] == 1


async def test_a_lease_that_is_left_without_a_word_is_taken_when_it_has_run_out(client: Client, namespace: str) -> None:
    first = Lease(client, namespace, "op", "first", **QUICK)
    assert await first._attempt()
    begun = time.monotonic()
    async with asyncio.timeout(LONG), Lease(client, namespace, "op", "second", **QUICK) as second:
        assert time.monotonic() - begun >= QUICK["lease_seconds"] - 0.5
        assert second.held()
        assert not first.held()


async def test_who_cannot_renew_is_no_leader_after_the_deadline_and_sends_nothing(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    lease = Lease(client, namespace, "op", "only", **QUICK)
    async with lease, Client(client.access, may_write=lease.held) as fenced:
        await fenced.create(CONFIGMAPS, configmap("before", namespace))
        await asyncio.to_thread(control_plane.kill_apiserver)
        try:
            async with asyncio.timeout(LONG):
                await lease.lost()
        finally:
            await asyncio.to_thread(control_plane.start_apiserver)
        assert not lease.held()
        with pytest.raises(NotLeader):
            await fenced.create(CONFIGMAPS, configmap("after", namespace))
    assert len(await client.list(CONFIGMAPS, namespace, label_selector="app=test")) == 1


LEADER = """
import asyncio, itertools, sys
from paddlejob.errors import NotLeader
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.lease import Lease
from paddlejob.kube.resource import CONFIGMAPS

async def main(namespace):
    access = find_access()
    async with Client(access) as plain:
        lease = Lease(plain, namespace, "op", "child", lease_seconds=4.0, renew_deadline=2.5, retry=0.3)
        async with lease, Client(access, may_write=lease.held) as fenced:
            try:
                for number in itertools.count():
                    await fenced.patch(CONFIGMAPS, "work", namespace, {"data": {"child": str(number)}})
                    print(number, flush=True)
                    await asyncio.sleep(0.05)
            except NotLeader:
                print("deposed", flush=True)
            await lease.lost()
            print("lost", flush=True)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_leader_that_was_frozen_writes_nothing_after_it_wakes(
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
            async with Lease(client, namespace, "op", "successor", **QUICK) as lease:
                taken = await client.patch(CONFIGMAPS, "work", namespace, {"data": {"successor": "1"}})
                os.kill(child.pid, signal.SIGCONT)
                said = (await child.stdout.read()).decode().split()
                assert said[-2:] == ["deposed", "lost"]
                assert lease.held(), "the one that woke does not take it back"
        now = await client.get(CONFIGMAPS, "work", namespace)
        assert now["metadata"]["resourceVersion"] == taken["metadata"]["resourceVersion"]
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def test_the_clock_goes_on_while_the_process_is_stopped() -> None:
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
