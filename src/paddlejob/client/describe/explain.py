"""The text of `pdj why`: the state of a job, the reason, recent events, the last output, and what to do next."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paddlejob.api.types import Phase
from paddlejob.client.describe.humanize import age, restart_note, restarts, run_time
from paddlejob.client.describe.next_step import next_step
from paddlejob.client.describe.progress import ago, progress_line, reported_output
from paddlejob.logs.files import last_lines
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import EventView, JobView, PodView

MAX_EVENTS = 8
LOG_LINES = 12
STATES = {
    "Completed": "completed",
    "Failed": "failed",
    "Interrupted": "was interrupted",
    "Deleting": "is being deleted",
}
"""Phases that do not read as `is <phase>`."""
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
        r"cd: (?:can't cd to )?(/\S+?):?(?:\s|$)",
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
        r"exit status 247\b",
        "Exit status 247 is -9: Paddle's launcher reports that one of its processes was killed, usually because memory "
        "ran out. Use a smaller batch or fewer replicas.",
    ),
    (
        r"exit status 241\b",
        "Exit status 241 is -15: Paddle's launcher reports that one of its processes was terminated (SIGTERM). "
        "Look for the first error in the logs of all replicas.",
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


@dataclass(frozen=True)
class Explanation:
    """What happened to a job and what to do next."""

    state: str
    progress: str
    events: list[EventView]
    last_output: str
    log: list[str]
    """The last lines of the replica that failed."""
    log_title: str
    hint: str
    next: str
    note: str = ""

    def __str__(self) -> str:
        parts = [
            self.state,
            self.progress,
            self.note,
            _paragraph("Events:", [_event(event) for event in self.events]),
            self.last_output,
        ]
        parts += [_paragraph(self.log_title, self.log), self.hint, f"Next: {self.next}"]
        return "\n\n".join(part for part in parts if part)


def explain(view: JobView, output: LastOutput | None = None) -> Explanation:
    """The explanation of a job whose replicas last wrote this output."""
    pod = _failed_pod(view) if view.job.status.phase is not Phase.COMPLETED else None
    lines = last_lines(Path(pod.log), LOG_LINES) if pod and pod.log else []
    failed = view.job.status.phase is not Phase.COMPLETED
    return Explanation(
        state=_state(view, with_details=not lines),
        progress=_progress(view),
        events=view.events[-MAX_EVENTS:],
        last_output=_last_output(output or reported_output(view.job)),
        log=lines,
        log_title=f"Last lines of {pod.replica} ({pod.log}):" if pod else "",
        hint=(_hint("\n".join([view.job.status.message, *lines])) if failed else "") or _loss_hint(view),
        next=next_step(view, pod),
        note=restart_note(view.job),
    )


def as_data(view: JobView, output: LastOutput | None) -> dict[str, Any]:
    """The explanation for programs."""
    explained, status = explain(view, output), view.job.status
    last = {"replica": output.replica, "secondsAgo": int(_seconds_ago(output))} if output else None
    return {
        "name": view.job.name,
        "namespace": view.job.namespace,
        "phase": view.phase,
        "reason": status.reason,
        "message": view.note or status.message,
        "events": [asdict(event) for event in explained.events],
        "progress": explained.progress.removeprefix("Progress: ").removesuffix("."),
        "lastOutput": last,
        "log": explained.log,
        "hint": explained.hint.removeprefix("Hint: "),
        "next": explained.next,
    }


def _state(view: JobView, with_details: bool) -> str:
    """Without the output of the program if the end of its log follows."""
    name, status = view.job.name, view.job.status
    state = f"{name} {STATES.get(view.phase, f'is {view.phase.lower()}')}"
    if view.note:
        return f"{state}: {view.note.rpartition('; ')[0] or view.note}"
    if status.phase is Phase.COMPLETED:
        return f"{state}: {status.message}, in {run_time(view.job)}{restarts(view.job)}."
    if not status.phase and not view.job.spec.is_ours:
        return f"{name}: Managed by {view.job.spec.managedBy}, which has not reported a status yet."
    if not status.phase:
        return f"{name}: Not picked up by an operator yet ({age(view.job)} old)."
    shown = f"\n{status.output}" if status.output and with_details else ""
    if status.phase is Phase.RUNNING:
        return f"{state}: {status.headline}, for {run_time(view.job)}{restarts(view.job)}.{shown}"
    return f"{state}: {status.reason}: {status.headline}{restarts(view.job)}{shown}"


def _failed_pod(view: JobView) -> PodView | None:
    """The replica that caused the failure; the others were only stopped with it."""
    failed = [pod for pod in view.pods if pod.state == "Failed"]
    return next((pod for pod in failed if view.names(pod)), failed[0] if failed else None)


def _event(event: EventView) -> str:
    return f"{event.time}  {event.reason}: {event.message.partition(chr(10))[0]}"


def _last_output(output: LastOutput | None) -> str:
    if output is None:
        return ""
    return f"Last output: {ago(output)}, from {output.replica}." if output.replica else f"Last output: {ago(output)}."


def _progress(view: JobView) -> str:
    line = progress_line(view.job)
    return f"Progress: {line}." if line else ""


def _seconds_ago(output: LastOutput) -> float:
    return max(0.0, time.time() - output.time)


def _paragraph(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _loss_hint(view: JobView) -> str:
    """A loss that is not a number stays so: the program goes on without learning."""
    progress = view.job.status.progress
    loss = progress.nonFinite.get("loss") if progress else None
    if loss is None:
        return ""
    return f"Hint: The loss is {loss}. Lower the learning rate, clip gradients, or check the data."


def _hint(text: str) -> str:
    for pattern, hint in HINTS:
        match = re.search(pattern, text)
        if match:
            return f"Hint: {hint.format(*match.groups())}"
    return ""
