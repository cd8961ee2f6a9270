"""What to do next with a job: one sentence with commands that work as printed."""

from __future__ import annotations

from paddlejob.api.reasons import Remedy, remedy_of
from paddlejob.api.types import Phase, deletes_pods
from paddlejob.plan import names
from paddlejob.plan.workload import QUOTA_RESERVED
from paddlejob.targets.views import JobView, PodView


def next_step(view: JobView, pod: PodView | None) -> str:
    """`pod` is the replica that failed."""
    job, phase = f"{view.job.name}{view.flags}", view.job.status.phase
    if view.phase == "Deleting":
        return f"wait until it is deleted; `pdj get {job}` shows what is left."
    if view.note:
        return f"{view.note.rpartition('; ')[2]}."
    remedy = remedy_of(view.job.status.reason)
    if remedy is Remedy.JOB:
        return "change the job as described above, then run it again."
    if phase is Phase.FAILED:
        return _after_a_failure(view, pod)
    if phase is Phase.COMPLETED:
        read = f"read `pdj logs {job}`, or " if view.pods else ""
        return f"{read}remove the job and its logs with `pdj delete {job}`."
    if remedy is Remedy.QUEUE:
        return f"do what is described above; `pdj get {job}` shows when the job starts."
    if _waits_for_quota(view):
        show = f"kubectl get localqueue {view.job.status.queue}{names.namespace_flag(view.job.namespace)}"
        return f"wait until its queue has quota; `{show}` shows how many jobs wait there."
    if phase is Phase.SUSPENDED:
        return f"run `pdj resume {job}` to continue."
    if phase is Phase.RUNNING:
        return f"follow its output with `pdj logs -f {job}`."
    return f"wait; `pdj get {job}` shows the state of each replica."


def _waits_for_quota(view: JobView) -> bool:
    found = view.job.status.condition(QUOTA_RESERVED)
    return found is not None and found.status == "False" and not view.job.spec.suspend


def _after_a_failure(view: JobView, pod: PodView | None) -> str:
    if not view.pods and deletes_pods(view.job.spec.clean, Phase.FAILED):
        return "fix the cause, then run the job again; with cleanPodPolicy: OnCompletion its logs are kept."
    replica = f" --role {pod.role} --index {pod.index}" if pod else ""
    return f"read `pdj logs {view.job.name}{replica}{view.flags}`, fix the cause, then run the job again."
