"""The backend of the embedded engine observes without side effects, carries out each action, and reports the status."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Outdated, View
from paddlejob.local import backend as local_backend
from paddlejob.local.backend import LocalBackend
from paddlejob.local.job import JobRegistry
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.state.changes import change_spec
from paddlejob.plan import Create, Delete, DeleteJob, DropFinalizer, Kind, PodPhase, RecordEvent, Stop, Wake, plan
from tests.support.builders import NOON
from tests.support.scripted_supervisor import OnePod


class Bench(OnePod):
    """A job with one pod, on an engine that is not running: nothing happens but what a test asks for."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.jobs = JobRegistry()
        self.jobs.add(self.local)
        self.backend = LocalBackend(self.jobs, self.kubelet, lambda: self.now)

    @property
    def job(self) -> PaddleJob:
        found = self.folder.job()
        assert found is not None
        return found

    async def perform(self, action: Any) -> None:
        await self.backend.perform(self.job, action)

    async def observe(self) -> View:
        view = await self.backend.observe(self.folder.key)
        assert view is not None
        return view

    async def create_pods(self) -> None:
        view = await self.observe()
        for action in plan(view.job, view.world, NOON).actions:
            await self.backend.perform(view.job, action)

    def everything(self) -> dict[str, Any]:
        """Files with their times and sizes, open descriptors (sockets are among them), and child processes."""
        paths = [self.store.root, *self.store.root.rglob("*")]
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


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.local.allocation.clear()
    made.close()


async def test_observing_changes_nothing_and_schedules_no_pod(bench: Bench):
    """Nothing on disk; no port is taken, no process is started."""
    bench.local.pods.clear()
    for ports in (None, PortBlock()):
        bench.local.allocation.ports = ports
        before = bench.everything()
        view = await bench.observe()
        assert await bench.observe() == view
        assert bench.everything() == before
        assert bench.local.allocation.ports is ports
    await bench.create_pods()
    before = bench.everything()
    seen = [(pod.phase, pod.address, pod.node) for pod in (await bench.observe()).world.pods]
    assert seen == [(PodPhase.PENDING, "", "")]
    assert bench.everything() == before


async def test_the_view_carries_the_port_once_it_is_reserved_and_the_stored_job_does_not(bench: Bench):
    assert contract.ANNOTATION_PORT not in (await bench.observe()).job.metadata.annotations
    bench.local.allocation.ports = PortBlock()
    view = await bench.observe()
    assert view.job.metadata.annotations[contract.ANNOTATION_PORT] == str(bench.local.allocation.port)
    assert contract.ANNOTATION_PORT not in bench.job.metadata.annotations


async def test_a_job_that_is_gone_or_unknown_cannot_be_observed(bench: Bench):
    assert await bench.backend.observe(("default", "other")) is None
    bench.folder.remove()
    assert await bench.backend.observe(bench.folder.key) is None


async def test_the_planner_sees_a_machine_that_admits_jobs_as_a_whole_and_lets_nothing_outlive_them(bench: Bench):
    world = (await bench.observe()).world
    (group,) = world.pod_groups
    assert (group.name, group.owned, group.phase) == ("mnist", False, "Running")
    assert world.stop_when_finished and world.one_machine
    assert world.pods == (bench.pod.seen,)


async def test_a_created_pod_is_pending_and_has_a_directory_of_its_own_once_the_port_of_its_job_is_known(bench: Bench):
    bench.local.pods.clear()
    create = Create(Kind.POD, "mnist-worker-0", bench.pod.manifest)
    with pytest.raises(Outdated):
        await bench.perform(create)
    assert bench.local.pods == {}
    bench.local.allocation.ports = PortBlock()
    await bench.perform(create)
    (pod,) = bench.local.pods.values()
    assert (pod.seen.name, pod.seen.created, pod.seen.address) == ("mnist-worker-0", NOON, "")
    assert pod.own == bench.folder.path / "pods" / pod.seen.uid
    assert pod.seen.uid != "uid-1"


async def test_an_environment_is_published_and_taken_back_by_its_attempt(bench: Bench):
    await bench.perform(Create(Kind.ENVIRONMENT, "mnist-env-abcde-1", {"data": {"A": "1"}}))
    assert bench.local.config_maps == {"mnist-env-abcde-1": {"A": "1"}}
    assert list((await bench.observe()).world.environments) == [1]
    await bench.perform(Delete(Kind.ENVIRONMENT, "mnist-env-abcde-1", "", "a test"))
    assert bench.local.environments == {}


async def test_services_are_remembered_until_they_are_deleted(bench: Bench):
    await bench.perform(Create(Kind.SERVICE, "mnist-worker-0", {}))
    assert list((await bench.observe()).world.services) == ["mnist-worker-0"]
    await bench.perform(Delete(Kind.SERVICE, "mnist-worker-0", "", "a test"))
    assert bench.local.services == set()


