"""A process never takes itself for the leader because a request failed, and does not renew in a tight loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from paddlejob.kube.client import Client
from paddlejob.kube.kubeconfig import from_kubeconfig
from paddlejob.kube.leader_election import LeaderElector

from .conftest import Serve
from .test_lease import Clock, LeaseServer, elector, until


@pytest.mark.parametrize("known", [False, True])
async def test_a_server_that_fails_makes_no_leader(serve: Serve, known: bool):
    server = LeaseServer()
    if known:
        server.held_by("b", leaseDurationSeconds=3600)
    server.down = True
    async with Client(await serve(server.handle)) as client:
        mine = elector(client, Clock())
        assert not await mine._try_acquire_or_renew()
        assert not mine.is_leader()
        waiting = asyncio.create_task(mine.__aenter__())
        await asyncio.sleep(0.3)
        assert not waiting.done()
        server.down = False
        if known:
            server.held_by("")
        await until(waiting.done)
        assert mine.is_leader()
        await mine.__aexit__(None, None, None)


async def test_a_failed_renewal_does_not_extend_the_lease(serve: Serve):
    server, clock = LeaseServer(), Clock()
    async with Client(await serve(server.handle)) as client, elector(client, clock) as mine:
        server.down = True
        until_ = mine._leader_until
        clock.now += 1
        assert not await mine._try_acquire_or_renew()
        assert mine._leader_until == until_
        server.down = False


async def test_a_lease_is_renewed_once_per_period(serve: Serve):
    server = LeaseServer()
    seconds = {"lease_duration": 9000.0, "renew_deadline": 6000.0, "retry_period": 3000.0}
    async with Client(await serve(server.handle)) as client:
        async with LeaderElector(client, "system", "operator", "a", **seconds) as mine:
            await asyncio.sleep(0.2)
            assert mine.is_leader()
            assert len(server.writes) == 1
        assert server.writes[-1]["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("server", "proxied"),
    [
        ("https://localhost:6443", False),
        ("https://127.0.0.2:6443", False),
        ("https://[::1]:6443", False),
        ("https://api.test:6443", True),
    ],
)
def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, proxied: bool
):
    for name in ("no_proxy", "NO_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    config = {
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": server}}],
        "users": [{"name": "one", "user": {}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    assert from_kubeconfig(str(tmp_path / "config")).proxy == ("http://proxy.test:3128" if proxied else None)
