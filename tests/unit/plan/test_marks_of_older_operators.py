"""Digests that an older operator stored on pods and in a status: another value would restart running jobs."""

from __future__ import annotations

from paddlejob.plan.manifests.build_mark import build_digest, build_mark, is_built_from, template_digest
from tests.support.builders import job


def test_the_digests_of_a_job_are_those_of_the_operators_before_this_one():
    assert build_digest(job()) == "dcbbc2f08d7a"
    assert template_digest(job()) == "6c3eedd9baf8"


def test_a_number_of_replicas_changes_what_pods_are_built_from_and_not_the_template():
    assert build_digest(job(workers=3)) != build_digest(job(workers=2))
    assert template_digest(job(workers=3)) == template_digest(job(workers=2))


def test_a_mark_holds_for_the_same_digest_or_the_same_generation():
    made, other = job(workers=2), job(workers=3)
    assert build_mark(made) == "dcbbc2f08d7a/1"
    assert is_built_from(made, "dcbbc2f08d7a/9")
    assert is_built_from(other, build_mark(made)), "the user changed nothing, only a default did"
    assert not is_built_from(other, "dcbbc2f08d7a/9")
