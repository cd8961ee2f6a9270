"""The rules between fields at their bounds: the last value that is allowed, and the first that is not."""

from __future__ import annotations

import pytest

from paddlejob.api.validate import faults
from paddlejob.errors import sentence
from tests.support.builders import document

EXITS = {"operator": "In", "values": [42]}


def topology(**given: str) -> dict:
    return {"schedulingPolicy": {"topology": given}}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ps": 1, "heter": 1},
        {"worker_": {"requests": 2, "limits": 2}},
        {"worker_": {"requests": 1}},
        {"worker_": {"limits": 5}},
        {"ps": 1, "schedulingPolicy": {"minAvailable": 3}},
        {"schedulingPolicy": {"queue": "default"}},
        {"schedulingPolicy": {"topology": {"required": "topology.kubernetes.io/zone"}}},
        {"schedulingPolicy": {"topology": {"preferred": "rack"}, "minAvailable": 2}},
        {"schedulingPolicy": {"topology": {"preferred": "a.b/" + "x" * 63}}},
        {"cleanPodPolicy": "Never", "cleanPolicy": "Never"},
        {"cleanPolicy": "Never"},
        {"intranet": "Service"},
        {"withGloo": 0},
        {"withGloo": 2},
        {"backoffLimit": 0},
        {"activeDeadlineSeconds": 1},
        {"ttlSecondsAfterFinished": 0},
        {"workers": 10_000},
        {"failurePolicy": {"rules": [{"action": "Fail", "onReasons": ["OutOfMemory"]}] * 20}},
        {"failurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1, 255]}}]}},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
        {"managedBy": "e.com/" + "x" * 57},
        {"stallSeconds": 10, "progress": {"metrics": ["accuracy"]}},
    ],
)
def test_a_value_at_its_bound_is_valid(options: dict):
    assert faults(document(**options)) == []


