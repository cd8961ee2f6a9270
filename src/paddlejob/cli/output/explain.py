"""The text of `pdj why`: the state of a job, the reason, recent events, and what to do next."""

from __future__ import annotations

import re
from pathlib import Path

from paddlejob.api.types import Phase
from paddlejob.cli.output.humanize import age, restarts, run_time
from paddlejob.cli.output.log_tail import last_lines
from paddlejob.cli.targets.target import JobView, PodView

MAX_EVENTS = 8
LOG_LINES = 12
STATES = {
    "Completed": "completed",
    "Failed": "failed",
    "Interrupted": "was interrupted",
    "Deleting": "is being deleted",
}
"""Phases that do not read as `is <phase>`."""
CHANGE_THE_JOB = ("DeadlineExceeded", "StartError", "InvalidTemplate", "EnvironmentTooLarge", "InvalidSpec")
"""Reasons that the logs say nothing about."""
HINTS = (
    (
        r"No module named 'paddle'",
        "PaddlePaddle is not installed in the Python that ran the job. Run `pip install 'paddlejob[paddle]'` there, "
        "or choose another Python with --python.",
    ),
    (
        r"No module named '([\w.]+)'",
        "The Python that ran the job has no module {0}. Install it there, or choose another Python with --python.",
    ),
    (
        r"DistFleetWrapper",
        "This build of PaddlePaddle has no parameter server. Version 2.6.2 does: pip install 'paddlejob[paddle]'",
    ),
    (
        r"cd: (?:can't cd to )?(/\S+?):? ",
        "{0} does not exist because the volume mounted above it is empty. Map it with --volume CLAIM=DIR.",
    ),
    (
        r"can't open file '([^']+)'",
        "The program {0} does not exist. Check that it is in a volume or in the directory of the image (--image).",
    ),
    (r"No space left on device|the disk is full", "A disk is full. Free some space, then run the job again."),
    (
        r"Address already in use",
        "A port is already in use at the address of the pod. Check whether the program starts two servers.",
    ),
    (
        r"exit status 137\b",
        "Exit status 137 means that the process was killed, usually because memory ran out. "
        "Use a smaller batch or fewer replicas.",
    ),
    (
        r"exit status 139\b",
        "Exit status 139 means a crash in native code. With gloo, check that this machine resolves its own name: "
        "getent hosts $(hostname)",
    ),
    (
        r"could not start: .*no such command|could not start: .*No such file",
        "The command does not exist. Check its spelling.",
    ),
    (
        r"CUDA|cudaGetDevice|libcuda",
        "The program requires a GPU. On a machine without one, use --cpu and a CPU build of PaddlePaddle.",
    ),
)


def explain(view: JobView) -> str:
    """What happened to the job and what to do next, in paragraphs."""
    pod = _failed_pod(view)
    if view.job.status.phase is Phase.COMPLETED:
        parts = [_state(view), _events(view)]
    else:
        lines = last_lines(Path(pod.log), LOG_LINES) if pod and pod.log else []
        hint = _hint("\n".join([view.job.status.message, *lines]))
        parts = [_state(view), _events(view), _log(pod, lines), hint, _next_step(view, pod)]
    return "\n\n".join(part for part in parts if part)


def _state(view: JobView) -> str:
    name, status = view.job.name, view.job.status
    state = f"{name} {STATES.get(view.phase, f'is {view.phase.lower()}')}"
    if view.note:
        return f"{state}: {view.note}"
    if status.phase is Phase.COMPLETED:
        return f"{state}: {status.message}, in {run_time(view.job)}{restarts(view.job)}."
    if status.phase is Phase.RUNNING:
        return f"{state}: {status.message}, for {run_time(view.job)}{restarts(view.job)}."
    if not status.phase:
        return f"{name}: Not picked up by an operator yet ({age(view.job)} old)."
    headline, _, details = status.message.partition("\n")
    return f"{state}: {status.reason}: {headline}{restarts(view.job)}" + (f"\n{details}" if details else "")


def _failed_pod(view: JobView) -> PodView | None:
    """The replica that caused the failure; the others were only stopped with it."""
    failed = [pod for pod in view.pods if pod.state == "Failed"]
    return next((pod for pod in failed if view.names(pod)), failed[0] if failed else None)


def _events(view: JobView) -> str:
    lines = [f"  {event.time}  {event.reason}: {event.message.partition(chr(10))[0]}" for event in view.events]
    return "\n".join(["Events:", *lines[-MAX_EVENTS:]]) if lines else ""


def _log(pod: PodView | None, lines: list[str]) -> str:
    if not pod or not lines:
        return ""
    return "\n".join([f"Last lines of {pod.replica} ({pod.log}):", *(f"  {line}" for line in lines)])


def _hint(text: str) -> str:
    for pattern, hint in HINTS:
        match = re.search(pattern, text)
        if match:
            return f"Hint: {hint.format(*match.groups())}"
    return ""


def _next_step(view: JobView, pod: PodView | None) -> str:
    name, status = view.job.name, view.job.status
    if status.reason in CHANGE_THE_JOB:
        return "Next: change the job as described above, then run it again."
    if status.phase is Phase.FAILED:
        replica = f" --role {pod.role} --index {pod.index}" if pod else ""
        return f"Next: read `pdj logs {name}{replica}{view.flags}`, fix the cause, then run the job again."
    if status.phase is Phase.SUSPENDED:
        return f"Next: run `pdj resume {name}{view.flags}` to continue."
    return ""
