"""The logs of jobs on a cluster: lines, samples, curves, pages, searches and downloads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from paddlejob.errors import BadInput, Unreachable
from paddlejob.kube.client import Client
from paddlejob.logs import job_pods, pod_follower, pods
from paddlejob.logs.line import LogLine
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.series import LoggedSample
from paddlejob.targets.cluster import job_logs
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.cluster.job_logs import in_batches
from paddlejob.targets.log_views import LastLines, LastOutput, LogRef
from paddlejob.targets.views import JobView
from tests.support.builders import NOON, job
from tests.support.scripted_cluster import JOB, ScriptedCluster

RUNNING = {"phase": "Running", "attempt": 1}
ENDED = {"phase": "Completed", "attempt": 2, "completionTime": "2027-01-15T09:00:00Z"}
KEY = ("default", "mnist")


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pods, job_pods, pod_follower):
        monkeypatch.setattr(module, "PAUSE", 0.01)
    monkeypatch.setattr(job_logs, "PAGE_PAUSE", 0.01)


@pytest.fixture
async def logged(api: ScriptedCluster) -> ScriptedCluster:
    """A server and two workers in the second attempt, and a worker of the first."""
    api.add_job(ENDED, ps=1)
    for role, index, attempt in (("worker", 0, 1), ("worker", 1, 2), ("worker", 0, 2), ("ps", 0, 2)):
        name = api.add_pod(index, role=role, attempt=attempt, state="terminated")["metadata"]["name"]
        api.logs[name] = [f"step {index + 1}/3 loss={attempt}.5", f"end of {role}-{index}"]
    return api


async def read(target: ClusterTarget, follow: bool = False, **selection: Any) -> list[str]:
    """As they are printed."""
    stream = await target.logs(*KEY, LogSelection(**selection), follow)
    lines = [line async for batch in stream.batches for line in batch]
    return [(line.named() if stream.several else line.content).decode() for line in lines]


@pytest.mark.parametrize("follow", [False, True])
async def test_the_logs_of_the_latest_attempt_name_each_replica(
    logged: ScriptedCluster, target: ClusterTarget, follow: bool
):
    lines = await read(target, follow)
    ends = [line for line in lines if "end" in line]
    assert sorted(ends) == ["[ps-0] end of ps-0", "[worker-0] end of worker-0", "[worker-1] end of worker-1"]
    assert len(lines) == 6
    if not follow:
        assert ends == sorted(ends), "one replica after another, servers first"


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("selection", "lines"),
    [
        ({"role": "worker", "index": 1}, ["step 2/3 loss=2.5", "end of worker-1"]),
        ({"role": "ps", "index": 0, "tail": 1}, ["end of ps-0"]),
        ({"role": "worker", "index": 0, "attempt": 1}, ["step 1/3 loss=1.5", "end of worker-0"]),
        ({"role": "worker", "tail": 1}, ["[worker-0] end of worker-0", "[worker-1] end of worker-1"]),
        ({"role": "worker", "index": 1, "tail": 1, "pattern": re.compile(b"loss")}, ["step 2/3 loss=2.5"]),
        ({"role": "worker", "index": 1, "pattern": re.compile(b"^end")}, ["end of worker-1"]),
        ({"role": "worker", "index": 1, "since": NOON + 1}, ["end of worker-1"]),
    ],
)
async def test_lines_are_selected(
    logged: ScriptedCluster, target: ClusterTarget, follow: bool, selection: dict[str, Any], lines: list[str]
):
    assert sorted(await read(target, follow, **selection)) == sorted(lines)


@pytest.mark.parametrize("follow", [False, True])
async def test_a_log_that_does_not_exist_is_one_message(api: ScriptedCluster, target: ClusterTarget, follow: bool):
    message = "job mnist has no such log; list its replicas with `pdj get mnist --cluster`"
    api.add_job(ENDED, cleanPodPolicy="OnFailure")
    api.add_pod(state="waiting")
    with pytest.raises(BadInput, match=message):
        await read(target, follow)
    api.objects.pop("default/pods/mnist-worker-0")
    with pytest.raises(BadInput, match=message):
        await read(target, follow)
    api.add_job(ENDED, cleanPodPolicy="OnCompletion")
    with pytest.raises(
        BadInput, match=r"its pods were removed with their logs \(cleanPodPolicy: OnCompletion\); to keep"
    ):
        await read(target, follow)
    with pytest.raises(BadInput, match="--run: a cluster keeps no previous runs"):
        await read(target, run=1)
    api.objects.clear()
    with pytest.raises(BadInput, match="job mnist not found"):
        await read(target, follow)


async def test_while_a_cluster_does_not_answer_that_is_said_once_and_logs_go_on(
    logged: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    logged.add_job(RUNNING)
    logged.add_pod(1, attempt=2)
    answers = [True, True, False, False, True, False]
    get, said = Client.get, list[str]()

    async def sometimes(self: Client, *arguments: Any) -> dict[str, Any]:
        if not answers:
            logged.add_job(ENDED)
            logged.add_pod(1, attempt=2, state="terminated")
        elif arguments[1] == "mnist" and not answers.pop(0):
            raise Unreachable("no route")
        return await get(self, *arguments)

    monkeypatch.setattr(Client, "get", sometimes)
    stream = await target.logs(*KEY, LogSelection(role="worker", index=1), True, said.append)
    lines = [line.text async for batch in stream.batches for line in batch]
    assert said == ["no route"] * 2, "again after it had answered"
    assert lines == ["step 2/3 loss=2.5", "end of worker-1"]


async def test_a_job_whose_servers_still_run_is_done_once_it_is_quiet(
    logged: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pod_follower, "QUIET_SECONDS", 0.1)
    logged.add_pod(0, role="ps", attempt=2)
    assert await asyncio.wait_for(read(target, True, role="ps", index=0), 30) == ["step 1/3 loss=2.5", "end of ps-0"]


async def test_the_last_output_of_a_job_is_that_of_the_replica_that_printed_last(
    logged: ScriptedCluster, target: ClusterTarget
):
    logged.logs["mnist-worker-1-2"] = ["a", "b", "c", "d"]
    seen = JobView(job(), {}, "Running")
    output = await target.last_output(seen)
    assert output == LastOutput("worker-1", pytest.approx(NOON + 3, abs=1))
    logged.logs = {name: [] for name in logged.logs}
    assert await target.last_output(seen) is None


async def samples(target: ClusterTarget, follow: bool = False) -> list[LoggedSample]:
    return [one async for batch in target.samples(*KEY, follow) for one in batch]


async def test_samples_of_every_attempt_that_is_kept_come_with_their_times(
    logged: ScriptedCluster, target: ClusterTarget
):
    found = await samples(target)
    assert [(one.attempt, one.sample.step, one.sample.metrics["loss"]) for one in found] == [(1, 1, 1.5), (2, 1, 2.5)]
    assert all(one.time == pytest.approx(NOON, abs=1) for one in found)


async def test_an_attempt_without_worker_0_is_read_from_its_first_worker(api: ScriptedCluster, target: ClusterTarget):
    api.add_job(RUNNING)
    for index in (2, 1):
        api.logs[api.add_pod(index)["metadata"]["name"]] = [f"step {index}/9"]
    assert [one.sample.step for one in await samples(target)] == [1]


async def test_following_samples_continues_with_the_next_attempt_and_ends_with_the_job(
    api: ScriptedCluster, target: ClusterTarget
):
    api.add_job(RUNNING)
    api.logs["mnist-worker-0"] = ["step 1/2"]
    api.add_pod(state="terminated")
    following = target.samples(*KEY, follow=True)
    assert [one.sample.step for one in await anext(following)] == [1]
    api.logs["mnist-worker-0-2"] = ["step 2/2"]
    api.add_pod(attempt=2, state="terminated")
    api.add_job(ENDED)
    assert [(one.attempt, one.sample.step) async for batch in following for one in batch] == [(2, 2)]


@pytest.mark.parametrize(
    ("status", "state", "message"),
    [(ENDED, "", "its pods were removed with their logs"), (RUNNING, "waiting", "pdj get mnist --cluster")],
)
async def test_a_worker_without_a_log_is_one_message(
    api: ScriptedCluster, target: ClusterTarget, status: dict[str, Any], state: str, message: str
):
    api.add_job(status)
    if state:
        api.add_pod(state=state)
    with pytest.raises(BadInput, match=message):
        await samples(target)
    api.objects.clear()
    with pytest.raises(BadInput, match="job mnist not found"):
        await samples(target)


async def test_curves_are_read_on_from_where_reading_stopped_and_anew_for_a_new_job(
    logged: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    first = await target.series(*KEY)
    assert [(curve.attempt, curve.values) for curve in first.metrics["loss"]] == [(1, [1.5]), (2, [2.5])]
    logged.logs["mnist-worker-0-2"] += ["step 2/3 loss=0.5"]
    assert (await target.series(*KEY)).losses == (1.5, 2.5, 0.5)
    logged.objects[JOB]["metadata"]["uid"] = "another"
    assert (await target.series(*KEY)).metrics == {}, "the pods of another job are not its own"
    monkeypatch.setattr(job_logs, "KEPT_SERIES", 0)
    assert (await target.series("default", "absent")).metrics == {}


async def test_who_begins_to_watch_reads_the_end_of_a_log(logged: ScriptedCluster, target: ClusterTarget):
    logged.logs["mnist-worker-0-2"] = [f"step {step}/99 loss={step}" for step in range(10)]
    assert (await target.series(*KEY, first=2)).losses == (1.5, 8.0, 9.0)


async def test_the_end_of_the_log_that_explains_most_is_shown(api: ScriptedCluster, target: ClusterTarget):
    api.add_job({**RUNNING, "message": "mnist-worker-1 failed", "progress": {"step": 1}})
    for index in (0, 1):
        api.logs[api.add_pod(index)["metadata"]["name"]] = ["I0115 08:00:00.1 x", f"end of {index}"]
    view = await target.job(*KEY)
    assert await target.last_lines(view, 5) == LastLines("worker-1", ("end of 1",))
    assert await target.last_lines(view, 0) == LastLines()
    waiting = replace(view, pods=[replace(pod, state="Pending") for pod in view.pods])
    assert await target.last_lines(waiting, 1) == LastLines()
    api.objects.pop("default/pods/mnist-worker-1")
    assert await target.last_lines(view, 1) == LastLines("worker-1")


async def test_logs_are_listed_by_attempt(logged: ScriptedCluster, target: ClusterTarget):
    logged.add_pod(7, attempt=3, state="waiting")
    assert await target.log_refs(*KEY) == [
        LogRef(1, "worker-0"), LogRef(2, "ps-0"), LogRef(2, "worker-0"), LogRef(2, "worker-1")
    ]  # fmt: skip
    assert await target.log_refs("default", "absent") == []


async def test_a_page_gets_the_end_of_a_log_in_pieces(logged: ScriptedCluster, target: ClusterTarget):
    logged.logs["mnist-worker-1-2"] = ["[worker-3] x", " 1%\r50%"]
    every = [piece async for batch in target.log_pieces(*KEY, LogSelection()) for piece in batch]
    assert {piece.replica for piece in every} == {"ps-0", "worker-0", "worker-1"}
    own = [line for piece in every if piece.replica == "worker-1" for line in piece.lines]
    assert own == ["[worker-3] x", "50%"], "what looks like the name of a replica is a part of the line"
    assert all(query["tailLines"] == "1500" for path, query in logged.queries if path.endswith("/log"))


async def test_lines_come_in_batches_and_an_error_comes_after_them():
    async def lines() -> AsyncIterator[LogLine]:
        yield LogLine("worker-0", 1, None, b"a")
        yield LogLine("worker-0", 1, None, b"b")
        raise BadInput("gone")

    batches = []
    with pytest.raises(BadInput, match="gone"):
        async for batch in in_batches(lines()):
            batches.append(batch)
    assert [line.content for batch in batches for line in batch] == [b"a", b"b"]


async def test_the_logs_of_all_selected_replicas_are_searched(
    logged: ScriptedCluster, target: ClusterTarget, monkeypatch: pytest.MonkeyPatch
):
    found = await target.search(*KEY, LogSelection(), "^end")
    assert [(one.replica, one.attempt, one.line, one.text) for one in found.found] == [
        ("ps-0", 2, 2, "end of ps-0"), ("worker-0", 2, 2, "end of worker-0"), ("worker-1", 2, 2, "end of worker-1")
    ]  # fmt: skip
    sizes = [len("\n".join(logged.logs[name])) for name in ("mnist-ps-0-2", "mnist-worker-0-2", "mnist-worker-1-2")]
    assert (found.complete, found.searched) == (True, sum(sizes))
    monkeypatch.setattr(job_logs, "MOST_MATCHES", 2)
    cut = await target.search(*KEY, LogSelection(), "end")
    assert (len(cut.found), cut.complete) == (2, False)
    monkeypatch.setattr(job_logs, "SEARCH_LIMIT", 5)
    assert not (await target.search(*KEY, LogSelection("ps", 0), "end")).complete
    with pytest.raises(BadInput, match="is not a regular expression"):
        await target.search(*KEY, LogSelection(), "(")


async def test_logs_are_downloaded_with_names_where_there_are_several(logged: ScriptedCluster, target: ClusterTarget):
    one = b"".join([block async for block in target.download(*KEY, LogSelection("ps", 0))])
    assert one == b"step 1/3 loss=2.5\nend of ps-0\n"
    every = b"".join([block async for block in target.download(*KEY, LogSelection())])
    assert [line for line in every.decode().splitlines() if line.startswith("==>")] == [
        "==> ps-0 <==", "==> worker-0 <==", "==> worker-1 <=="
    ]  # fmt: skip
