"""Observing a job has no side effects: nothing changes on disk, no port is taken, no process is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.engine.backend import Key, Outdated, View
from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.state.store import Store
from paddlejob.plan import PodPhase, plan
from tests.support.builders import NOON, document, template

MACHINE = Machine("laptop", cpus=4, memory=8 << 30)


class Bench:
    """An engine that is not running: nothing happens but what a test asks for."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.engine = LocalEngine(Store(root), MACHINE, clock=lambda: NOON)
        folder, lock = self.engine.store.begin(document("mnist", **options), RunOptions(), NOON)
        self.engine.adopt(folder, lock)
        self.key: Key = folder.key
        self.objects = self.engine.backend.kubelets[folder.key].objects

    async def observe(self) -> View:
        view = await self.engine.backend.observe(self.key)
        assert view is not None
        return view

    async def create_pods(self) -> None:
        view = await self.observe()
        for action in plan(view.job, view.world, NOON).actions:
            await self.engine.backend.perform(view.job, action)

    def everything(self) -> dict[str, Any]:
        """Files with their times and sizes, open descriptors (sockets are among them), and child processes."""
        paths = [self.root, *self.root.rglob("*")]
        files = {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}
        return {"files": files, "open": _open_descriptors(), "processes": descendants(os.getpid())}


def _open_descriptors() -> set[str]:
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(descriptor.readlink()))
        except FileNotFoundError:
            continue  # the one that lists the directory
    return {one for one in found if not one.startswith("/proc/")}


async def test_observing_a_new_job_twice_changes_nothing(tmp_path: Path):
    bench = Bench(tmp_path)
    before = bench.everything()
    first, second = await bench.observe(), await bench.observe()
    assert first == second
    assert bench.everything() == before
    assert bench.objects.allocation.port is None


async def test_observing_pods_that_were_just_created_does_not_schedule_them(tmp_path: Path):
    bench = Bench(tmp_path, worker_={"template": template(resources={"limits": {"cpu": 1}})})
    bench.objects.allocation.ports = PortBlock()
    await bench.create_pods()
    before = bench.everything()
    view = await bench.observe()
    assert await bench.observe() == view
    assert bench.everything() == before
    assert [(pod.phase, pod.address, pod.node) for pod in view.world.pods] == [(PodPhase.PENDING, "", "")] * 2
    bench.objects.allocation.clear()


async def test_the_view_carries_the_port_once_it_is_reserved_and_the_stored_job_does_not(tmp_path: Path):
    bench = Bench(tmp_path)
    assert contract.ANNOTATION_PORT not in (await bench.observe()).job.metadata.annotations
    bench.objects.allocation.ports = PortBlock()
    view = await bench.observe()
    assert view.job.metadata.annotations[contract.ANNOTATION_PORT] == str(bench.objects.allocation.port)
    stored = bench.objects.folder.job()
    assert stored is not None
    assert contract.ANNOTATION_PORT not in stored.metadata.annotations
    bench.objects.allocation.clear()


async def test_no_pod_is_created_before_the_port_of_its_job_is_known(tmp_path: Path):
    bench = Bench(tmp_path)
    with pytest.raises(Outdated):
        await bench.create_pods()
    assert bench.objects.pods == {}
