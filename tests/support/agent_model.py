"""The model of a cluster whose pods have agents. They speak to the operator's real memory of reports and orders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.operator.agents.agents import Agents
from paddlejob.plan import Action, OrderAgents, Pod, PodPhase, World
from paddlejob.plan.world import AgentChannel, AgentReport, AgentState
from tests.support.builders import NOON, job, template
from tests.support.model import Model

CHANNEL = AgentChannel("https://operator:8443", "a certificate", {"agent.py": "a program"}, NOON)
PATIENCE = 10.0
"""Seconds for which an agent whose program ended waits for an answer."""
COMMAND = ["python", "train.py"]


def in_place_job(**options: Any) -> PaddleJob:
    roles = {f"{role}_": {"template": template(command=COMMAND)} for role in ("ps", "worker", "heter")}
    return job(**{**roles, "restartStrategy": "InPlace", **options})


@dataclass
class AgentInPod:
    """What the agent of one pod does, as src/paddlejob/agent does it."""

    attempt: int
    heard: float
    state: AgentState = AgentState.RUNNING
    status: int | None = None
    connected: bool = True
    obedient: bool = True
    """Whether its program ends on SIGTERM."""

    @property
    def report(self) -> AgentReport:
        return AgentReport(self.attempt, self.state, self.status, "Traceback" if self.status else "")


class AgentModel(Model):
    def __init__(self, job: PaddleJob, now: float = NOON) -> None:
        super().__init__(job, now)
        self.agents: dict[str, AgentInPod] = {}
        """By the uids of pods."""
        self.operator = self._new_operator()
        self.started: list[tuple[str, int]] = []
        """The starts of programs: pod uid and attempt, in order."""

    def _new_operator(self) -> Agents:
        return Agents(CHANNEL, monotonic=lambda: self.now)

    def world(self) -> World:
        seen = super().world()
        return replace(seen, channel=self.operator.channel, agents=self.operator.reports(pod.uid for pod in seen.pods))

    async def perform(self, job: PaddleJob, action: Action) -> None:
        await super().perform(job, action)
        if isinstance(action, OrderAgents):
            self.operator.order(action)

    def crash(self) -> None:
        super().crash()
        self.operator = self._new_operator()

    def agent(self, name: str) -> AgentInPod:
        return self.agents[self.pods[name].uid]

    def fail_program(self, name: str, code: int = 1) -> None:
        """The program of a pod fails; its agent holds the pod."""
        pod = self.pods.get(name)
        agent = self.agents.get(pod.uid) if pod else None
        if pod and agent and pod.phase is PodPhase.RUNNING and agent.state is AgentState.RUNNING:
            agent.state, agent.status, agent.heard = AgentState.EXITED, code, self.now
        elif agent is None:
            self.end(name, code)

    async def step(self) -> float | None:
        await self._exchange()
        wake_at = await super().step()
        await self._exchange()
        return wake_at

    async def _exchange(self) -> None:
        """Every agent that is connected asks once."""
        for pod in list(self.pods.values()):
            if pod.phase is not PodPhase.RUNNING or not self._has_agent(pod):
                continue
            if pod.uid not in self.agents:
                self.agents[pod.uid] = AgentInPod(pod.attempt, self.now)
                self._note_start(pod, pod.attempt)
            await self._ask(pod, self.agents[pod.uid])

    def _has_agent(self, pod: Pod) -> bool:
        variables = self.manifests[pod.name]["spec"]["containers"][0]["env"]
        return any(one["name"] == contract.ENV_AGENT_URL for one in variables)

    async def _ask(self, pod: Pod, agent: AgentInPod) -> None:
        if agent.connected:
            self.operator.take(pod.uid, agent.report)
            self._obey(pod, agent, await self.operator.answer(pod.uid, 0))
            agent.heard = self.now
        elif agent.state is not AgentState.RUNNING and self.now - agent.heard > PATIENCE:
            self._exit(pod, agent)

    def _obey(self, pod: Pod, agent: AgentInPod, answer: dict[str, Any]) -> None:
        begins, ended = answer.get("attempt", 0), agent.state is not AgentState.RUNNING
        match answer["order"]:
            case "stop" if begins > agent.attempt and not ended and agent.obedient:
                agent.state, agent.status = AgentState.STOPPED, 143
            case "start" if begins > agent.attempt and ended:
                agent.attempt, agent.state, agent.status = begins, AgentState.RUNNING, None
                self._note_start(pod, begins)
            case "release" if ended:
                self._exit(pod, agent)

    def _exit(self, pod: Pod, agent: AgentInPod) -> None:
        self.end(pod.name, agent.status or 143, message="Traceback")

    def _note_start(self, pod: Pod, attempt: int) -> None:
        """Never two attempts at once: when a program starts, nothing of an earlier attempt runs in any pod."""
        others = [self.agents.get(one.uid) for one in self.pods.values() if one.phase is PodPhase.RUNNING]
        running = [one.attempt for one in others if one and one.state is AgentState.RUNNING]
        assert all(one >= attempt for one in running), f"attempt {attempt} starts while {running} run"
        assert (pod.uid, attempt) not in self.started, f"{pod.name} starts attempt {attempt} twice"
        self.started.append((pod.uid, attempt))
