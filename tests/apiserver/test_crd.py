"""The CRD on a real API server: what it accepts, what it rejects with which message, and what kubectl prints."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.rules import NAME_LIMIT
from paddlejob.api.validate import change_faults, faults
from testbed.controlplane import ControlPlane
from tests.support.builders import document, template
from tests.support.seeds import ABSENT, seed_jobs

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [
    pytest.param(one, id=f"{path.name}:{one['metadata']['name']}")
    for path in sorted((ROOT / "deploy/examples").glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text())
    if one and one["kind"] == "PaddleJob"
]
SEEDS = [pytest.param(text, id=source) for source, text in seed_jobs()] or [
    pytest.param("", marks=pytest.mark.skip(reason=ABSENT))
]
Object = dict[str, Any]


def create(plane: ControlPlane, namespace: str, job: Object | str, *options: str) -> subprocess.CompletedProcess[str]:
    text = job if isinstance(job, str) else json.dumps(_in(job, namespace))
    return plane.kubectl("create", "-n", namespace, "-f", "-", *options, input=text, check=False)


def replace(plane: ControlPlane, namespace: str, job: Object) -> subprocess.CompletedProcess[str]:
    text = json.dumps(_in(job, namespace))
    return plane.kubectl("replace", "-n", namespace, "-f", "-", input=text, check=False)


@pytest.mark.parametrize("job", EXAMPLES)
def test_every_example_is_accepted_by_the_server_and_offline(job: Object, installed: ControlPlane, namespace: str):
    done = create(installed, namespace, job, "--dry-run=server")
    assert done.returncode == 0, done.stderr
    assert faults(job) == []


@pytest.mark.parametrize("text", SEEDS)
def test_every_job_of_the_documents_is_accepted_unchanged(text: str, installed: ControlPlane, namespace: str):
    job = next(one for one in yaml.safe_load_all(text) if one["kind"] == "PaddleJob")
    done = create(installed, namespace, yaml.safe_dump(job))
    assert done.returncode == 0, done.stderr
    assert faults(job) == []


def _with(path: str, value: Any, **options: Any) -> Object:
    job = document(**options)
    _walk(job, path)[path.rsplit(".", 1)[1]] = value
    return job


def _walk(job: Object, path: str) -> Any:
    part: Any = job
    for step in path.split(".")[:-1]:
        part = part[int(step)] if step.isdigit() else part[step]
    return part


IN_TEMPLATE = "spec.worker.template.spec"
FAIL_42 = {"action": "Fail", "onExitCodes": {"operator": "In", "values": [42]}}


def _with_rule(**rule: Any) -> Object:
    return document(failurePolicy={"rules": [FAIL_42, rule]})


REJECTED = {
    "a failure policy without rules": (document(failurePolicy={"rules": []}), "failurePolicy.rules"),
    "a failure rule without an action": (_with_rule(onReasons=["Stalled"]), "action"),
    "a failure rule with an unknown action": (_with_rule(action="Retry", onReasons=["Stalled"]), "action"),
    "a failure rule that never applies": (_with_rule(action="Fail"), "failurePolicy.rules"),
    "a failure rule on statuses and reasons": (_with_rule(**FAIL_42, onReasons=["Stalled"]), "failurePolicy.rules"),
    "a failure rule on an unknown reason": (_with_rule(action="Fail", onReasons=["OOM"]), "onReasons"),
    "a failure rule on no status": (
        _with_rule(action="Fail", onExitCodes={"operator": "In", "values": []}),
        "onExitCodes.values",
    ),
    "a failure rule on success": (
        _with_rule(action="Fail", onExitCodes={"operator": "In", "values": [0]}),
        "onExitCodes.values",
    ),
    "a failure rule on servers of a job without servers": (
        _with_rule(action="Fail", onExitCodes={"role": "ps", "operator": "NotIn", "values": [1]}),
        "failurePolicy.rules",
    ),
    "an unknown field": (_with("spec.intranett", "PodIP"), "intranett"),
    "an unknown field in a template": (_with(f"{IN_TEMPLATE}.containers.0.imag", "x"), "imag"),
    "an unknown intranet": (_with("spec.intranet", "Bridge"), "intranet"),
    "an unknown policy": (_with("spec.cleanPodPolicy", "Sometimes"), "cleanPodPolicy"),
    "a pattern that is not a regular expression": (
        _with("spec.progress", {"pattern": "(?P<step>"}),
        "progress.pattern",
    ),
    "a pattern without named groups": (_with("spec.progress", {"pattern": "step ([0-9]+)"}), "progress.pattern"),
    "a pattern that looks ahead": (_with("spec.progress", {"pattern": "(?P<step>x)(?=y)"}), "progress.pattern"),
    "a pattern that is too long": (_with("spec.progress", {"pattern": "(?P<step>x)" + "y" * 500}), "progress.pattern"),
    "too many metrics": (_with("spec.progress", {"metrics": ["x"] * 21}), "progress.metrics"),
    "no replicas": (_with("spec.worker.replicas", 0), "replicas"),
    "more replicas than limits": (document(worker_={"limits": 1}), "replicas"),
    "fewer replicas than requests": (document(worker_={"requests": 3}), "replicas"),
    "ps without worker": (document(ps=1, workers=0), "worker"),
    "no role at all": (document(workers=0), "worker"),
    "heter without ps": (document(heter=1), "ps"),
    "a name too long for a pod": (document("n" * (NAME_LIMIT - 8)), "metadata.name"),
    "a name too long once it is scaled": (document("n" * (NAME_LIMIT - 10), worker_={"limits": 101}), "metadata.name"),
    "a name with a dot": (document("my.job"), "metadata.name"),
    "a name that no Service may have": (document("9lives", intranet="Service"), "metadata.name"),
    "gloo 3": (_with("spec.withGloo", 3), "withGloo"),
    "a template without containers": (_with(f"{IN_TEMPLATE}.containers", []), "containers"),
    "a template with no spec": (_with("spec.worker.template", {}), "spec"),
    "a manager that is not a path": (_with("spec.managedBy", "kueue"), "managedBy"),
    "a manager with a name too long": (_with("spec.managedBy", "example.com/" + "x" * 52), "managedBy"),
    "two policies that differ": (document(cleanPolicy="Never", cleanPodPolicy="Always"), "cleanPolicy"),
    "hang detection without the log": (
        document(stallSeconds=60, progress={"enabled": False}),
        "stallSeconds",
    ),
    "a gang larger than the job": (document(schedulingPolicy={"minAvailable": 3}), "minAvailable"),
    "a topology of nothing": (document(schedulingPolicy={"topology": {}}), "schedulingPolicy"),
    "both kinds of topology": (
        document(schedulingPolicy={"topology": {"preferred": "zone", "required": "zone"}}),
        "schedulingPolicy",
    ),
    "an empty topology label": (document(schedulingPolicy={"topology": {"required": ""}}), "schedulingPolicy"),
    "a topology that is no label": (document(schedulingPolicy={"topology": {"required": "a/b/c"}}), "schedulingPolicy"),
    "a topology with an invalid prefix": (
        document(schedulingPolicy={"topology": {"preferred": "a..b/c"}}),
        "schedulingPolicy",
    ),
    "a topology label too long": (document(schedulingPolicy={"topology": {"preferred": "x" * 64}}), "schedulingPolicy"),
    "a backoff limit of more than 32 bits": (_with("spec.backoffLimit", 2**31), "backoffLimit"),
    "a time to live that no integer holds": (_with("spec.ttlSecondsAfterFinished", 10**20), "ttlSecondsAfterFinished"),
    "a grace period of more than 64 bits": (
        _with(f"{IN_TEMPLATE}.terminationGracePeriodSeconds", 2**63),
        "terminationGracePeriodSeconds",
    ),
    "a queue that is no label": (document(labels={"kueue.x-k8s.io/queue-name": "a b"}), "metadata.labels"),
    "a label that is too long": (document(labels={"team": "x" * 64}), "metadata.labels"),
    "a label with an invalid key": (document(labels={"our team": "x"}), "metadata.labels"),
    "a negative backoff limit": (_with("spec.backoffLimit", -1), "backoffLimit"),
    "a deadline of nothing": (_with("spec.activeDeadlineSeconds", 0), "activeDeadlineSeconds"),
    "text for a number": (_with("spec.elastic", "one"), "elastic"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected_by_the_server_and_offline_alike(case: str, installed: ControlPlane, namespace: str):
    job, field = REJECTED[case]
    done = create(installed, namespace, job)
    assert done.returncode != 0, "the server accepted it"
    assert field in done.stderr, done.stderr
    found = faults(job)
    assert any(field in one for one in found), found


def test_offline_all_errors_are_listed_at_once():
    job = document(intranet="Bridge", withGloo=3)
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["imag"] = "x"
    assert len(faults(job)) == 3


BEFORE = document(ps=1, elastic=0, schedulingPolicy={"queue": "a"}, worker_={"limits": 4})
OTHER = template(command=["true"])
CHANGES: dict[str, tuple[str, Any, bool]] = {
    "intranet": ("spec.intranet", "Host", False),
    "manager": ("spec.managedBy", "example.com/another", False),
    "gloo": ("spec.withGloo", 0, False),
    "elastic": ("spec.elastic", 1, False),
    "queue": ("spec.schedulingPolicy", {"queue": "b"}, False),
    "topology": ("spec.schedulingPolicy", {"queue": "a", "topology": {"required": "zone"}}, False),
    "servers": ("spec.ps.replicas", 2, False),
    "limits": ("spec.worker.limits", 5, False),
    "template": ("spec.worker.template", OTHER, False),
    "template of servers": ("spec.ps.template", OTHER, False),
    "workers of a job that is not elastic": ("spec.worker.replicas", 3, False),
    "suspend": ("spec.suspend", True, True),
    "ttl": ("spec.ttlSecondsAfterFinished", 5, True),
    "deadline": ("spec.activeDeadlineSeconds", 50, True),
    "backoff limit": ("spec.backoffLimit", 9, True),
    "failure policy": ("spec.failurePolicy", {"rules": [FAIL_42]}, True),
    "clean policy": ("spec.cleanPodPolicy", "Never", True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_may_change_while_a_job_runs(case: str, installed: ControlPlane, namespace: str):
    path, value, allowed = CHANGES[case]
    assert create(installed, namespace, BEFORE).returncode == 0
    after = copy.deepcopy(BEFORE)
    _walk(after, path)[path.rsplit(".", 1)[1]] = value
    done = replace(installed, namespace, after)
    assert (done.returncode == 0) is allowed, done.stderr
    assert (change_faults(after, BEFORE) == []) is allowed
    if not allowed:
        assert path.split(".")[1] in done.stderr


def _in(job: Object, namespace: str) -> Object:
    return job | {"metadata": job["metadata"] | {"namespace": namespace}}


@pytest.mark.parametrize("before", [True, False])
def test_templates_and_workers_may_change_while_suspended_and_in_the_update_that_suspends_the_job(
    installed: ControlPlane, namespace: str, before: bool
):
    old = document(suspend=before)
    assert create(installed, namespace, old).returncode == 0
    new = document(workers=3, suspend=not before, worker_={"template": OTHER})
    done = replace(installed, namespace, new)
    assert done.returncode == 0, done.stderr
    assert change_faults(new, old) == []


def test_an_elastic_job_is_scaled_by_kubectl_within_its_bounds(installed: ControlPlane, namespace: str):
    assert create(installed, namespace, document("x", elastic=1, worker_={"limits": 4})).returncode == 0
    installed.kubectl("scale", "-n", namespace, "pdj/x", "--replicas=3")
    done = installed.kubectl("scale", "-n", namespace, "pdj/x", "--replicas=5", check=False)
    assert "outside requests to limits" in done.stderr
    assert create(installed, namespace, document("y")).returncode == 0
    done = installed.kubectl("scale", "-n", namespace, "pdj/y", "--replicas=3", check=False)
    assert "elastic" in done.stderr


def test_kubectl_explains(installed: ControlPlane):
    text = installed.kubectl("explain", "pdj.spec.cleanPodPolicy").stdout
    assert "servers of a completed job keep running" in " ".join(text.split())


def test_old_names_of_policies_are_accepted(installed: ControlPlane, namespace: str):
    for number, name in enumerate(("OnFailed", "Oncompletion")):
        assert create(installed, namespace, document(f"old-{number}", cleanPolicy=name)).returncode == 0


def test_apply_twice_changes_nothing(installed: ControlPlane, namespace: str):
    text = json.dumps(_in(document("twice"), namespace))
    installed.kubectl("apply", "-n", namespace, "-f", "-", input=text)
    done = installed.kubectl("apply", "-n", namespace, "-f", "-", input=text)
    assert "unchanged" in done.stdout


def test_the_crd_can_be_applied_over_itself(installed: ControlPlane):
    done = installed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "deploy/v1/crd.yaml"))
    assert done.returncode == 0
