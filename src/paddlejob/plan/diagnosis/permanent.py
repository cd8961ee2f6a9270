"""Failures that another attempt cannot fix.

The command does not exist, the engine cannot run the template, or the program has an error that it always ends with.
"""

from __future__ import annotations

import re

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan import times, volumes
from paddlejob.plan.diagnosis import error_line
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

INVALID_TEMPLATE = Reason.INVALID_TEMPLATE
"""Set by an engine that knows that a pod can never start."""
HOOK_FAILED = Reason.POST_START_HOOK_ERROR
"""Set by an engine that killed a container because its postStart hook failed; the message says how."""
START_REASONS = ("StartError", "ContainerCannotRun")
MISSING = r"^[^:\n]+: needs .+, which does not exist$"
"""What the embedded engine says of a command whose interpreter is not installed."""
WRONG_COMMAND = re.compile(
    r'exec: ".*": (executable file not found|stat .*: no such file|permission denied|is a directory|exec format error)'
    r"|executable file .* not found"
    r"|chdir to cwd .* failed: (no such file|permission denied|not a directory)"
    r"|^[^:\n]+: (no such command|no such file or directory|permission denied|not a directory|exec format error)$"
    rf"|{MISSING}",
    re.IGNORECASE,
)
"""What runc, crun and the embedded engine say; other errors of a start may be the fault of the node."""
SHELL_CODES = (126, 127)
SIGNALLED = 128
"""Exit statuses from here on are those of signals."""
NOT_EXECUTED = re.compile(r"(not found|no such file or directory|permission denied|cannot execute.*)$", re.IGNORECASE)
"""The last line of a shell that ends with one of its codes."""
TRAINED = 60.0
"""Seconds after which a command that a shell does not find is not the one that trains."""


def is_permanent(s: Snapshot, pod: Pod) -> bool:
    if pod.reason == INVALID_TEMPLATE:
        return True
    return not _has_trained(s) and (is_wrong_command(pod) or is_not_found(pod) or _has_certain_error(s, pod))


def is_wrong_command(pod: Pod) -> bool:
    """Whether the runtime could not execute the command."""
    return pod.reason in START_REASONS and WRONG_COMMAND.search(pod.message) is not None


def needs_another(pod: Pod) -> bool:
    """Whether the command exists, and the program that runs it does not."""
    return re.search(MISSING, pod.message) is not None


def is_not_found(pod: Pod) -> bool:
    """Whether a shell could not execute a command."""
    return pod.exit_code in SHELL_CODES and NOT_EXECUTED.search(pod.message.strip()) is not None


def _has_certain_error(s: Snapshot, pod: Pod) -> bool:
    alone = len(s.slots) == 1 and not volumes.may_be_filled(s.job, pod.role)
    return chose_status(pod) and error_line.is_certain(error_line.find(pod.message), alone)


def chose_status(pod: Pod) -> bool:
    """Whether the program ended by itself: signals, and Paddle's launcher after the end of a peer, exit with more."""
    return pod.exit_code is not None and 0 < pod.exit_code < SIGNALLED and not pod.reason and not pod.init_failed


def _has_trained(s: Snapshot) -> bool:
    """Then the command exists, and what is missing may be there on another node."""
    running = s.status.condition(Phase.RUNNING)
    if running is None:
        return False
    began = s.status.attempt == 1 and running.status == "True"
    return not began or s.now - times.parse(running.lastTransitionTime) > TRAINED
