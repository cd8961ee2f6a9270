"""Jobs in queues of a real Kueue: they wait, are admitted, preempted and resumed, and give their quota back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS, WORKLOADS
from testbed.controlplane import ControlPlane
from tests.support.kueue_fixtures import *  # noqa: F403
from tests.support.kueue_team import TOLERATION, Team, has, has_length, is_, is_of, says, until
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_process import OperatorProcess

pytestmark = pytest.mark.full


@pytest.fixture(scope="module", autouse=True)
def kueue_operator(own_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "log"
    with OperatorProcess(Path(own_plane.kubeconfig_for(*ACCOUNT)), log) as process:
        process.until_ready()
        yield process


async def test_a_job_waits_for_quota_with_kueues_reason_and_runs_when_there_is_some(
    team: Team, own_plane: ControlPlane
):
    wait = ("wait", "-n", team.namespace, "pdj/second", "--timeout=60s")
    await team.quota(2)
    first = await team.submit("first", workers=2)
    await first.until(phase="Running", queue="research")
    second = await team.submit("second", workers=2)
    status = await second.until(phase="Pending", reason="WaitingForQuota")
    await until(lambda: says(second, "insufficient unused quota for cpu"))
    assert await second.pods() == {}
    assert "startTime" not in status
    assert "condition met" in own_plane.kubectl(*wait, "--for=condition=QuotaReserved=False").stdout
    for index in range(2):
        await first.exit(f"first-worker-{index}", 0)
    await first.until(phase="Completed")
    status = await second.until(phase="Running", attempt=1)
    assert "condition met" in own_plane.kubectl(*wait, "--for=condition=QuotaReserved").stdout
    (quota,) = (one for one in status["conditions"] if one["type"] == "QuotaReserved")
    assert quota["message"] == "queue research admitted the job", "no longer what it waited for"
    pod = await team.client.get(PODS, "second-worker-0", team.namespace)
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert TOLERATION in pod["spec"]["tolerations"]
    await until(lambda: is_(team.condition("second", "PodsReady"), "True"))


async def test_a_job_of_low_priority_is_preempted_and_continues_later(team: Team):
    await team.quota(2)
    low = await team.submit("low", "low", workers=2)
    await low.until(phase="Running")
    high = await team.submit("high", "high", workers=2)
    await low.until(phase="Suspended")
    await high.until(phase="Running")
    assert await low.pods() == {}
    assert await team.used() == "2"
    for index in range(2):
        await high.exit(f"high-worker-{index}", 0)
    await high.until(phase="Completed")
    status = await low.until(phase="Running", attempt=2)
    assert (status.get("restarts", 0), status.get("disruptions", 0)) == (0, 0)


async def test_an_elastic_job_starts_with_the_workers_that_have_quota(team: Team):
    await team.quota(3)
    job = await team.submit("elastic", workers=4, elastic=1, worker_={"requests": 2, "limits": 4})
    status = await job.until(phase="Running")
    assert sorted(await job.pods()) == [f"elastic-worker-{index}" for index in range(3)]
    assert "queue research has quota for 3" in status["message"]
    assert (await job.environment("elastic-worker-2"))["PADDLE_TRAINERS_NUM"] == "3"


async def test_workers_that_are_done_and_a_job_that_ended_give_their_quota_back(team: Team):
    await team.quota(3)
    job = await team.submit("done", workers=3, cleanPodPolicy="Never")
    await job.until(phase="Running")
    await job.exit("done-worker-0", 0)
    await until(lambda: is_(team.used(), "2"))
    await job.exit("done-worker-1", 0)
    await job.exit("done-worker-2", 0)
    seconds = await until(lambda: is_(team.condition("done", "Finished"), "True"))
    await until(lambda: is_(team.used(), "0"))
    print(f"the Workload finished {seconds:.2f} s after the last pod")
    assert seconds < 15


async def test_quota_follows_the_last_pod_and_not_before(team: Team):
    """By the order in which the API server stored the changes; the seconds between them are printed."""
    await team.quota(2)
    low = await team.submit("low", "low", workers=2)
    await low.until(phase="Running")
    async with team.changes(PODS) as pods, team.changes(WORKLOADS) as workloads:
        high = await team.submit("high", "high", workers=2)
        await high.until(phase="Running")
        await low.until(phase="Suspended")
        gone = await pods.last(lambda pod: is_of(pod, "low"), 2, "DELETED")
        released = await workloads.first(lambda one: is_of(one, "low") and has(one, "QuotaReserved", "False"))
        taken = await workloads.first(lambda one: is_of(one, "high") and has(one, "QuotaReserved", "True"))
        assert gone < released < taken, "no quota before the pods of the preempted job are gone"
        print(f"preempted: {released.at - gone.at:.2f} s from the last pod until its quota is given back, ", end="")
        print(f"{taken.at - gone.at:.2f} s until another job has it")
        for index in range(2):
            await high.exit(f"high-worker-{index}", 0)
        await low.until(phase="Running", attempt=2)
        ended = await pods.last(lambda pod: is_of(pod, "high") and pod["status"].get("phase") == "Succeeded", 2)
        finished = await workloads.first(lambda one: is_of(one, "high") and has(one, "Finished", "True"))
        taken = await workloads.first(lambda one: is_of(one, "low") and has(one, "QuotaReserved", "True"), released)
        assert ended < finished < taken
        print(f"completed: {finished.at - ended.at:.2f} s from the last pod until its quota is given back, ", end="")
        print(f"{taken.at - ended.at:.2f} s until another job has it")


async def test_kueue_finds_the_zone_that_has_room_and_chooses_nodes_in_the_order_of_ranks(team: Team):
    zone = "example.com/zone"
    nodes = {f"{team.namespace}-{name}": zone for name, zone in (("a", "east"), ("b", "west"), ("c", "west"))}
    policy = {"topology": {"required": zone}}
    async with team.zones(zone, nodes) as topology:
        await team.quota(5, topology)
        await team.kubelet.freeze()
        job = await team.submit("close", workers=2, schedulingPolicy=policy)

        async def placed() -> dict[str, dict[str, str]]:
            pods = [pod for pod in await team.client.list(PODS, team.namespace) if is_of(pod, "close")]
            free = [pod for pod in pods if not pod["spec"].get("schedulingGates")]
            return {pod["metadata"]["name"]: pod["spec"]["nodeSelector"] for pod in free}

        await until(lambda: has_length(placed(), 2))
        found = await placed()
        # Only the west has room for both.
        assert [found[f"close-worker-{index}"]["kubernetes.io/hostname"] for index in range(2)] == list(nodes)[1:]
        team.kubelet.frozen = False
        await job.until(phase="Running")
        assert (await job.environment("close-worker-1"))["PADDLE_TRAINER_ID"] == "1"
        large = await team.submit("large", workers=3, schedulingPolicy=policy)
        await until(lambda: says(large, "fit"))
        assert await large.pods() == {}
        print((await large.status())["message"])


async def test_a_deactivated_workload_stops_the_job_until_it_is_activated(team: Team):
    await team.quota(2)
    job = await team.submit("paused", workers=2)
    await job.until(phase="Running")
    found = await team.workload("paused")
    assert found is not None
    name = found["metadata"]["name"]
    await team.client.patch(WORKLOADS, name, team.namespace, {"spec": {"active": False}})
    await job.until(phase="Suspended", reason="Deactivated")
    await until(lambda: is_(team.used(), "0"))
    assert await job.pods() == {}
    await team.client.patch(WORKLOADS, name, team.namespace, {"spec": {"active": True}})
    await job.until(phase="Running", attempt=2)


async def test_a_suspended_job_leaves_the_queue_and_a_deleted_one_leaves_nothing(team: Team):
    await team.quota(2)
    job = await team.submit("idle", workers=2)
    await job.until(phase="Running")
    await job.change(suspend=True)
    await job.until(phase="Suspended", reason="Suspended")
    await until(lambda: is_(team.workload("idle"), None))
    await until(lambda: is_(team.used(), "0"))
    await job.change(suspend=False)
    await job.until(phase="Running")
    await team.client.delete(PADDLEJOBS, "idle", team.namespace, propagation="Background")
    await until(lambda: is_(team.workload("idle"), None))
    await until(lambda: is_(team.used(), "0"))


async def test_a_scaled_job_is_admitted_again_with_its_new_size(team: Team):
    await team.quota(3)
    job = await team.submit("scaled", workers=2, elastic=1)
    await job.until(phase="Running")
    await job.change(workers=3)
    await job.until(phase="Running", worker_ready="3/3")
    await until(lambda: is_(team.used(), "3"))


async def test_a_queue_that_does_not_exist_is_named(team: Team):
    job = await team.submit("lost", workers=2)
    await job.until(phase="Pending", reason="Inadmissible")
    await until(lambda: says(job, "research"))
    assert await job.pods() == {}


async def test_a_priority_class_that_does_not_exist_is_named(team: Team):
    await team.quota(2)
    job = await team.submit("classless", "nonesuch", workers=2)
    status = await job.until(phase="Pending", reason="PriorityClassUnreadable")
    assert "WorkloadPriorityClass nonesuch does not exist" in status["message"]
