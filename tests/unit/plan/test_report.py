"""What a job's status counts, and which of its news are warnings."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase, Role
from paddlejob.engine.backend import Rejected
from paddlejob.plan import PodGroup, PodPhase, plan
from paddlejob.plan.diagnosis.rejections import BEING_DELETED
from tests.support.builders import NOON, having, job, pod, running, template, world
from tests.support.model import Model


def warnings(model: Model) -> list[str]:
    return [one.reason for one in model.events if one.warning]


def test_pods_are_counted_by_what_their_program_does():
    made = running(job(ps=2, workers=6))
    phases = [PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.WAITING]
    workers = [pod(made, "worker", index, phase) for index, phase in enumerate([*phases, PodPhase.PENDING])]
    servers = [pod(made, "ps", index) for index in range(2)]
    status = plan(made, world(*servers, *workers, environments={1: "uid"}), NOON).status
    assert status.worker is not None
    assert status.worker.model_dump() == {
        "replicas": 6,
        "pending": 2,
        "running": 3,
        "succeeded": 1,
        "failed": 0,
        "ready": "3/6",
        "finished": "3",
        "members": "",
        "ranks": "",
    }
    assert status.ps is not None
    assert (status.ps.running, status.ps.ready) == (2, "2/2")


def test_pods_that_failed_are_counted_when_the_job_has():
    made = running(job(workers=2, backoffLimit=0))
    pods = (pod(made, "worker", 0, PodPhase.FAILED, exit_code=1), pod(made, "worker", 1))
    status = plan(made, world(*pods, environments={1: "uid"}), NOON).status
    assert status.phase is Phase.FAILED
    assert status.worker is not None
    assert (status.worker.failed, status.worker.running, status.worker.succeeded) == (1, 1, 0)


@pytest.mark.parametrize(("policy", "here", "ready"), [("Always", 0, "0/2"), ("Never", 1, "0/2"), ("Never", 0, "2/2")])
def test_servers_that_are_stopped_when_the_job_completes_no_longer_count_as_running(policy, here, ready):
    """Under `pdj run` they are stopped, and on a cluster only if cleanPodPolicy says so."""
    made = running(job(ps=2, workers=1, cleanPodPolicy=policy))
    pods = [pod(made, "ps", 0), pod(made, "ps", 1), pod(made, "worker", 0, PodPhase.SUCCEEDED)]
    status = plan(made, world(*pods, environments={1: "uid"}, stop_when_finished=bool(here)), NOON).status
    assert status.phase is Phase.COMPLETED
    assert status.ps is not None
    assert status.ps.ready == ready


async def test_ordinary_progress_gives_no_warning():
    model = Model(job(ps=1, workers=2, intranet="Service"))
    await model.settle()
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
        await model.settle()
    assert [(one.reason, one.warning) for one in model.events] == [("Completed", False)]


async def test_suspending_and_resuming_give_no_warning():
    model = Model(job())
    await model.settle()
    model.kubelet_runs = False
    model.edit(suspend=True)
    await model.step()
    model.edit()
    await model.step()
    assert model.status.reason == "Resumed", "the old pods are still terminating"
    model.kubelet_runs = True
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert warnings(model) == []


async def test_waiting_for_a_pod_group_gives_no_warning():
    gang = template() | {"spec": {**template()["spec"], "schedulerName": "volcano"}}
    model = Model(job(worker_={"template": gang}))
    await model.step()
    model.groups["mnist"] = PodGroup("mnist", "theirs", owned=False, phase="Running")
    await model.settle()
    own = Model(job(schedulingPolicy={}))
    await own.settle()
    assert (model.status.phase, own.status.phase) == (Phase.RUNNING, Phase.RUNNING)
    assert warnings(model) == warnings(own) == []


async def test_waiting_for_pods_of_an_earlier_job_gives_no_warning():
    model = Model(job())
    model.rejects["mnist-worker-0"] = Rejected(BEING_DELETED, "it is being deleted")
    for _ in range(3):
        await model.step()
        model.now += 0.3
    assert model.status.reason == "WaitingForOldPods"
    model.rejects.clear()
    await model.settle()
    assert warnings(model) == []


def test_a_long_message_is_cut():
    made = running(job(workers=1, backoffLimit=0))
    failed = pod(made, "worker", 0, PodPhase.FAILED, exit_code=1, message="x" * 5000)
    status = plan(made, world(failed, environments={1: "u"}), NOON).status
    assert 100 < len(status.message) <= 2000


def test_a_worker_whose_success_is_on_record_has_not_failed_when_its_pod_is_deleted():
    made = running(job(workers=2))
    done = {"worker": made.status.role(Role.WORKER).model_copy(update={"finished": "0"})}
    made = having(made, made.status.model_copy(update=done))
    gone = pod(made, "worker", 0, PodPhase.FAILED, exit_code=0, deletion_due=NOON + 30)
    status = plan(made, world(gone, pod(made, "worker", 1), environments={1: "u"}), NOON).status
    assert (status.phase, status.attempt) == (Phase.RUNNING, 1)
    assert (status.role(Role.WORKER).succeeded, status.role(Role.WORKER).failed) == (1, 0)


def test_a_pod_that_reached_the_deadline_of_its_template_failed_and_the_message_says_so():
    made = running(job(workers=1, backoffLimit=0))
    ended = pod(made, "worker", 0, PodPhase.FAILED, exit_code=0, reason="DeadlineExceeded")
    status = plan(made, world(ended, environments={1: "u"}), NOON).status
    assert status.phase is Phase.FAILED
    assert "mnist-worker-0 reached activeDeadlineSeconds of its template; raise it" in status.message
