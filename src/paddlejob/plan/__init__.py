"""What should happen to a job next, decided from one frozen view of the world. Pure: no I/O, no clock, no randomness.

`plan(job, world, now)` returns the status to report and the actions to carry out, in that order. planner.py lists the
policies (policies/, one file each), manifests/ builds objects. What belongs here: decisions. What does not: how a
backend carries them out.
"""

from paddlejob.plan.actions import (
    Action,
    Create,
    Delete,
    DeleteJob,
    DropFinalizer,
    Kind,
    Order,
    OrderAgents,
    Plan,
    ReadLog,
    RecordEvent,
    Stop,
    UpdateWorkload,
    Wake,
)
from paddlejob.plan.planner import plan
from paddlejob.plan.world import Pod, PodGroup, PodPhase, Rejection, World

__all__ = [
    "Action",
    "Create",
    "Delete",
    "DeleteJob",
    "DropFinalizer",
    "Kind",
    "Order",
    "OrderAgents",
    "Plan",
    "Pod",
    "PodGroup",
    "PodPhase",
    "ReadLog",
    "RecordEvent",
    "Rejection",
    "Stop",
    "UpdateWorkload",
    "Wake",
    "World",
    "plan",
]
