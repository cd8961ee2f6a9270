"""How a job is doing, as a few sentences: where it stands, why, what happened on the way, and what to do next."""

from __future__ import annotations

import re
from pathlib import Path

from paddlejob.api.types import Phase
from paddlejob.cli.humanize import age, lasted, restarts
from paddlejob.cli.tails import last_lines
from paddlejob.cli.targets.target import JobView, PodView

EVENTS = 8
LINES = 12
HINTS = (
    (
        r"No module named 'paddle'",
        "PaddlePaddle is not installed in the Python that ran this: pip install 'paddlejob[paddle]', or --python",
    ),
    (r"No module named '([\w.]+)'", "the Python that ran this lacks the module {0}: install it there"),
    (r"DistFleetWrapper", "this PaddlePaddle has no parameter server; 2.6.2 has: pip install 'paddlejob[paddle]'"),
    (r"cd: (?:can't cd to )?(/\S+?):? ", "{0} is not there: what is mounted above it is empty; --volume CLAIM=DIR"),
    (r"can't open file '([^']+)'", "there is no program {0}: is it in the image's directory (--image) or a volume?"),
    (r"No space left on device|the disk is full", "a disk is full: free some room, then run the job again"),
    (r"Address already in use", "a port is taken at the pod's address: does the program start two servers?"),
    (
        r"exit status 137\b",
        "137 is a process that was killed, most often for a lack of memory: use a smaller batch or fewer replicas",
    ),
    (
        r"exit status 139\b",
        "139 is a crash in native code; with gloo: does this machine resolve its own name (getent hosts $(hostname))?",
    ),
    (r"could not start: .*no such command|could not start: .*No such file", "is the command spelt as it should be?"),
    (r"CUDA|cudaGetDevice|libcuda", "the program looks for a GPU; on a machine without, --cpu and a CPU build help"),
)


def explain(view: JobView) -> str:
    job = view.job
    parts = [f"{job.name} is {view.phase.lower()}: {_standing(view)}"]
    parts += _happened(view)
    failed = _failed(view)
    lines = last_lines(Path(failed.log), LINES) if failed and failed.log else []
    if failed and lines and job.status.phase is not Phase.COMPLETED:
        parts.append(f"The last lines of {failed.role}-{failed.index} ({failed.log}):\n" + _indented(lines))
    hint = _hint("\n".join([job.status.message, *lines]))
    if hint and job.status.phase is not Phase.COMPLETED:
        parts.append(f"Hint: {hint}")
    advice = _advice(view, failed)
    return "\n\n".join([*parts, advice] if advice else parts)


def _standing(view: JobView) -> str:
    status = view.job.status
    if view.note:
        return view.note + "."
    if status.phase is Phase.COMPLETED:
        return f"{status.message}, in {lasted(view.job)}{restarts(view.job)}."
    if status.phase is Phase.RUNNING:
        return f"{status.message}, for {lasted(view.job)}{restarts(view.job)}."
    if not status.phase:
        return f"nobody has worked on it yet; it is {age(view.job)} old."
    headline, _, words = status.message.partition("\n")
    return f"{status.reason}: {headline}{restarts(view.job)}" + (f"\n{words}" if words else "")


def _failed(view: JobView) -> PodView | None:
    """The replica to blame. The others were only ended with it."""
    failed = [pod for pod in view.pods if pod.state == "Failed"]
    said = view.job.status.headline.split()
    return next((pod for pod in failed if pod.name in said), failed[0] if failed else None)


def _happened(view: JobView) -> list[str]:
    told = [f"  {event.time}  {event.reason}: {event.message.partition(chr(10))[0]}" for event in view.events]
    return ["What happened:\n" + "\n".join(told[-EVENTS:])] if told else []


def _hint(text: str) -> str:
    for pattern, words in HINTS:
        found = re.search(pattern, text)
        if found:
            return words.format(*found.groups())
    return ""


def _advice(view: JobView, failed: PodView | None) -> str:
    name = view.job.name
    if view.job.status.reason in ("DeadlineExceeded", "StartError", "EnvironmentTooLarge", "InvalidSpec"):
        return "Next: change the job as it says, and run it again."
    if view.job.status.phase is Phase.FAILED:
        which = f" --role {failed.role} --index {failed.index}" if failed else ""
        return f"Next: read `pdj logs {name}{which}{view.flags}`, correct what it says, and run the job again."
    if view.job.status.phase is Phase.SUSPENDED:
        return f"Next: `pdj resume {name}{view.flags}` lets it go on."
    return ""


def _indented(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)
