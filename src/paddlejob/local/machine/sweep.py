"""Ending what a killed engine may have left behind where there are no PID namespaces."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from paddlejob.local.machine.proc import environments
from paddlejob.local.runtime.env import MARK
from paddlejob.local.store import JobFolder


def sweep(folder: JobFolder) -> None:
    """Kill every process that bears the mark of a pod of this job."""
    marks = {f"{MARK}={record['uid']}".encode() for record in folder.pods()}
    for pid, environment in environments():
        if marks & set(environment):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
