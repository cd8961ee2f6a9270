"""A suspended job has no pods. Resuming begins a new attempt, which is not counted as a restart."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan import names
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.finish import leave_gang
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.rebuild import delete_pods, pause
from paddlejob.plan.snapshot import Snapshot


def hold_suspended(s: Snapshot) -> Plan | None:
    if not s.job.spec.suspend:
        return None
    command = f"pdj resume {names.in_command(s.job.namespace, s.job.name)}"
    cause = Cause(Reason.SUSPENDED, "spec.suspend is true", f"run `{command}` or set it to false to continue")
    paused = s.status.phase is Phase.SUSPENDED
    status = reported(
        s, Phase.SUSPENDED, rejections.denied(s.world, s.world.pods) or cause, **({} if paused else pause(s))
    )
    events = () if paused else (RecordEvent(cause.reason, cause.message),)
    return Plan(status, (*delete_pods(s, "suspended"), *leave_gang(s), *events))
