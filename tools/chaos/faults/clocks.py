"""Wrong clocks. What programs in containers see stays true, so that heartbeats can be compared."""

from __future__ import annotations

import time

from testbed import clocks
from tools.chaos.faults.hit import Fault, Hit, works
from tools.chaos.ledger import DISRUPTION
from tools.chaos.stage import Stage, name_of

OFFSETS = (-3600, -60, -3, 0, 60, 3600)
WRONG = 12
"""Seconds for which the clock of the operator is wrong."""


def node_clock_stepped(stage: Stage) -> Hit | None:
    """Step the clock of a node. It stays so while other faults strike."""
    node, offset = stage.a_node(), stage.random.choice(OFFSETS)
    # Controllers may start again for it, and take nodes for lost.
    stage.blame(DISRUPTION)
    stage.cluster.step_clock(node, offset)
    return Hit(f"{node.name} by {offset:+} s", works(stage))


def daylight_saving_ended(stage: Stage) -> Hit | None:
    """The local times in the logs of a node are an hour earlier from now on."""
    node = stage.a_node()
    node.end_daylight_saving(stage.random.choice([0, 5]))
    return Hit(f"on {node.name}", works(stage))


def operator_clock_stepped(stage: Stage) -> Hit | None:
    pods, offset = stage.operators(), stage.random.choice([-3600, 3600])
    processes = [pid for pod in pods for pid in stage.processes(pod)]
    if not processes:
        return None
    _shift(processes, offset)
    time.sleep(WRONG)
    _shift(processes, 0)
    return Hit(f"{', '.join(map(name_of, pods))} by {offset:+} s", works(stage))


def _shift(processes: list[int], offset: int) -> None:
    for pid in processes:
        try:
            clocks.shift(pid, offset)
        except ProcessLookupError:
            continue


STEPPED: tuple[Fault, ...] = (node_clock_stepped, operator_clock_stepped)
OF_CLOCKS: tuple[Fault, ...] = (daylight_saving_ended, *(STEPPED if clocks.SUPPORTED else ()))
