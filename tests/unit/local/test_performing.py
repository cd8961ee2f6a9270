"""The backend of the embedded engine carries out each action on the objects of the job, and reports its status."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Outdated
from paddlejob.local import backend as local_backend
from paddlejob.local.backend import LocalBackend
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.state.changes import change_spec
from paddlejob.plan import Create, Delete, DeleteJob, DropFinalizer, Kind, RecordEvent, Stop, Wake
from tests.support.builders import NOON
from tests.support.scripted_supervisor import OnePod


class Bench(OnePod):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.backend = LocalBackend(lambda: NOON)
        self.backend.kubelets[self.folder.key] = self.kubelet

    @property
    def job(self) -> PaddleJob:
        found = self.folder.job()
        assert found is not None
        return found

    async def perform(self, action: Any) -> None:
        await self.backend.perform(self.job, action)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.objects.allocation.clear()
    made.close()


async def test_a_created_pod_is_pending_and_has_a_directory_of_its_own(bench: Bench):
    bench.objects.allocation.ports = PortBlock()
    manifest = bench.pod.manifest
    bench.objects.pods.clear()
    await bench.perform(Create(Kind.POD, "mnist-worker-0", manifest))
    (pod,) = bench.objects.pods.values()
    assert (pod.seen.name, pod.seen.created, pod.seen.address) == ("mnist-worker-0", NOON, "")
    assert pod.own == bench.folder.path / "pods" / pod.seen.uid
    assert pod.seen.uid != "uid-1"


async def test_an_environment_is_published_and_taken_back_by_its_attempt(bench: Bench):
    await bench.perform(Create(Kind.ENVIRONMENT, "mnist-env-abcde-1", {"data": {"A": "1"}}))
    assert bench.objects.environments == {1: "mnist-env-abcde-1"}
    assert bench.objects.config_maps == {"mnist-env-abcde-1": {"A": "1"}}
    view = await bench.backend.observe(bench.folder.key)
    assert view is not None and list(view.world.environments) == [1]
    await bench.perform(Delete(Kind.ENVIRONMENT, "mnist-env-abcde-1", "", "a test"))
    assert bench.objects.environments == {}


async def test_services_are_remembered_until_they_are_deleted(bench: Bench):
    await bench.perform(Create(Kind.SERVICE, "mnist-worker-0", {}))
    view = await bench.backend.observe(bench.folder.key)
    assert view is not None and list(view.world.services) == ["mnist-worker-0"]
    await bench.perform(Delete(Kind.SERVICE, "mnist-worker-0", "", "a test"))
    assert bench.objects.services == set()


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
    bench.objects.pods.clear()
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
    def fail(event: dict[str, Any]) -> None:
        raise OSError(number, "cannot write")

    monkeypatch.setattr(bench.folder, "add_event", fail)
    event = RecordEvent("Running", "all pods train")
    if raised:
        with pytest.raises(OSError, match="cannot write"):
            await bench.perform(event)
    else:
        await bench.perform(event)


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
    await bench.perform(DeleteJob("a test"))
    assert bench.job.metadata.deletionTimestamp == "2027-01-15T08:00:00Z"
    bench.backend._clock = lambda: NOON + 60
    await bench.perform(DeleteJob("a test"))
    assert bench.job.metadata.deletionTimestamp == "2027-01-15T08:00:00Z"


async def test_a_job_that_is_gone_or_unknown_cannot_be_observed(bench: Bench):
    assert await bench.backend.observe(("default", "other")) is None
    bench.folder.remove()
    assert await bench.backend.observe(bench.folder.key) is None


async def test_the_planner_sees_a_machine_that_admits_jobs_as_a_whole_and_lets_nothing_outlive_them(bench: Bench):
    view = await bench.backend.observe(bench.folder.key)
    assert view is not None
    (group,) = view.world.pod_groups
    assert (group.name, group.owned, group.phase) == ("mnist", False, "Running")
    assert view.world.stop_when_finished
    assert view.world.pods == (bench.pod.seen,)


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
    ("disk", "written"), [(Disk(0), True), (Disk(4), True), (Disk(5), False), (Disk(1, errno.EIO), False)]
)
async def test_a_status_is_tried_again_while_the_disk_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, disk: Disk, written: bool
):
    pauses = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(local_backend.asyncio, "sleep", pause)
    monkeypatch.setattr(bench.folder, "write_status", disk)
    if written:
        await bench.backend.report(bench.job, Status(phase=Phase.RUNNING))
    else:
        with pytest.raises(OSError, match="cannot write"):
            await bench.backend.report(bench.job, Status(phase=Phase.RUNNING))
    assert disk.written == int(written), "and it is written once"
    assert disk.left == 0
