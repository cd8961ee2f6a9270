"""An error of the engine becomes the reason and the message of the job, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.api.types import Phase, Status
from paddlejob.errors import NotPossible
from paddlejob.local.engine_error import describe, report_error
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support.builders import NOON, document

ERROR = KeyError("volumes")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    made, lock = JobStore(tmp_path).begin(document(), RunOptions(), NOON)
    yield made
    lock.release()


def status(folder: JobFolder) -> Status:
    job = folder.job()
    assert job is not None
    return job.status


def test_an_error_raised_on_purpose_speaks_for_itself():
    assert describe(NotPossible("this needs Linux; use a virtual machine"), None) == (
        "this needs Linux; use a virtual machine"
    )


def test_any_other_error_names_its_type_and_where_its_traceback_is():
    assert describe(ERROR, Path("/state/engine.log")).startswith(
        "the engine failed: KeyError: 'volumes'; the traceback is in /state/engine.log."
    )
    assert "ValueError: no message; the traceback is in the output of the engine" in describe(ValueError(), None)


def test_an_error_that_may_pass_is_on_the_job_and_in_its_events_once(folder: JobFolder):
    for _ in range(3):
        report_error(folder, ERROR, None, NOON, final=False)
    assert (status(folder).reason, status(folder).phase) == ("EngineError", Status().phase)
    assert "KeyError: 'volumes'" in status(folder).message
    (event,) = folder.events()
    assert event == {
        "time": "2027-01-15T08:00:00Z",
        "reason": "EngineError",
        "message": status(folder).message,
        "warning": True,
    }


def test_another_error_replaces_it(folder: JobFolder):
    report_error(folder, ERROR, None, NOON, final=False)
    report_error(folder, ValueError("other"), None, NOON, final=False)
    assert "ValueError: other" in status(folder).message
    assert len(folder.events()) == 2


def test_a_final_error_fails_the_job_even_if_it_is_known_already(folder: JobFolder):
    report_error(folder, ERROR, None, NOON, final=False)
    report_error(folder, ERROR, None, NOON + 5, final=True)
    assert status(folder).phase is Phase.FAILED
    assert status(folder).completionTime == "2027-01-15T08:00:05Z"


def test_a_job_that_has_ended_keeps_its_result(folder: JobFolder):
    folder.write_status(Status(phase=Phase.COMPLETED, reason="Completed"))
    report_error(folder, ERROR, None, NOON, final=True)
    assert (status(folder).phase, status(folder).reason) == (Phase.COMPLETED, "Completed")
    assert folder.events() == []


def test_an_error_on_a_job_that_is_gone_or_damaged_is_only_logged(
    folder: JobFolder, capsys: pytest.CaptureFixture[str]
):
    (folder.path / "job.json").write_text("{")
    report_error(JobFolder(folder.path.parents[2], folder.key), ERROR, None, NOON, final=True)
    printed = capsys.readouterr().out
    assert "default/mnist:" in printed
    assert "DamagedFile" in printed
    folder.remove()
    report_error(folder, ERROR, None, NOON, final=True)
    assert not folder.path.exists()
