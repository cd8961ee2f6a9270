"""What can be changed in a job that exists, and when."""

from __future__ import annotations

import copy

import pytest

from paddlejob.api.validate import change_faults
from tests.support.builders import document, template


def changed(options: dict, path: str, value: object) -> tuple[dict, dict]:
    """A job, and the same job with another value at `path`; None removes the field."""
    old = document(**options)
    new = copy.deepcopy(old)
    *parents, last = path.split(".")
    part = new["spec"]
    for step in parents:
        part = part[step]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return new, old


@pytest.mark.parametrize(
    ("options", "path", "value"),
    [
        ({}, "backoffLimit", 9),
        ({}, "suspend", True),
        ({}, "ttlSecondsAfterFinished", 60),
        ({"elastic": 1}, "worker.replicas", 3),
        ({"suspend": True}, "worker.replicas", 3),
        ({"suspend": True}, "worker.template", {"spec": {"containers": []}}),
        ({"suspend": True, "ps": 1}, "ps.template", {"spec": {"containers": []}}),
    ],
)
def test_a_change_that_is_allowed(options: dict, path: str, value: object):
    assert change_faults(*changed(options, path, value)) == []


@pytest.mark.parametrize(
    ("options", "path", "value", "where"),
    [
        ({}, "intranet", "Service", "spec.intranet cannot be changed"),
        ({}, "withGloo", 2, "spec.withGloo cannot be changed"),
        ({}, "elastic", 1, "spec.elastic cannot be changed"),
        ({}, "schedulingPolicy", {"queue": "a"}, "spec.schedulingPolicy cannot be changed"),
        ({"schedulingPolicy": {"queue": "a"}}, "schedulingPolicy", None, "spec.schedulingPolicy cannot be changed"),
        ({"ps": 1}, "ps.replicas", 2, "spec.ps: only its template can be changed"),
        ({"ps": 1}, "ps.requests", 1, "spec.ps: only its template can be changed"),
        ({"ps": 1}, "ps.limits", 2, "spec.ps: only its template can be changed"),
        ({"ps": 1, "heter": 1}, "heter.replicas", 2, "spec.heter: only its template can be changed"),
        ({"suspend": True}, "worker.requests", 1, "spec.worker: only its template can be changed"),
        ({"elastic": 1}, "worker.limits", 4, "spec.worker: only its template can be changed"),
        ({}, "worker.template", {"spec": {"containers": []}}, "spec.worker.template can be changed only while"),
        ({"ps": 1}, "ps.template", {"spec": {"containers": []}}, "spec.ps.template can be changed only while"),
        ({}, "worker.replicas", 3, "spec.worker: replicas can be changed while the job runs only if"),
    ],
)
def test_a_rejected_change_names_the_field(options: dict, path: str, value: object, where: str):
    (fault,) = change_faults(*changed(options, path, value))
    assert fault.startswith(where)


@pytest.mark.parametrize("role", ["ps", "heter", "worker"])
def test_a_role_that_is_added_or_removed_is_a_fault_and_not_a_crash(role: str):
    with_it = document(ps=1, heter=1)
    without = copy.deepcopy(with_it)
    del without["spec"][role]
    for new, old in ((with_it, without), (without, with_it)):
        (fault,) = change_faults(new, old)
        assert fault.startswith(f"spec.{role}: only its template can be changed")


def test_a_default_that_is_written_out_is_no_change():
    old = document(workers=1)
    del old["spec"]["worker"]["replicas"]
    new = copy.deepcopy(old)
    new["spec"] |= {"intranet": "PodIP", "withGloo": 1, "elastic": 0, "suspend": False}
    new["spec"]["worker"]["replicas"] = 1
    assert change_faults(new, old) == [] == change_faults(old, new)


def test_a_template_may_change_in_the_update_that_suspends_the_job_and_not_while_it_runs():
    other = {"template": template(command=["true"])}
    assert change_faults(document(suspend=True, workers=3, worker_=other), document()) == []
    found = change_faults(document(workers=3, worker_=other), document())
    assert [fault.split()[0].rstrip(":") for fault in found] == ["spec.worker.template", "spec.worker"]
    assert all("suspend" in fault for fault in found)
    assert change_faults(document(suspend=True, intranet="Host"), document()) != [], "which never changes"
