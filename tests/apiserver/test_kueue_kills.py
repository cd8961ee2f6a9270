"""With a real Kueue: whenever the operator is killed, no quota and no Workload is left behind."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from paddlejob.errors import ApiError, NotFound
from paddlejob.objects.resources import PADDLEJOBS, WORKLOADS
from testbed.controlplane import ControlPlane
from tests.support.kueue_fixtures import *  # noqa: F403
from tests.support.kueue_team import Object, Team, is_, until
from tests.support.operator_fixtures import ACCOUNT
from tests.support.operator_forks import OperatorForks

pytestmark = pytest.mark.full
KILLS = 200
QUOTA = 4
AT_ONCE = 4
"""Jobs of two workers each that want quota at any time: twice what there is."""
LABEL_JOB = "batch.paddlepaddle.org/job"


async def test_no_quota_is_lost_while_the_operator_is_killed_at_random(
    own_plane: ControlPlane, team: Team, tmp_path: Path
):
    """Jobs fail, end, are preempted and deleted all the time. Never do more pods run than have quota.

    Every fourth operator is killed before it has read the cluster, the others soon after they have.
    """
    await team.quota(QUOTA)
    players = Players(team, random.Random(15))
    with OperatorForks(Path(own_plane.kubeconfig_for(*ACCOUNT)), tmp_path / "log") as operators:
        playing = asyncio.create_task(players.play())
        for number in range(KILLS):
            await asyncio.to_thread(operators.start)
            if number % 4:
                await until(operators.is_working)
            await asyncio.sleep(players.chance.uniform(0.0, 0.8))
            assert not playing.done(), await playing
            await asyncio.to_thread(operators.kill)
        await asyncio.to_thread(operators.start)
        players.closing = True
        await asyncio.wait_for(playing, 240)
        await until(lambda: is_(team.used(), "0"))
    workloads = await team.client.list(WORKLOADS, team.namespace)
    jobs = {job["metadata"]["name"]: job for job in await team.client.list(PADDLEJOBS, team.namespace)}
    assert {one["metadata"]["labels"][LABEL_JOB] for one in workloads} <= jobs.keys(), "a Workload without a job"
    for name, job in jobs.items():
        assert job["status"]["phase"] == "Completed", job["status"]
        assert await team.condition(name, "Finished") == "True", name
    print(f"{KILLS} kills, {len(jobs)} jobs: {players.seen}")
    assert players.seen.keys() >= {"succeeded", "failed", "deleted", "suspended"}, "too little happened"


class Players:
    """Users and programs: jobs are submitted and deleted, and their workers succeed and fail."""

    def __init__(self, team: Team, chance: random.Random) -> None:
        self.team = team
        self.chance = chance
        self.closing = False
        """Whether no more jobs are submitted."""
        self.seen: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._played: set[str] = set()

    async def play(self) -> None:
        while True:
            jobs = await self.team.client.list(PADDLEJOBS, self.team.namespace)
            pods = await self.team.kubelet.pods()
            self._judge(pods)
            open_ = [job for job in jobs if (job.get("status") or {}).get("phase") not in ("Completed", "Failed")]
            if self.closing and not open_:
                return
            if not self.closing and len(open_) < AT_ONCE:
                await self._submit()
            for job in open_:
                await self._act(job, [pod for pod in pods if pod["metadata"]["labels"][LABEL_JOB] == name_of(job)])
            await asyncio.sleep(0.1)

    def _judge(self, pods: list[Object]) -> None:
        alive = [name_of(pod) for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
        assert len(alive) <= QUOTA, f"more pods than quota: {alive}"

    async def _submit(self) -> None:
        name = f"job-{next(self._numbers)}"
        priority = self.chance.choice(["low", "low", "high"])
        policy = self.chance.choice(["Always", "Never"])
        await self.team.submit(name, priority, workers=2, backoffLimit=100, cleanPodPolicy=policy)

    async def _act(self, job: Object, pods: list[Object]) -> None:
        """Once for each pod, when both workers run or have succeeded."""
        self.seen["suspended"] += (job.get("status") or {}).get("phase") == "Suspended"
        kept = [pod for pod in pods if not is_deleted(pod)]
        running = [pod for pod in kept if pod["status"].get("phase") == "Running"]
        succeeded = sum(pod["status"].get("phase") == "Succeeded" for pod in kept)
        uid = running[0]["metadata"]["uid"] if running else ""
        if not running or len(running) + succeeded < 2 or uid in self._played:
            return
        self._played.add(uid)
        what = (
            "succeeded" if self.closing else self.chance.choice(["succeeded", "failed", "deleted", "nothing", "apart"])
        )
        self.seen[what] += 1
        try:
            await self._do(what, name_of(job), running)
        except (NotFound, ApiError):
            return

    async def _do(self, what: str, job: str, running: list[Object]) -> None:
        match what:
            case "deleted":
                await self.team.client.delete(PADDLEJOBS, job, self.team.namespace, propagation="Background")
            case "failed":
                await self.team.kubelet.exit(name_of(running[0]), 1)
            case "apart":
                await self.team.kubelet.exit(name_of(running[0]), 0)
            case "succeeded":
                for pod in running:
                    await self.team.kubelet.exit(name_of(pod), 0)
            case "nothing":
                # It runs until it is preempted, or tried again.
                await asyncio.sleep(0.5)
                self._played.discard(running[0]["metadata"]["uid"])


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def is_deleted(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))
