"""A suspended job has no pods. What it had is an old attempt; resuming begins a new one, and counts as no restart."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import gang
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.rebuild import delete_pods
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def hold_suspended(s: Snapshot) -> Plan | None:
    if not s.job.spec.suspend:
        return None
    message = "spec.suspend is true; set it to false (or `pdj resume`) to go on"
    if s.status.phase is Phase.SUSPENDED:
        status = reported(s, Phase.SUSPENDED, "Suspended", message)
        return Plan(status, (*delete_pods(s, "suspended"), *gang.leave(s)))
    status = reported(
        s,
        Phase.SUSPENDED,
        "Suspended",
        message,
        # A job without a status may have pods already.
        attempt=max(s.status.attempt, *(pod.attempt for pod in s.world.pods), 0) + 1,
        startTime="",
        nextRestartTime="",
        worker=s.status.role(Role.WORKER).model_copy(update={"finished": ""}),
    )
    return Plan(status, (*delete_pods(s, "suspended"), *gang.leave(s), RecordEvent("Suspended", message)))