async def test_a_pod_is_deleted_by_uid_and_by_force(bench: Bench):
    bench.run()
    await bench.perform(Delete(Kind.POD, "mnist-worker-0", "another", "a test"))
    assert bench.supervisor.take() == []
    await bench.perform(Delete(Kind.POD, "mnist-worker-0", "uid-1", "a test", force=True))
    assert bench.supervisor.take() == ["kill paddle"]


async def test_a_pod_is_stopped_and_kept(bench: Bench):
    bench.run()
    await bench.perform(Stop(bench.pod.seen, "a test"))
    assert bench.supervisor.take() == ["terminate paddle"]
    assert bench.pod.seen.stopping


async def test_waking_is_recorded_on_a_pod_that_exists(bench: Bench):
    await bench.perform(Wake(bench.pod.seen, 3, NOON))
    assert (bench.pod.seen.woken, bench.pod.seen.woken_at) == (3, NOON)
    bench.local.pods.clear()
    await bench.perform(Wake(bench.pod.seen, 4, NOON))
    assert bench.pod.seen.woken == 3


async def test_events_are_stored_with_their_time_and_whether_they_warn(bench: Bench):
    await bench.perform(RecordEvent("Running", "all pods train"))
    await bench.perform(RecordEvent("ProgramFailed", "it failed", warning=True))
    assert bench.folder.events() == [
        {"time": "2027-01-15T08:00:00Z", "reason": "Running", "message": "all pods train"},
        {"time": "2027-01-15T08:00:00Z", "reason": "ProgramFailed", "message": "it failed", "warning": True},
    ]


@pytest.mark.parametrize(("number", "raised"), [(errno.ENOSPC, False), (errno.EDQUOT, False), (errno.EIO, True)])
async def test_an_event_is_lost_on_a_full_disk_but_no_other_error_is_hidden(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, raised: bool
):
    def fail(*event: object, warning: bool) -> None:
        raise OSError(number, "cannot write")

    monkeypatch.setattr(bench.folder, "add_event", fail)
    try:
        await bench.perform(RecordEvent("Running", "all pods train"))
    except OSError as error:
        assert raised and error.errno == number
    else:
        assert not raised


async def test_a_finalizer_is_removed_and_others_stay(bench: Bench):
    document = bench.folder.document()
    assert document is not None
    bench.folder.write_document({**document, "metadata": {**document["metadata"], "finalizers": ["ours", "theirs"]}})
    await bench.perform(DropFinalizer("ours"))
    after = bench.folder.document()
    assert after is not None
    assert after["metadata"]["finalizers"] == ["theirs"]


async def test_a_job_is_marked_for_deletion_once_unless_a_command_waits_for_its_result(bench: Bench):
    bench.backend.keep_finished = True
    await bench.perform(DeleteJob("a test"))
    assert not bench.job.metadata.deletionTimestamp
    bench.backend.keep_finished = False
    for later in (0, 60):
        bench.now += later
        await bench.perform(DeleteJob("a test"))
        assert bench.job.metadata.deletionTimestamp == "2027-01-15T08:00:00Z"


async def test_a_status_is_written_only_if_the_job_is_still_the_one_that_was_read(bench: Bench):
    read = bench.job
    await bench.backend.report(read, Status(phase=Phase.RUNNING))
    assert bench.job.status.phase is Phase.RUNNING
    change_spec(bench.folder, suspend=True)
    with pytest.raises(Outdated):
        await bench.backend.report(read, Status(phase=Phase.FAILED))
    assert bench.job.status.phase is Phase.RUNNING
    bench.folder.remove()
    with pytest.raises(Outdated):
        await bench.backend.report(read, Status(phase=Phase.FAILED))


class Disk:
    """Fails a number of writes."""

    def __init__(self, failures: int, number: int = errno.ENOSPC) -> None:
        self.left, self.number = failures, number
        self.written = 0

    def __call__(self, status: Status) -> None:
        if self.left:
            self.left -= 1
            raise OSError(self.number, "cannot write")
        self.written += 1


@pytest.mark.parametrize(
    ("disk", "pauses", "written"),
    [(Disk(0), 0, True), (Disk(4), 4, True), (Disk(5), 4, False), (Disk(1, errno.EIO), 0, False)],
)
async def test_a_status_is_tried_again_while_the_disk_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, disk: Disk, pauses: int, written: bool
):
    paused = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(local_backend.asyncio, "sleep", pause)
    monkeypatch.setattr(bench.folder, "write_status", disk)
    if written:
        await bench.backend.report(bench.job, Status(phase=Phase.RUNNING))
    else:
        with pytest.raises(OSError, match="cannot write"):
            await bench.backend.report(bench.job, Status(phase=Phase.RUNNING))
    assert disk.written == int(written), "and it is written once"
    assert len(paused) == pauses
    assert disk.left == 0