@pytest.mark.parametrize(
    ("options", "where", "what"),
    [
        ({"workers": 0}, "spec.worker", "is missing"),
        ({"heter": 1}, "spec.ps", "is missing"),
        ({"worker_": {"requests": 3}}, "spec.worker.replicas", "2 is outside 3 to any"),
        ({"worker_": {"limits": 1}}, "spec.worker.replicas", "2 is outside 1 to 1"),
        ({"ps": 2, "ps_": {"limits": 1}}, "spec.ps.replicas", "2 is outside 1 to 1"),
        ({"ps": 1, "heter": 2, "heter_": {"limits": 1}}, "spec.heter.replicas", "2 is outside 1 to 1"),
        (
            {"ps": 1, "heter": 1, "schedulingPolicy": {"minAvailable": 5}},
            "spec.schedulingPolicy.minAvailable",
            "5 is more than the 4 pods",
        ),
        ({"cleanPodPolicy": "Never", "cleanPolicy": "Always"}, "spec.cleanPolicy", "Always differs from"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds", "0 is less than 1; use 1 or more"),
        ({"stallSeconds": 60, "progress": {"enabled": False}}, "spec.stallSeconds", "has no effect if the log is not"),
        ({"stallSeconds": 9}, "spec.stallSeconds", "9 is less than 10"),
        (
            {"failurePolicy": {"rules": [{"action": "Fail", "onReasons": ["Stalled"]}, {"action": "Fail"}]}},
            "spec.failurePolicy.rules",
            "rule 1 needs either onExitCodes or onReasons",
        ),
        (
            {"failurePolicy": {"rules": [{"action": "Fail", "onExitCodes": EXITS | {"role": "heter"}}]}},
            "spec.failurePolicy.rules",
            "rule 0 names heter, a role that the job does not have",
        ),
        ({"failurePolicy": {"rules": []}}, "spec.failurePolicy.rules", "is empty; add at least one"),
        (
            {"failurePolicy": {"rules": [{"action": "Fail", "onReasons": ["Stalled"]}] * 21}},
            "spec.failurePolicy.rules",
            "has 21 items; use at most 20",
        ),
        (
            {"failurePolicy": {"rules": [{"action": "Fail", "onExitCodes": EXITS | {"values": [256]}}]}},
            "spec.failurePolicy.rules[0].onExitCodes.values[0]",
            "256 is more than 255",
        ),
        ({"managedBy": "kueue"}, "spec.managedBy", "is not the name of a controller"),
        ({"managedBy": "e.com/" + "x" * 58}, "spec.managedBy", "has 64 characters; use at most 63"),
        ({"withGloo": -1}, "spec.withGloo", "-1 is less than 0; use 0 or more"),
        ({"backoffLimit": -1}, "spec.backoffLimit", "-1 is less than 0"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished", "-1 is less than 0"),
        ({"elastic": -1}, "spec.elastic", "-1 is less than 0"),
        ({"schedulingPolicy": {"minAvailable": 0}}, "spec.schedulingPolicy.minAvailable", "0 is less than 1"),
        (topology(), "spec.schedulingPolicy.topology", "needs either preferred or required"),
        (topology(preferred="a", required="b"), "spec.schedulingPolicy.topology", "needs either preferred or required"),
        (topology(required=""), "spec.schedulingPolicy.topology.required", "'' is not the key of a node label"),
        (topology(preferred="a b"), "spec.schedulingPolicy.topology.preferred", "'a b' is not the key of a node label"),
        (topology(required="a/b/c"), "spec.schedulingPolicy.topology.required", "'a/b/c' is not the key"),
        (topology(required="A.b/c"), "spec.schedulingPolicy.topology.required", "'A.b/c' is not the key"),
        (topology(required="a..b/c"), "spec.schedulingPolicy.topology.required", "'a..b/c' is not the key"),
        (topology(required="x" * 64), "spec.schedulingPolicy.topology.required", "'xxx"),
        (topology(required="x" * 318), "spec.schedulingPolicy.topology.required", "has 318 characters; use at most"),
        ({"worker_": {"replicas": 0}}, "spec.worker.replicas", "0 is less than 1"),
        ({"worker_": {"limits": 0}}, "spec.worker.limits", "0 is less than 1"),
        ({"worker_": {"requests": 0}}, "spec.worker.requests", "0 is less than 1"),
    ],
)
def test_a_value_beyond_its_bound_is_a_fault(options: dict, where: str, what: str):
    (fault,) = faults(document(**options))
    assert fault.startswith(sentence(where, what))


def test_a_role_without_replicas_has_one():
    made = document()
    del made["spec"]["worker"]["replicas"]
    made["spec"]["worker"] |= {"requests": 1, "limits": 1}
    assert faults(made) == []


def test_the_longest_name_of_a_pod_may_have_63_characters():
    assert faults(document("n" * 54, workers=10)) == []  # ...-worker-9
    assert faults(document("n" * 54, workers=11)) != []
    assert faults(document("n" * 54, workers=10, worker_={"limits": 11})) != []
    assert faults(document("n" * 54, workers=1, ps=10)) == []
    assert faults(document("n" * 55, workers=1, ps=1, heter=1)) == faults(document("n" * 55, workers=1)) != []


def test_only_services_need_a_name_that_starts_with_a_letter():
    assert faults(document("1st")) == []
    (fault,) = faults(document("1st", intranet="Service"))
    assert fault.startswith("metadata.name: with intranet: Service")


def test_a_job_without_a_name_is_a_fault_and_not_a_crash():
    made = document()
    del made["metadata"]["name"]
    assert faults(made) == ["metadata.name is missing; add it"]
    made["metadata"]["name"] = 7
    assert any(fault.startswith("metadata.name: 7 is not a string") for fault in faults(made))


def test_metadata_accepts_what_the_api_server_adds_and_rejects_the_rest():
    made = document()
    made["metadata"] |= {"uid": "1", "resourceVersion": "2", "generation": 3, "finalizers": [], "managedFields": []}
    made["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [], "selfLink": ""}
    made["metadata"] |= {"creationTimestamp": "x", "deletionTimestamp": "x", "deletionGracePeriodSeconds": 0}
    made["metadata"] |= {"generateName": "x"}
    assert faults(made) == []
    made["metadata"]["lables"] = {}
    assert faults(made) == ['metadata.lables: unknown field; did you mean "labels"?']


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations_are_mappings_of_strings(field: str):
    made = document()
    for value, fault in (({"a": 1}, f"metadata.{field}.a: 1 is not a string"), (["a"], f"metadata.{field}: ")):
        made["metadata"][field] = value
        assert any(one.startswith(fault) for one in faults(made))


@pytest.mark.parametrize("metadata", [[], "mnist", 7])
def test_metadata_that_is_no_mapping_is_a_fault(metadata: object):
    assert any(fault.startswith("metadata: ") for fault in faults(document() | {"metadata": metadata}))


def test_a_field_that_resembles_no_other_is_to_be_removed():
    assert faults(document(zzzz=1)) == ["spec.zzzz: unknown field; remove it"]


def test_the_path_of_a_fault_has_indexes_and_quotes_where_yaml_needs_them():
    made = document()
    template = made["spec"]["worker"]["template"]
    template["spec"]["nodeSelector"] = {"example.com/zone": 1}
    template["spec"]["containers"].append({"image": "b"})
    found = faults(made)
    assert any('nodeSelector["example.com/zone"]: 1 is not a string; write "1" in quotes' in one for one in found)
    assert any(one.startswith("spec.worker.template.spec.containers[1].name is missing") for one in found)


def test_a_container_is_needed_and_a_long_value_is_cut():
    made = document()
    made["spec"]["worker"]["template"]["spec"]["containers"] = []
    made["spec"]["suspend"] = "x" * 100
    found = faults(made)
    assert any("containers is empty; add at least one" in one for one in found)
    assert any(one.startswith('spec.suspend: "' + "x" * 56 + "... is not true or false") for one in found)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null is not a string"),
        ([], "[] is not a string"),
        (True, 'true is not a string; write "true" in quotes'),
        (1.5, '1.5 is not a string; write "1.5" in quotes'),
    ],
)
def test_a_value_of_another_type_is_shown_with_the_remedy(value: object, shown: str):
    made = document()
    made["spec"]["worker"]["template"]["spec"]["hostname"] = value
    assert faults(made) == [f"spec.worker.template.spec.hostname: {shown}"]
