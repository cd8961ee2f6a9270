"""The kubelet: pods have an address of their own, are deleted gracefully, by uid, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local.machine.addresses import PER_BLOCK
from paddlejob.local.pod import new_pod
from tests.support.builders import NOON
from tests.support.scripted_supervisor import GRACE, OnePod, Timers, container

pytestmark = pytest.mark.usefixtures("timers")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[OnePod]:
    made = OnePod(tmp_path, volumes=[{"name": "scratch", "emptyDir": {}}])
    yield made
    made.close()


def test_a_pod_without_processes_is_removed_at_once_with_its_files(stage: OnePod):
    stage.bind()
    assert stage.pod.own.is_dir()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.local.pods == {}
    assert not stage.pod.own.exists()
    assert stage.supervisor.take() == []


def test_each_pod_has_an_address_that_is_used_again_after_it_is_removed(stage: OnePod):
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    seen = set()
    for number in range(2 * PER_BLOCK):
        pod = new_pod(f"uid-{number}", stage.pod.manifest, stage.pod.own, NOON)
        stage.local.add(pod)
        stage.kubelet.sync(stage.local)
        assert pod.seen.address == "", "it is not bound to this machine yet"
        stage.local.update(pod, node="laptop")
        stage.kubelet.sync(stage.local)
        seen.add(pod.seen.address)
        stage.kubelet.delete(stage.local, pod.seen.name, pod.seen.uid)
    assert len(seen) == PER_BLOCK


def test_another_pod_of_the_same_name_is_left_alone(stage: OnePod):
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-of-an-older-one")
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-of-an-older-one")
    stage.kubelet.delete(stage.local, "mnist-worker-1", "uid-1")
    assert stage.supervisor.take() == []
    assert not stage.pod.seen.deleting
    assert not stage.pod.seen.stopping


def test_a_pod_that_runs_is_removed_when_its_last_process_is_gone(stage: OnePod):
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.pod.seen.deletion_due == NOON + GRACE
    assert stage.supervisor.take() == ["terminate paddle"]
    stage.report("paddle", ended=143, oom=False)
    assert list(stage.local.pods) == ["mnist-worker-0"]
    stage.report("paddle", gone=True)
    assert stage.local.pods == {}
    assert not stage.pod.own.exists()


def test_a_pod_stays_while_another_of_its_containers_lives(tmp_path: Path):
    stage = OnePod(tmp_path, containers=[container(), container("logger")])
    stage.run("paddle", "logger")
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    stage.exit("paddle", 143)
    assert list(stage.local.pods) == ["mnist-worker-0"]
    stage.exit("logger", 143)
    assert stage.local.pods == {}
    stage.close()


def test_a_pod_that_ends_by_itself_is_kept(stage: OnePod):
    stage.run()
    stage.exit("paddle", 0)
    assert list(stage.local.pods) == ["mnist-worker-0"]


@pytest.mark.parametrize("how", ["removed", "forgotten"])
def test_a_report_about_a_pod_that_is_gone_or_that_another_engine_may_run_is_ignored(stage: OnePod, how: str):
    stage.run()
    stage.exit("paddle", 0)
    if how == "removed":
        stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    else:
        stage.kubelet.forget(stage.local)
    before = stage.changes
    stage.report("paddle", started=7)
    assert stage.changes == before
    assert not stage.local.has_processes


def test_deleting_again_does_not_postpone_the_end(stage: OnePod):
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    stage.now += 10
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.pod.seen.deletion_due == NOON + GRACE


def test_a_forced_deletion_kills_at_once(stage: OnePod, timers: Timers):
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1", grace=0.0)
    assert stage.supervisor.take() == ["kill paddle"]
    assert timers.delays == []


def test_a_deletion_may_have_a_grace_period_of_its_own(stage: OnePod, timers: Timers):
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1", grace=GRACE / 2)
    assert stage.pod.seen.deletion_due == NOON + GRACE / 2
    assert stage.supervisor.take() == ["terminate paddle"]
    timers.pass_(GRACE / 2)
    assert stage.supervisor.take() == ["kill paddle"]


def test_deleting_everything_deletes_each_pod_once(stage: OnePod, timers: Timers):
    stage.run()
    stage.kubelet.delete_all(stage.local)
    assert stage.supervisor.take() == ["terminate paddle"]
    before = timers.delays
    stage.kubelet.delete_all(stage.local)
    assert timers.delays == before
    assert stage.supervisor.take() == []


def test_a_job_has_processes_while_one_of_its_containers_is_not_gone(stage: OnePod):
    assert not stage.local.has_processes
    stage.run()
    assert stage.local.has_processes
    stage.report("paddle", ended=0, oom=False)
    assert stage.local.has_processes
    stage.report("paddle", gone=True)
    assert not stage.local.has_processes


def test_a_pod_without_a_grace_period_of_its_own_has_the_default(tmp_path: Path, timers: Timers):
    stage = OnePod(tmp_path, terminationGracePeriodSeconds=None)
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert timers.delays == [30.0]
    stage.close()


def test_without_a_grace_period_a_pod_is_killed_at_once(tmp_path: Path, timers: Timers):
    stage = OnePod(tmp_path, terminationGracePeriodSeconds=0)
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["kill paddle"]
    stage.close()


LIMITED = container(resources={"limits": {"memory": "64Mi"}})


@pytest.fixture
def large() -> Iterator[int]:
    """A process that uses more than 100 MiB."""
    program = "data = b'x' * (128 << 20); print(len(data), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_pod_that_uses_more_memory_than_its_limit_is_killed(tmp_path: Path, large: int):
    stage = OnePod(tmp_path, containers=[LIMITED])
    stage.run()
    stage.pod.alive["paddle"] = os.getppid() + (1 << 30)
    stage.kubelet.enforce_memory_limits()
    assert stage.supervisor.take() == [], "a process that is gone uses nothing"
    stage.pod.alive["paddle"] = large
    stage.kubelet.enforce_memory_limits()
    assert stage.supervisor.take() == ["kill paddle"]
    assert stage.pod.over_memory
    stage.close()


def test_a_pod_without_a_limit_for_each_container_may_use_what_it_likes(tmp_path: Path, large: int):
    stage = OnePod(tmp_path, containers=[LIMITED, container("logger")])
    stage.run("paddle", "logger")
    stage.pod.alive["paddle"] = large
    stage.kubelet.enforce_memory_limits()
    assert stage.supervisor.take() == []
    stage.close()


def limits(stage: OnePod) -> list[float | None]:
    """The limit of the pod as its init containers end one after the other."""
    found = []
    for done in range(len(stage.pod.init_containers) + 1):
        stage.pod.inits_done = done
        found.append(stage.pod.memory_limit)
    return found


def test_the_memory_limit_is_that_of_the_containers_that_run_together(tmp_path: Path):
    def limited(name: str, megabytes: int, **fields: str) -> dict[str, object]:
        return container(name, resources={"limits": {"memory": f"{megabytes}M"}}, **fields)

    init = [limited("fetch", 1), limited("proxy", 2, restartPolicy="Always"), limited("unpack", 4)]
    stage = OnePod(tmp_path, initContainers=init, containers=[limited("paddle", 8), limited("logger", 16)])
    assert limits(stage) == [1e6, 2e6, 6e6, 26e6]
    stage.close()
