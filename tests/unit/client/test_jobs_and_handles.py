"""The Python API: jobs as values, and the handle of a job that is stored on this machine."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import paddlejob as pj
from paddlejob.api.types import Status
from paddlejob.client.notebook import curve
from paddlejob.local.options import RunOptions
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from tests.support.builders import document


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return tmp_path


def stored(phase: str, *, finished: bool = True, spec: dict[str, Any] | None = None, **status: Any) -> JobFolder:
    """A job that no engine runs."""
    store = JobStore()
    made, lock = store.begin(document(workers=1, **spec or {}), RunOptions(), time.time())
    ended = {"completionTime": "2027-01-15T08:00:00Z"} if finished else {}
    made.write_status(Status.model_validate({"phase": phase, "attempt": 1, **ended, **status}))
    lock.release()
    return made


def containers(job: pj.Job, role: str = "worker") -> dict[str, Any]:
    return job.document["spec"][role]["template"]["spec"]["containers"][0]


def test_a_collective_job_has_the_workers_that_were_asked_for(folder: Path):
    job = pj.collective(
        "train.py", ["--epochs", "3"], workers=4, gpus=2, image="mine:1", name="big", env={"A": "1"},
        volumes={"data": "/tmp"}, code=".",
    )  # fmt: skip
    assert (job.name, job.document["spec"]["worker"]["replicas"]) == ("big", 4)
    assert (job.directory, job.program, job.code, job.image) == (str(folder), "train.py", ".", "mine:1")
    assert (job.volumes, job.others) == ({"data": "/tmp"}, ())
    trainer = containers(job)
    assert trainer["command"][-3:] == ["train.py", "--epochs", "3"]
    assert trainer["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert {"name": "A", "value": "1"} in trainer["env"]
    assert [one["mountPath"] for one in trainer["volumeMounts"]] == ["/mnt/data"]
    assert "ps" not in job.document["spec"]


def test_the_defaults_are_one_worker_without_gpus(folder: Path):
    job = pj.collective("train.py")
    assert (job.name, job.document["spec"]["worker"]["replicas"]) == ("train", 1)
    assert (job.image, job.devices, job.volumes, job.code) == ("", None, {}, "")
    assert "resources" not in containers(job)


def test_a_job_with_servers_runs_the_same_program_on_both(folder: Path):
    job = pj.parameter_server("train.py", workers=3, servers=2)
    assert [job.document["spec"][role]["replicas"] for role in ("ps", "worker")] == [2, 3]
    assert containers(job, "ps")["command"] == containers(job)["command"]
    smallest = pj.parameter_server("train.py")
    assert [smallest.document["spec"][role]["replicas"] for role in ("ps", "worker")] == [1, 1]


def test_a_program_that_does_not_exist_is_an_error():
    with pytest.raises(pj.PaddleJobError, match=r"absent\.py: no such file"):
        pj.collective("absent.py")


def test_arguments_that_are_no_list_and_volumes_that_do_not_exist_are_errors(folder: Path):
    with pytest.raises(pj.PaddleJobError, match=r"arguments: '--epochs 3' is not a list; write \['--epochs', '3'\]"):
        pj.collective("train.py", "--epochs 3")
    with pytest.raises(pj.PaddleJobError, match=r"volumes\['data'\]: nowhere is not a directory"):
        pj.collective("train.py", volumes={"data": "nowhere"})
    with pytest.raises(pj.PaddleJobError, match="image two words is not the name of an image"):
        pj.parameter_server("train.py", image="two words")


def test_paths_may_be_of_pathlib(folder: Path):
    (folder / "data").mkdir()
    job = pj.collective(
        folder / "train.py",
        ["--out", Path("/mnt/out")],
        code=folder,
        env={"DATA": Path("/mnt/data")},
        volumes={"data": Path("data")},
    )
    (container,) = job.document["spec"]["worker"]["template"]["spec"]["containers"]
    assert container["command"][-1] == "/mnt/out" and container["env"] == [{"name": "DATA", "value": "/mnt/data"}]
    assert (job.program, job.code, job.volumes) == (
        str(folder / "train.py"), str(folder), {"data": str(folder / "data")},
    )  # fmt: skip
    (folder / "job.yaml").write_text(job.to_yaml())
    assert pj.load(folder / "job.yaml").name == "train"


def test_a_file_holds_one_job_and_the_objects_beside_it(folder: Path):
    rates = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rates}\n---\n"
    one = pj.collective("train.py", name="one").to_yaml()
    (folder / "jobs").mkdir()
    (folder / "jobs/one.yaml").write_text(rates + one)
    loaded = pj.load("jobs/one.yaml")
    assert (loaded.name, loaded.directory, loaded.program) == ("one", str(folder / "jobs"), "")
    assert [other["kind"] for other in loaded.others] == ["ConfigMap"]
    assert loaded.to_yaml().index("ConfigMap") < loaded.to_yaml().index("PaddleJob")
    (folder / "two.yaml").write_text(f"{one}---\n{one.replace('one', 'two')}")
    with pytest.raises(pj.PaddleJobError, match="contains 2 jobs; put each into a file of its own"):
        pj.load("two.yaml")


def test_a_job_without_a_name_has_an_empty_one():
    assert (pj.Job({}).name, pj.Job({"metadata": None}).name, pj.Job({"metadata": {"name": "a"}}).name) == ("", "", "a")


@pytest.mark.parametrize("start", [pj.run, pj.submit])
def test_only_a_job_can_be_started(start: Any):
    with pytest.raises(pj.PaddleJobError, match=r"'train.py' is not a job; make one with pj\.collective"):
        start("train.py")


def test_a_job_that_exists_can_be_attached_to():
    stored("Completed", message="all 1 workers succeeded")
    run = pj.attach("mnist")
    assert (repr(run), run.phase, run.namespace) == ("<Run default/mnist>", "Completed", "default")
    assert run.wait(timeout=0).message == "all 1 workers succeeded"
    assert "mnist completed" in run.why()
    with pytest.raises(pj.PaddleJobError, match="mnist not found in namespace team"):
        pj.attach("mnist", namespace="team")


def test_waiting_for_a_failed_job_raises_its_reason():
    stored("Failed", reason="OutOfMemory", message="mnist-worker-0 ran out of memory")
    run = pj.attach("mnist")
    with pytest.raises(pj.JobFailed, match="mnist failed: OutOfMemory: mnist-worker-0 ran out of memory") as caught:
        run.wait()
    assert (caught.value.reason, caught.value.message) == ("OutOfMemory", "mnist-worker-0 ran out of memory")
    with pytest.raises(pj.JobFailed):
        asyncio.run(run.wait_async())
    assert asyncio.run(run.status_async()).reason == "OutOfMemory"


@pytest.mark.parametrize(
    ("phase", "message"), [("Suspended", "suspended by someone"), ("Running", "engine that ran this job was killed")]
)
def test_waiting_for_a_job_that_does_not_go_on_by_itself_says_why(phase: str, message: str):
    stored(phase, finished=False, spec={"suspend": phase == "Suspended"}, message="suspended by someone")
    with pytest.raises(pj.PaddleJobError, match=message):
        pj.attach("mnist").wait()


def test_a_job_that_was_just_resumed_is_waited_for():
    made = stored("Suspended", finished=False)
    held = made.runner_lock()
    assert held.acquire()
    with pytest.raises(TimeoutError, match=r"mnist is still Suspended after 0 s"):
        pj.attach("mnist").wait(timeout=0)
    held.release()


def test_a_job_is_scaled_and_deleted_by_its_handle():
    made = stored("Running", finished=False, spec={"elastic": 1})
    run = pj.attach("mnist")
    run.scale(3)
    assert (made.document() or {})["spec"]["worker"]["replicas"] == 3
    run.delete()
    assert not made.path.exists()
    assert (
        pj.Run(SyncTarget(LocalTarget(JobStore())), "default", "mnist")
        ._repr_html_()
        .startswith("<pre>job mnist not found")
    )


def test_a_handle_without_a_runner_of_this_process_interrupts_nothing():
    stored("Running", finished=False)
    pj.attach("mnist").interrupt()


def with_log(text: str) -> pj.Run:
    made = stored("Completed", message="all <b>workers</b> succeeded")
    log = made.log(1, "mnist-worker-0")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    made.write_pods([PodRecord("mnist-worker-0", "u-1", "worker", 0, 1, "Succeeded", exit_code=0, log=str(log))])
    return pj.attach("mnist")


def test_logs_and_metrics_are_read_from_the_log_of_the_first_worker():
    run = with_log("start\nstep=1/3 loss=1.0 lr=0.5\nloss=7\nstep=2/3 loss=0.5 lr=0.25\nstep=3/3\n")
    assert list(run.logs())[:2] == ["start", "step=1/3 loss=1.0 lr=0.5"]
    assert list(run.logs(tail=1)) == ["step=3/3"]
    assert run.metrics() == [(1, 1.0), (2, 0.5)]
    assert run.metrics("learning_rate") == [(1, 0.5), (2, 0.25)]

    async def lines() -> list[str]:
        return [line async for line in run.logs_async(tail=2)]

    assert asyncio.run(lines()) == ["step=2/3 loss=0.5 lr=0.25", "step=3/3"]


def test_a_coroutine_may_stop_following_a_job_that_prints_nothing():
    made = stored("Running", finished=False)
    log = made.log(1, "mnist-worker-0")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("started\n")
    lock = made.runner_lock()
    assert lock.acquire()
    given_up = threading.Timer(30, lock.release)
    given_up.start()
    seen = []

    async def follow() -> None:
        async with asyncio.timeout(None) as limit:
            async for line in pj.attach("mnist").logs_async(follow=True):
                seen.append(line)
                limit.reschedule(asyncio.get_running_loop().time() + 0.5)

    with pytest.raises(TimeoutError):
        asyncio.run(follow())
    assert (seen, given_up.is_alive()) == (["started"], True), "it ended before the job did"
    given_up.cancel()
    lock.release()


def test_an_error_reaches_a_coroutine_that_follows_a_job():
    async def follow() -> list[str]:
        return [line async for line in with_log("text\n").logs_async(run=7)]

    with pytest.raises(pj.PaddleJobError, match="run 7 of job mnist is not kept"):
        asyncio.run(follow())


def test_where_a_log_tells_only_epochs_a_metric_has_its_epoch():
    assert with_log("epoch 1/2 loss: 1.0\nepoch 2/2 loss: 0.5\n").metrics() == [(1, 1.0), (2, 0.5)]
    mixed = with_log("step=10 loss=1.0\nepoch 1/2 loss: 0.7\nstep=20 loss=0.5\n")
    assert mixed.metrics() == [(10, 1.0), (20, 0.5)]


def test_a_notebook_shows_the_state_the_replicas_and_the_loss():
    html = with_log("step=1/3 loss=1.0\nstep=3/3 loss=0.25\n")._repr_html_()
    assert "<b>mnist</b>: Completed" in html
    assert "all &lt;b&gt;workers&lt;/b&gt; succeeded" in html
    assert "<td>worker-0</td><td>Succeeded</td><td>0</td>" in html
    assert "loss 1 → 0.25, step 3" in html
    assert "<polyline" in html


def test_a_single_point_is_no_curve():
    html = with_log("step=1/3 loss=1.0\n")._repr_html_()
    assert "<polyline" not in html
    assert "worker-0" in html


def test_a_curve_begins_on_the_left_ends_on_the_right_and_fills_the_height():
    line = curve([(10, 4.0), (20, 2.0), (30, 0.0)]).split('points="')[1].split('"')[0]
    assert line == "0.0,0.0 160.0,30.0 320.0,60.0"
    assert curve([(5, 1.0), (5, 1.0)]).count("0.0,60.0") == 2


def test_without_a_limit_a_job_is_waited_for_until_it_ends():
    made = stored("Running", finished=False)
    held = made.runner_lock()
    assert held.acquire()
    ended = Status.model_validate({"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T08:00:00Z"})
    later = threading.Timer(0.1, lambda: made.write_status(ended))
    later.start()
    assert pj.attach("mnist").wait().phase == "Completed"
    later.join()
    held.release()


def test_an_engine_that_ends_while_a_job_is_looked_at_was_not_killed(monkeypatch: pytest.MonkeyPatch):
    """It writes the last status before it lets go of the job, and the status may have been read before that."""
    made = stored("Running", finished=False)
    answers = iter([True])
    monkeypatch.setattr(JobFolder, "has_runner", property(lambda _: next(answers, False)))
    seen = LocalTarget(JobStore()).find(made.key)
    assert seen is not None and seen.phase == "Running"
