"""What the agents in pods report, and what they are ordered to do: in memory only, by the uids of their pods.

Both are levels, not events: an agent says what is, again and again, and gets an order as long as that differs from
what should be. So a lost answer, a broken connection or a new leader costs a moment and never an order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from paddlejob.plan import Order, OrderAgents
from paddlejob.plan.world import AgentChannel, AgentReport, AgentState

LIVE_SECONDS = 12.0
"""After its last request an agent counts as connected for this long; it waits at most 10 s before it tries again."""
FORGOTTEN_SECONDS = 120.0
NO_ORDER: dict[str, Any] = {"order": "none"}
SUPERSEDED = dict(NO_ORDER)
"""The answer to a request after which the same agent has sent another."""


@dataclass
class Agent:
    report: AgentReport
    heard: float
    asking: int = 0
    """The number of its open request; 0 if it has none."""
    requests: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Agents:
    """`channel` tells pods where the operator is; None if there is no channel."""

    def __init__(self, channel: AgentChannel | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.channel = channel
        self._monotonic = monotonic
        self._agents: dict[str, Agent] = {}
        self._orders: dict[str, OrderAgents] = {}

    def reports(self, uids: Iterable[str]) -> dict[str, AgentReport]:
        """Of those that are connected."""
        found = {uid: self._agents[uid] for uid in uids if uid in self._agents}
        return {uid: agent.report for uid, agent in found.items() if self._is_live(agent)}

    def _is_live(self, agent: Agent) -> bool:
        return bool(agent.asking) or self._monotonic() - agent.heard < LIVE_SECONDS

    def order(self, action: OrderAgents) -> None:
        """A repeated order changes nothing about the first; another one replaces it."""
        for uid in action.uids:
            known = self._orders.get(uid)
            if known is None or (known.order, known.attempt) != (action.order, action.attempt):
                self._orders[uid] = action
                if uid in self._agents:
                    self._agents[uid].changed.set()

    def take(self, uid: str, report: AgentReport) -> bool:
        """Remember what an agent reports. Returns whether that is news. Attempts only rise; older reports are late."""
        known, now = self._agents.get(uid), self._monotonic()
        if known is None:
            self._forget_gone(now)
            self._agents[uid] = Agent(report, now)
            return True
        was_live, known.heard = self._is_live(known), now
        if report.attempt < known.report.attempt or report == known.report:
            return not was_live
        known.report = report
        return True

    async def answer(self, uid: str, seconds: float) -> dict[str, Any]:
        """The order that the agent should follow now; after so many seconds, or when it asks again, none."""
        agent = self._agents[uid]
        agent.requests += 1
        number = agent.asking = agent.requests
        agent.changed.set()  # An earlier request of the same agent ends.
        try:
            async with asyncio.timeout(seconds):
                while agent.asking == number:
                    if found := self._order_for(uid, agent.report):
                        return found
                    agent.changed.clear()
                    await agent.changed.wait()
        except TimeoutError:
            pass
        finally:
            if agent.asking == number:
                agent.asking = 0
            agent.heard = self._monotonic()
        return NO_ORDER if agent.requests == number else SUPERSEDED

    def _order_for(self, uid: str, report: AgentReport) -> dict[str, Any] | None:
        order, ended = self._orders.get(uid), report.state is not AgentState.RUNNING
        if order is None:
            return None
        if order.order is Order.RELEASE:
            return {"order": "release"} if ended else None
        if order.attempt <= report.attempt:
            return None
        if order.order is Order.STOP and not ended:
            return {"order": "stop", "attempt": order.attempt, "graceSeconds": order.grace}
        if order.order is Order.START and ended:
            return {"order": "start", "attempt": order.attempt, "environment": dict(order.environment)}
        return None

    def _forget_gone(self, now: float) -> None:
        """Now and then, because pods come and go without end."""
        if len(self._agents) % 100 != 99:
            return
        gone = [uid for uid, one in self._agents.items() if not one.asking and now - one.heard > FORGOTTEN_SECONDS]
        for uid in gone:
            del self._agents[uid]
            self._orders.pop(uid, None)
