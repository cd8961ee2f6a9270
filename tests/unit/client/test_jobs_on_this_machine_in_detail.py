"""Jobs on this machine as their users see them: views of stored jobs, former runs, logs, and what replicas use."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Status
from paddlejob.client import runs as runs_module
from paddlejob.client.targets import first_worker_file
from paddlejob.client.targets import local as local_module
from paddlejob.client.targets.first_worker_file import log_files, new_lines, read_first_worker
from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import JobView, LogChoice, LogLine, PodView
from paddlejob.client.watch.gpus import GpuMeter
from paddlejob.client.watch.losses import KEPT, Losses
from paddlejob.client.watch.machine import MachineObserver, replica_usage
from paddlejob.client.watch.observation import pods_to_quote, without_framework
from paddlejob.client.watch.usage import ProcessMeter, Usage, _pod_usage
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.engine_error import ENGINE_ERROR
from paddlejob.local.machine.gpu_use import GpuUse
from paddlejob.local.options import RunOptions
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, Store
from tests.support.builders import document, job

ENDED = {"completionTime": "2027-01-15T08:00:00Z"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    return Store()


@pytest.fixture
def target(store: Store) -> LocalTarget:
    return LocalTarget(store)


def stored(store: Store, name: str = "mnist", namespace: str = "default", status: Any = None, **spec: Any) -> JobFolder:
    """A job that no engine runs."""
    made = document(name, **{"workers": 2, **spec})
    made["metadata"]["namespace"] = namespace
    folder, lock = store.begin(made, RunOptions(), time.time())
    folder.write_status(Status.model_validate({"phase": "Running", "attempt": 1, **(status or {})}))
    lock.release()
    return folder


def with_log(folder: JobFolder, text: str, attempt: int = 1, index: int = 0) -> Path:
    log = folder.log(attempt, f"{folder.key[1]}-worker-{index}")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    return log


def test_jobs_of_one_namespace_or_of_all_are_listed(store: Store, target: LocalTarget):
    stored(store)
    stored(store, "other", "team")
    assert [view.job.name for view in target.jobs(None)] == ["mnist", "other"]
    (one,) = target.jobs("team")
    assert (one.job.name, one.flags) == ("other", " -n team")
    with pytest.raises(BadInput, match="existing jobs: other"):
        target.job("team", "mnist")
    with pytest.raises(BadInput, match=r"none not found in namespace x; start one with `pdj run FILE -n x`"):
        target.job("x", "none")
    assert (target.start_command(), target.title) == ("pdj run FILE", "this machine")


def test_a_job_whose_engine_was_killed_has_no_running_replica(store: Store, target: LocalTarget):
    counted = {"worker": {"replicas": 2, "running": 2, "ready": "2/2"}}
    folder = stored(store, status=counted, namespace="team")
    states = ("Pending", "Waiting", "Running", "Succeeded")
    folder.write_pods([PodRecord(f"p{n}", f"u{n}", "worker", n, 1, state, pid=n + 7) for n, state in enumerate(states)])
    view = target.job("team", "mnist")
    assert (view.phase, view.job.status.worker and view.job.status.worker.ready) == ("Interrupted", "0/2")
    assert view.job.status.worker and view.job.status.worker.running == 0
    assert [pod.state for pod in view.pods] == ["Stopped", "Stopped", "Stopped", "Succeeded"]
    assert [pod.pid for pod in view.pods] == [0, 0, 0, 0]
    assert "run `pdj resume mnist -n team` to continue or `pdj delete mnist -n team` to remove" in view.note
    assert view.document["status"]["pods"][0] == {
        "name": "p0", "role": "worker", "index": 0, "state": "Stopped", "attempt": 1
    }  # fmt: skip
    held = folder.runner_lock()
    assert held.acquire()
    running = target.job("team", "mnist")
    assert (running.phase, running.note, running.job.status.worker and running.job.status.worker.ready) == (
        "Running", "", "2/2"
    )  # fmt: skip
    assert [pod.pid for pod in running.pods] == [7, 8, 9, 0]
    held.release()


def test_an_engine_that_ended_with_an_error_says_which(store: Store, target: LocalTarget):
    stored(store, status={"reason": ENGINE_ERROR, "message": "KeyError: 'x'"})
    assert target.job("default", "mnist").note == "KeyError: 'x'; continue with `pdj resume mnist`"


def test_a_job_that_ended_keeps_its_counts_and_has_no_note(store: Store, target: LocalTarget):
    counted = {"worker": {"replicas": 2, "running": 1, "ready": "1/2"}}
    stored(store, status={"phase": "Completed", **ENDED, **counted})
    done = target.job("default", "mnist")
    assert (done.phase, done.note, done.damaged) == ("Completed", "", False)
    assert done.job.status.worker and done.job.status.worker.ready == "1/2"
    stored(store, "failed", status={"phase": "Failed", **ENDED, **counted})
    failed = target.job("default", "failed")
    assert failed.job.status.worker and failed.job.status.worker.ready == "0/2"


def test_a_job_that_is_marked_for_deletion_is_being_deleted(store: Store, target: LocalTarget):
    folder = stored(store)
    held = folder.runner_lock()
    assert held.acquire()
    assert target.delete("default", "mnist", wait=False) == "mnist is being deleted"
    assert target.job("default", "mnist").phase == "Deleting"
    held.release()


def test_a_delete_waits_for_the_engine_and_says_when_that_takes_too_long(
    store: Store, target: LocalTarget, monkeypatch: pytest.MonkeyPatch
):
    folder = stored(store, namespace="team")
    held = folder.runner_lock()
    assert held.acquire()
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 0.0)
    with pytest.raises(BadInput, match="job mnist is still stopping after 0 s; check `pdj get mnist -n team`"):
        target.delete("team", "mnist", wait=True)
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 60.0)
    later = threading.Timer(0.1, held.release)
    later.start()
    assert target.delete("team", "mnist", wait=True) == "mnist deleted"
    later.join()
    assert not folder.path.exists()
    with pytest.raises(BadInput, match="mnist not found"):
        target.delete("team", "mnist", wait=True)


def test_a_deleted_job_leaves_no_former_runs(store: Store, target: LocalTarget):
    stored(store)
    stored(store)
    assert len(runs_module.runs(target, None)) == 2
    target.delete("default", "mnist", wait=True)
    assert runs_module.runs(target, None) == []


def test_a_change_of_a_job_that_ended_or_is_damaged_is_refused(store: Store, target: LocalTarget):
    stored(store, status={"phase": "Completed", **ENDED})
    with pytest.raises(BadInput, match=r"job mnist has ended \(Completed\) and cannot be changed; run it again"):
        target.change("default", "mnist", suspend=True)
    damaged = stored(store, "torn", elastic=1)
    (damaged.path / "job.json").write_text("{")
    assert target.job("default", "torn").phase == "Damaged"
    with pytest.raises(NotPossible, match=r"remove the job with `pdj delete torn`, or start it again with `pdj run`"):
        target.change("default", "torn", worker={"replicas": 3})
    optionless = stored(store, "half", elastic=1)
    held = optionless.runner_lock()
    assert held.acquire()
    (optionless.path / "run.json").write_text("{")
    seen = target.job("default", "half")
    assert (seen.phase, seen.damaged) == ("Running", True)
    assert "so the job cannot be resumed once it stops" in seen.note
    target.change("default", "half", worker={"replicas": 3})
    assert (optionless.document() or {})["spec"]["worker"]["replicas"] == 3
    with pytest.raises(NotPossible, match="cannot be resumed"):
        target.change("default", "half", suspend=True)
    held.release()


def test_a_damaged_job_is_shown_with_its_name_and_can_be_deleted(store: Store, target: LocalTarget):
    folder = stored(store, namespace="team")
    folder.write_pods([PodRecord("p", "u", "worker", 0, 1, "Running", pid=7)])
    (folder.path / "job.json").write_text("{")
    view = target.job("team", "mnist")
    assert (view.job.namespace, view.job.name, view.flags, view.damaged) == ("team", "mnist", " -n team", True)
    assert (view.document["kind"], view.document["metadata"]["name"]) == ("PaddleJob", "mnist")
    assert view.document["status"] == {"message": view.note}
    assert [pod.state for pod in view.pods] == ["Stopped"]
    assert target.delete("team", "mnist", wait=True) == "mnist deleted"


def test_a_former_run_is_chosen_by_its_number(store: Store, target: LocalTarget):
    for number in (1, 2):
        with_log(stored(store, status={"phase": "Completed", **ENDED}), f"run {number}\n")

    def read(run: int) -> bytes:
        return b"".join(target.logs("default", "mnist", LogChoice(run=run, index=0)))

    assert (read(0), read(1), read(2)) == (b"run 2\n", b"run 1\n", b"run 2\n")
    with pytest.raises(BadInput, match=r"run 3 of job mnist is not kept; kept former runs: 1 \(`pdj list --history`"):
        read(3)
    runs_module.clean(target, None, [], 0)
    with pytest.raises(BadInput, match="kept former runs: none"):
        read(1)


def test_runs_are_listed_by_name_with_their_numbers_and_how_they_ended(store: Store, target: LocalTarget):
    stored(store, status={"phase": "Failed", **ENDED})
    stored(store)
    stored(store, status={"phase": "Completed", **ENDED})
    stored(store, "other", "team", status={"phase": "Completed", **ENDED})
    found = runs_module.runs(target, None)
    assert [(run.key[1], run.number, run.phase) for run in found] == [
        ("mnist", 1, "Failed"), ("mnist", 2, "Interrupted"), ("mnist", 3, "Completed"), ("other", 1, "Completed")
    ]  # fmt: skip
    assert all(run.size > 0 and run.job for run in found)
    assert [run.key[1] for run in runs_module.runs(target, "team")] == ["other"]
    (store.root / "history/default/mnist/1/job.json").write_text("{")
    torn = runs_module.runs(target, None)[0]
    assert (torn.phase, torn.job, torn.number) == ("Damaged", None, 1)


def test_former_runs_are_removed_but_for_the_last(store: Store, target: LocalTarget):
    for name, namespace in (("mnist", "default"), ("other", "team")):
        for _ in range(3):
            stored(store, name, namespace)
    with pytest.raises(BadInput, match="job absent has no former runs; list them with `pdj list --history`"):
        runs_module.clean(target, None, ["absent"], 0)
    with pytest.raises(BadInput, match="job other has no former runs"):
        runs_module.clean(target, "default", ["other"], 0)
    assert [run.number for run in runs_module.clean(target, None, ["mnist"], 1)] == [1]
    assert [run.number for run in runs_module.clean(target, "team", [], 0)] == [1, 2]
    assert [run.key[1] for run in runs_module.runs(target, None)] == ["mnist", "mnist", "other"]


def test_the_first_worker_of_each_attempt_is_the_one_with_the_lowest_index(store: Store, target: LocalTarget):
    folder = stored(store, status={"phase": "Completed", **ENDED})
    for attempt, index in ((10, 1), (2, 0), (2, 1), (10, 0), (1, 3)):
        with_log(folder, f"{attempt} {index}\n", attempt, index)
    (folder.path / "logs/attempt-x").mkdir()
    (folder.path / "logs/attempt-x/mnist-worker-0.log").touch()
    (folder.path / "logs/attempt-1/mnist-worker-x.log").touch()
    (folder.path / "logs/attempt-1/mnist-ps-0.log").touch()
    assert [(attempt, path.name) for attempt, path in log_files(folder).items()] == [
        (1, "mnist-worker-3.log"), (2, "mnist-worker-0.log"), (10, "mnist-worker-0.log")
    ]  # fmt: skip
    read = list(target.first_worker_log("default", "mnist", follow=False))
    assert read == [LogLine(1, "1 3\n"), LogLine(2, "2 0\n"), LogLine(10, "10 0\n")]
    assert list(target.first_worker_log("default", "mnist", follow=True)) == read


def test_a_worker_that_wrote_nothing_yet_is_one_message(store: Store, target: LocalTarget):
    stored(store, status={"phase": "Completed", **ENDED})
    with pytest.raises(BadInput, match="no worker of job mnist has written a log yet; look at its replicas with `pdj"):
        list(target.first_worker_log("default", "mnist", follow=False))
    assert list(target.first_worker_log("default", "mnist", follow=True)) == []
    with pytest.raises(BadInput, match="not found"):
        target.first_worker_log("default", "absent", follow=True)


def test_lines_are_followed_as_they_are_written_and_a_part_of_one_waits(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_worker_file, "PAUSE", 0.0)
    folder = stored(store)
    log = with_log(folder, "one\ntw")
    over = iter([False, False, False])
    monkeypatch.setattr(first_worker_file, "is_over", lambda _: next(over, True))
    lines = read_first_worker(folder, follow=True)
    assert next(lines) == LogLine(1, "one\n")
    with log.open("a") as file:
        file.write("o\nthree")
    with_log(folder, "later\n", attempt=2)
    assert list(lines) == [LogLine(1, "two\n"), LogLine(2, "later\n"), LogLine(1, "three")]


def test_output_without_newlines_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_worker_file, "LINE_LIMIT", 4)
    (tmp_path / "log").write_bytes(b"12345678\xff")
    with (tmp_path / "log").open("rb") as file:
        assert [line.text for line in new_lines(file, 1, partial=False)] == ["1234", "5678"]
        assert [line.text for line in new_lines(file, 1, partial=True)] == ["\ufffd"]


def test_half_of_the_losses_are_kept_beyond_the_most_and_then_every_second_one():
    losses = Losses(None)
    for step in range(KEPT + 1):
        losses.add(float(step))
    assert losses.values == tuple(float(step) for step in range(0, KEPT + 1, 2))
    losses.add(-1.0)
    assert losses.values[-1] == KEPT
    losses.add(-2.0)
    assert losses.values[-1] == -2.0


def test_only_losses_are_read_from_lines():
    losses = Losses(None)
    losses.read([LogLine(1, "step 1/3 loss 2.5"), LogLine(1, "step 2/3"), LogLine(1, "step 3/3 loss nan lr 0.1")])
    assert losses.values == (2.5,)


def view_of(folder: JobFolder, target: LocalTarget) -> JobView:
    return target.job(*folder.key)


def test_the_loss_is_read_on_from_where_reading_stopped_and_anew_for_a_new_job(store: Store, target: LocalTarget):
    observer = MachineObserver(store)
    folder = stored(store)
    log = with_log(folder, "step 1/9 loss 3.0\nstep 2/9 lo")
    folder.write_pods([PodRecord("mnist-worker-0", "u", "worker", 0, 1, "Running", log=str(log))])
    assert observer.observe(view_of(folder, target), 0).losses == (3.0,)
    with log.open("a") as file:
        file.write("ss 2.0\n")
    seen = observer.observe(view_of(folder, target), 2)
    assert seen.losses == (3.0, 2.0)
    assert (seen.replica, seen.lines) == ("worker-0", ("step 1/9 loss 3.0", "step 2/9 loss 2.0"))
    assert observer.observe(view_of(folder, target), 0).lines == ()
    again = stored(store)
    with_log(again, "step 1/9 loss 9.0\n")
    assert observer.observe(view_of(again, target), 1).losses == (9.0,)
    assert observer.observe(view_of(again, target), 1).replica == "", "its replicas have no log yet"


def test_of_a_long_log_the_end_is_read(store: Store, target: LocalTarget, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.client.watch.machine.MOST_READ", 40)
    folder = stored(store)
    with_log(folder, "".join(f"step {step}/99 loss {step}.0\n" for step in range(10, 30)))
    assert MachineObserver(store).observe(view_of(folder, target), 0).losses in {(28.0, 29.0), (29.0,)}


def test_the_replica_that_the_status_names_is_quoted_then_a_failed_one_then_the_first_worker():
    pods = [
        PodView("mnist-ps-0", "ps", 0, "Running"), PodView("mnist-worker-1", "worker", 1, "Running"),
        PodView("mnist-worker-0", "worker", 0, "Running"), PodView("mnist-worker-3", "worker", 3, "Failed"),
        PodView("mnist-worker-2", "worker", 2, "Running"),
    ]  # fmt: skip
    named = JobView(job(status={"message": "mnist-worker-2 failed"}), {}, "Running", pods=pods)
    assert [pod.replica for pod in pods_to_quote(named)] == ["worker-2", "worker-3", "worker-0", "worker-1", "ps-0"]
    moving = JobView(job(status={"progress": {"step": 3}}), {}, "Running", pods=pods)
    assert without_framework(moving, pods[0]) and not without_framework(moving, pods[3])
    assert not without_framework(named, pods[0])


def test_gpus_are_asked_once_in_a_while(monkeypatch: pytest.MonkeyPatch):
    asked: list[float] = []
    now = [1000.0]
    monkeypatch.setattr("paddlejob.client.watch.gpus.time.monotonic", lambda: now[0])

    def use() -> dict[str, GpuUse]:
        asked.append(now[0])
        return {"a": GpuUse("a", "H100", 10.0, 5, 9), "b": GpuUse("b", "H100", 30.0, 7, 9)}

    monkeypatch.setattr("paddlejob.client.watch.gpus.read_gpu_use", use)
    meter = GpuMeter()
    assert meter.use_of(["a", "b", "c"]) == (20.0, 12)
    now[0] += 2.9
    assert meter.use_of(["a"]) == (10.0, 5)
    now[0] += 0.2
    meter.read()
    assert asked == [1000.0, 1003.1]


def test_a_replica_has_the_use_of_its_process_and_of_the_gpus_that_it_holds(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    folder = stored(store)
    pods = [
        PodView("mnist-worker-0", "worker", 0, "Running", pid=os.getpid()), PodView("w1", "worker", 1, "Pending"),
    ]  # fmt: skip
    view = JobView(folder.job(), {}, "Running", pods=pods)  # type: ignore[arg-type]
    monkeypatch.setattr("paddlejob.client.watch.machine.gpus_of_pods", lambda _: {"mnist-worker-0": ["a"], "w1": ["a"]})
    monkeypatch.setattr("paddlejob.client.watch.gpus.read_gpu_use", lambda: {"a": GpuUse("a", "H100", 40.0, 9, 9)})
    used = replica_usage(store, view, ProcessMeter(), GpuMeter())
    assert used.keys() == {"mnist-worker-0"}
    assert (used["mnist-worker-0"].gpu, used["mnist-worker-0"].gpu_memory) == (40.0, 9)
    assert used["mnist-worker-0"].cpu is None and (used["mnist-worker-0"].memory or 0) > 1 << 20


def test_cpu_is_the_difference_of_readings_that_are_far_enough_apart(monkeypatch: pytest.MonkeyPatch):
    now, seconds = [1000.0], [5.0]
    monkeypatch.setattr("paddlejob.client.watch.usage.time.monotonic", lambda: now[0])
    monkeypatch.setattr("paddlejob.client.watch.usage._descendants", lambda pid: iter([pid + 1]))
    monkeypatch.setattr("paddlejob.client.watch.usage._reading", lambda pid: (seconds[0], 10) if seconds[0] else None)
    meter = ProcessMeter()
    assert meter.read(7) == Usage(None, 20)
    now[0], seconds[0] = 1000.4, 6.0
    assert meter.read(7) == Usage(None, 20), "too soon"
    now[0] = 1000.5
    assert meter.read(7) == Usage(4.0, 20)
    now[0] = 1000.6
    assert meter.read(7) == Usage(4.0, 20), "the last one, until there is a better one"
    seconds[0] = 0.0
    assert meter.read(7) is None
    seconds[0] = 1.0
    assert meter.read(7) == Usage(None, 20), "a new process of the same number"
    now[0], seconds[0] = 1002.6, 0.5
    assert meter.read(7) == Usage(0.0, 20), "children that ended took their time with them"


def test_the_use_of_a_pod_is_the_sum_of_its_containers():
    found = {"containers": [{"usage": {"cpu": "1500m", "memory": "1Gi"}}, {"usage": {"cpu": "1"}}, {}]}
    assert _pod_usage(found) == Usage(2.5, 1 << 30)
    assert _pod_usage({}) == Usage(0.0, 0)
