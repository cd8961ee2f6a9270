"""An error of the engine, put on the job: the reason and the message that a user sees instead of a traceback."""

from __future__ import annotations

import traceback
from pathlib import Path

from paddlejob.api.types import Phase
from paddlejob.errors import PaddleJobError
from paddlejob.local.state.store import JobFolder
from paddlejob.plan import times

ENGINE_ERROR = "EngineError"


def describe(error: BaseException, log: Path | None) -> str:
    """The fact, then the remedy. An error that is raised on purpose carries both."""
    if isinstance(error, PaddleJobError):
        return str(error)
    kind = type(error).__name__
    where = str(log) if log else "the output of the engine"
    return (
        f"the engine failed: {kind}: {str(error) or 'no message'}; the traceback is in {where}. Correct the job if the "
        "message names one of its fields, otherwise report a bug"
    )


def log_error(error: BaseException, about: str) -> None:
    """To the log of the engine."""
    print(f"{about}:", *traceback.format_exception(error), flush=True)


def report_error(folder: JobFolder, cause: BaseException, log: Path | None, now: float, *, final: bool) -> None:
    """Write the error to the status of a job that has not ended, and as an event; a final one fails the job."""
    try:
        job = folder.job()
        if job is None or job.status.finished:
            return
        message = describe(cause, log)
        known = (job.status.reason, job.status.message) == (ENGINE_ERROR, message)
        ended = {"phase": Phase.FAILED, "completionTime": times.format(now)} if final else {}
        changes = {"reason": ENGINE_ERROR, "message": message, **ended}
        if final or not known:
            folder.write_status(job.status.model_copy(update=changes))
            folder.add_event(now, ENGINE_ERROR, message, warning=True)
    except Exception as error:
        # The files of the job cannot be read or written: the log is all that is left.
        log_error(error, f"{folder.key[0]}/{folder.key[1]}")
