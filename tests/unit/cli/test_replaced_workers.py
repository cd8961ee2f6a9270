"""`pdj get` names the workers that were replaced while the others trained."""

from __future__ import annotations

from paddlejob.cli.output.tables import job_page
from paddlejob.targets.views import JobView
from tests.support.builders import job


def page(replacements: str, workers: int = 3) -> str:
    made = job(ps=1, workers=workers, status={"phase": "Running", "attempt": 1, "replacements": replacements})
    return job_page(JobView(made, {}, "Running", "", []))


def test_each_replaced_worker_is_named_with_how_often():
    assert (
        page("worker-1:2+,worker-2:1").splitlines()[-1] == "Replaced alone in this attempt: worker-1 (2), worker-2 (1)"
    )


def test_workers_that_were_added_or_removed_are_not():
    assert "Replaced" not in page("worker-2:0,worker-3:1")


def test_of_many_the_first_are_named():
    many = ",".join(f"worker-{index}:1" for index in range(20))
    assert page(many, workers=20).endswith("worker-7 (1) and 12 more")
