"""The logs of a job on a cluster: which pods, which of their lines, and following them across restarts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Status
from paddlejob.errors import BadInput, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.logs import job_pods, pod_follower, pods
from paddlejob.logs.job_pods import (
    JobPods,
    first_worker_lines,
    follow_pod,
    last_output,
    read_pod,
    replica_of,
    select_pods,
)
from paddlejob.logs.pod_follower import PodFollower
from paddlejob.logs.selection import LogSelection
from paddlejob.objects.resources import PADDLEJOBS
from tests.support.builders import NOON, job
from tests.support.scripted_cluster import ScriptedCluster, failure

LOSS = re.compile(b"loss")
NAME = "mnist-worker-0"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pods, job_pods, pod_follower):
        monkeypatch.setattr(module, "PAUSE", 0.01)


def look(client: Client) -> Callable[[], Awaitable[JobPods | None]]:
    async def looked() -> JobPods:
        found = PaddleJob.model_validate(await client.get(PADDLEJOBS, "mnist", "default"))
        listed = await client.list(PODS, "default")
        return JobPods(found, sorted(listed, key=replica_of))

    return looked


async def texts(lines: Any) -> list[str]:
    return [line.text async for line in lines]


def test_pods_of_the_latest_attempt_that_have_started_are_selected(api: ScriptedCluster):
    made = [
        api.add_pod(0, role="ps", attempt=2), api.add_pod(0, attempt=1), api.add_pod(0, attempt=2),
        api.add_pod(1, attempt=2), api.add_pod(2, attempt=2, state="waiting"), api.add_pod(3, attempt=2, state=""),
    ]  # fmt: skip

    def selected(**selection: Any) -> list[str]:
        return [replica_of(pod) for pod in select_pods(made, LogSelection(**selection))]

    assert selected() == ["ps-0", "worker-0", "worker-1"]
    assert selected(role="worker") == ["worker-0", "worker-1"]
    assert (selected(index=1), selected(attempt=1), selected(attempt=7)) == (["worker-1"], ["worker-0"], [])
    assert selected(container="sidecar") == []


@pytest.mark.parametrize("how", [read_pod, follow_pod])
async def test_the_last_matching_lines_are_not_the_matching_ones_of_the_last(
    api: ScriptedCluster, client: Client, how: Any
):
    pod = api.add_pod(state="terminated")
    api.logs[NAME] = ["loss=3", "a", "loss=2", "b"]
    assert await texts(how(client, pod, LogSelection(pattern=LOSS, tail=1))) == ["loss=2"]
    assert await texts(how(client, pod, LogSelection(pattern=LOSS, tail=0))) == []
    assert await texts(how(client, pod, LogSelection(pattern=LOSS))) == ["loss=3", "loss=2"]
    assert await texts(how(client, pod, LogSelection(tail=1))) == ["b"]
    assert await texts(how(client, pod, LogSelection(since=NOON + 2))) == ["loss=2", "b"]


async def test_lines_that_come_while_the_last_matches_are_searched_are_neither_lost_nor_doubled(
    api: ScriptedCluster, client: Client
):
    pod = api.add_pod(state="terminated")
    api.logs[NAME] = ["loss=3", "a", "loss=2"]
    shown = []
    async for line in follow_pod(client, pod, LogSelection(pattern=LOSS, tail=1)):
        shown.append(line.text)
        if len(shown) == 1:
            api.logs[NAME] += ["loss=1", "b"]
    assert shown == ["loss=2", "loss=1"]


async def test_the_named_container_is_read(api: ScriptedCluster, client: Client):
    await texts(read_pod(client, api.add_pod(), LogSelection(container="sidecar")))
    assert api.queries[-1][1]["container"] == "sidecar"


async def test_a_pod_that_is_gone_has_no_lines_and_other_errors_are_for_people(api: ScriptedCluster, client: Client):
    pod = api.add_pod()
    api.answers["GET", f"default/pods/{NAME}/log"] = failure(404, "NotFound")
    assert await texts(read_pod(client, pod, LogSelection())) == []
    api.answers["GET", f"default/pods/{NAME}/log"] = failure(403, "Forbidden", "no logs for you")
    with pytest.raises(BadInput, match=f"cannot read the log of {NAME}: .*no logs for you"):
        await texts(read_pod(client, pod, LogSelection()))


async def test_the_first_worker_is_read_in_every_attempt_that_is_kept(api: ScriptedCluster, client: Client):
    api.add_job({"phase": "Running", "attempt": 3})
    for index, attempt, state in ((0, 1, "terminated"), (2, 2, "terminated"), (1, 2, "terminated"), (0, 3, "waiting")):
        pod = api.add_pod(index, attempt=attempt, state=state)
        api.logs[pod["metadata"]["name"]] = [f"worker {index} of {attempt}"]
    found = [line async for line in first_worker_lines(client, look(client), follow=False)]
    assert [(line.attempt, line.replica, line.text) for line in found] == [
        (1, "worker-0", "worker 0 of 1"),
        (2, "worker-1", "worker 1 of 2"),
    ]
    assert found[0].time == pytest.approx(NOON + 0.123, abs=0.001)


async def test_the_first_worker_is_followed_into_the_next_attempt_until_the_job_ends(
    api: ScriptedCluster, client: Client
):
    api.add_job({"phase": "Running", "attempt": 1})
    api.add_pod(state="terminated")
    api.logs[NAME] = ["one"]
    found = []
    async for line in first_worker_lines(client, look(client), follow=True):
        found.append(line.text)
        api.add_pod(attempt=2, state="terminated")
        api.logs[f"{NAME}-2"] = ["two"]
        api.add_job({"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"})
    assert found == ["one", "two"]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_job_without_logs_says_what_to_do(api: ScriptedCluster, client: Client, follow: bool):
    ended = {"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"}
    api.add_job(ended)
    expected = r"its pods were removed with their logs \(cleanPodPolicy: .*run the job again"
    with pytest.raises(BadInput, match=expected):
        await texts(first_worker_lines(client, look(client), follow, " --cluster"))
    api.add_pod(state="waiting")
    with pytest.raises(BadInput, match="pdj get mnist --cluster"):
        await texts(first_worker_lines(client, look(client), follow, " --cluster"))


@pytest.mark.parametrize(
    ("status", "suspend", "inactive"),
    [
        ({"phase": "Running"}, False, False),
        ({"phase": "Suspended"}, True, True),
        ({"phase": "Suspended"}, False, False),
        ({"phase": "Failed", "completionTime": "2027-01-15T08:00:00Z"}, False, True),
    ],
)
def test_a_job_that_lost_its_quota_continues_by_itself(status: dict[str, str], suspend: bool, inactive: bool):
    made = job(suspend=suspend)
    judged = made.model_copy(update={"status": made.status.model_validate(status)})
    assert JobPods(judged, []).inactive is inactive


async def test_the_replica_that_printed_last_is_named(api: ScriptedCluster, client: Client):
    found = [api.add_pod(0, role="ps"), api.add_pod(0), api.add_pod(1), api.add_pod(2, state="waiting")]
    assert await last_output(client, found) is None
    api.logs[NAME], api.logs["mnist-worker-1"] = ["a"], ["a", "b"]
    api.answers["GET", "default/pods/mnist-ps-0/log"] = failure(500, "InternalError")
    replica, moment = await last_output(client, found) or ("", 0.0)
    assert (replica, round(moment - NOON)) == ("worker-1", 1)


async def followed(client: Client, **selection: Any) -> list[str]:
    follower = PodFollower(client, look(client), LogSelection(**selection), lambda reason: None)
    return sorted([f"{line.replica} {line.text}" async for line in follower.lines(" --cluster")])


async def test_all_pods_of_a_job_are_followed_until_it_ends(api: ScriptedCluster, client: Client):
    api.add_job({"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"})
    for index in (0, 1):
        api.add_pod(index, state="terminated")
        api.logs[f"mnist-worker-{index}"] = [f"line {index}", "[worker-3] x"]
    assert await followed(client) == [
        *("worker-0 [worker-3] x", "worker-0 line 0"),
        *("worker-1 [worker-3] x", "worker-1 line 1"),
    ]
    assert await followed(client, index=1, pattern=re.compile(b"line")) == ["worker-1 line 1"]
    with pytest.raises(BadInput, match="pdj get mnist --cluster"):
        await followed(client, role="ps")


async def test_who_follows_is_told_once_that_the_cluster_does_not_answer(api: ScriptedCluster, client: Client):
    api.add_job({"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"})
    api.add_pod(state="terminated")
    api.logs[NAME] = ["line"]
    failures, reasons, real = [3], list[str](), look(client)

    async def unreliable() -> JobPods | None:
        failures[0] -= 1
        if failures[0] >= 0:
            raise Unreachable("no route")
        return await real()

    assert await texts(PodFollower(client, unreliable, LogSelection(), reasons.append).lines()) == ["line"]
    assert reasons == ["no route"]


async def test_an_error_of_one_pod_ends_following(api: ScriptedCluster, client: Client):
    api.add_job({"phase": "Running"})
    api.add_pod()
    api.answers["GET", f"default/pods/{NAME}/log"] = failure(403, "Forbidden", "no")
    with pytest.raises(BadInput, match="cannot read the log"):
        await followed(client)


async def test_a_job_that_is_deleted_ends_following(client: Client):
    async def gone() -> None:
        return None

    assert await texts(PodFollower(client, gone, LogSelection(), lambda reason: None).lines()) == []
    assert await texts(first_worker_lines(client, gone, follow=True)) == []


IN_PLACE = ["step=1 loss=3", "step=2 loss=2", "paddlejob: attempt 3 begins in place", "step=2 loss=1", "step=3 loss=0"]


@pytest.mark.parametrize("how", [read_pod, follow_pod])
async def test_attempts_that_ran_in_one_pod_are_told_apart(api: ScriptedCluster, client: Client, how: Any):
    pod = api.add_pod(state="terminated", attempt=2)
    api.logs[pod["metadata"]["name"]] = IN_PLACE
    assert await texts(how(client, pod, LogSelection(attempt=2))) == IN_PLACE[:2]
    assert await texts(how(client, pod, LogSelection(attempt=3))) == IN_PLACE[2:]
    assert await texts(how(client, pod, LogSelection(attempt=2, tail=1))) == IN_PLACE[1:2]
    assert await texts(how(client, pod, LogSelection())) == IN_PLACE
    assert [line.attempt async for line in how(client, pod, LogSelection())] == [2, 2, 3, 3, 3]


def test_a_pod_that_was_restarted_in_place_has_the_logs_of_all_its_attempts(api: ScriptedCluster):
    made = [api.add_pod(0, attempt=2)]
    status = Status(attempt=4, builtAttempt=2)
    found = {attempt: len(select_pods(made, LogSelection(attempt=attempt), status)) for attempt in range(6)}
    assert found == {0: 1, 1: 0, 2: 1, 3: 1, 4: 1, 5: 0}
    assert len(select_pods(made, LogSelection(attempt=3), Status(attempt=4))) == 0
