"""Faults of a job, in sentences that say where, what, and what to change."""

from __future__ import annotations

import pytest

from paddlejob.api.change import with_fields
from paddlejob.api.documents import documents
from paddlejob.api.types import CleanPodPolicy, Mode
from paddlejob.api.validate import faults, find_faults, parse
from paddlejob.errors import BadInput, InvalidJob
from tests.support.builders import document, job


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"intranett": "PodIP"}, 'spec.intranett: unknown field; did you mean "intranet"?'),
        ({"intranet": "Bridge"}, 'spec.intranet: "Bridge" is not valid; use PodIP, Service or Host'),
        ({"withGloo": 3}, "spec.withGloo: 3 is more than 2; use 2 or less"),
        ({"backoffLimit": "3"}, 'spec.backoffLimit: "3" is not a whole number; remove the quotes'),
        ({"suspend": "yes"}, 'spec.suspend: "yes" is not true or false'),
        ({"worker_": {"limits": 1}}, "spec.worker.replicas: 2 is outside 1 to 1; choose a value in that range"),
        ({"backoffLimit": 2**31}, "spec.backoffLimit: 2147483648 is more than 2147483647; use 2147483647 or less"),
        (
            {"labels": {"kueue.x-k8s.io/queue-name": "a b"}},
            'metadata.labels["kueue.x-k8s.io/queue-name"]: "a b" is not the value of a label; use letters, digits, ',
        ),
        ({"labels": {"team": "x" * 64}}, "metadata.labels.team has 64 characters; use at most 63"),
        ({"labels": {"our team": "x"}}, 'metadata.labels: "our team" is not the key of a label; use one as in '),
    ],
)
def test_a_fault_says_where_what_and_what_to_change(change: dict, message: str):
    found = faults(document(**change))
    assert len(found) == 1
    assert found[0].startswith(message)
    assert faults(document(backoffLimit=2**31 - 1, labels={"a.b/Our_Team.1": "x" * 63, "empty": ""})) == []


def test_numbers_that_yaml_reads_as_numbers_are_explained():
    made = document()
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    container |= {"env": [{"name": "EPOCHS", "value": 3}], "resources": {"limits": {"cpu": 0.5}}}
    assert any('value: 3 is not a string; write "3" in quotes' in fault for fault in faults(made))
    assert any('cpu: 0.5 is not a whole number or a string; write "0.5" in quotes' in fault for fault in faults(made))


def test_a_name_too_long_says_by_how_much():
    (fault,) = faults(document("n" * 60))
    assert "n-worker-1 has 69; shorten it by 6" in fault


@pytest.mark.parametrize("namespace", ["../../../..", "a/b", "team.a", "Team", "-a", "n" * 64, "a\n", 7])
def test_a_namespace_is_a_dns_label(namespace: object):
    made = document()
    made["metadata"]["namespace"] = namespace
    (fault,) = faults(made)
    assert fault.startswith("metadata.namespace: ")


@pytest.mark.parametrize("name", ["..", "a/b", "a.b", "a_b", "-a", "a-", "Mine", "", "a\n"])
def test_a_name_is_a_dns_label(name: str):
    (fault,) = faults(document(name))
    assert fault.startswith("metadata.name: ")
    assert "use lower-case letters, digits and '-'" in fault


def test_a_stored_job_whose_name_was_valid_once_can_still_be_suspended():
    assert with_fields(document("old.name"), {"suspend": True})["spec"]["suspend"] is True


def test_something_that_is_no_job_at_all():
    assert any("spec is missing" in fault for fault in faults({"apiVersion": "batch.paddlepaddle.org/v1"}))
    assert any("apiVersion" in fault for fault in faults(document() | {"apiVersion": "batch/v1"}))


def test_parse_raises_every_fault_with_the_file_before_each():
    with pytest.raises(InvalidJob) as raised:
        parse(document(intranet="x", withGloo=9), "job.yaml")
    assert len(raised.value.faults) == 2
    assert str(raised.value).count("job.yaml: ") == 2


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"ps": 1}, Mode.PS),
        ({"workers": 2}, Mode.COLLECTIVE),
        ({"workers": 1}, Mode.SINGLE),
        ({"workers": 1, "worker_": {"limits": 4}}, Mode.COLLECTIVE),
        ({"ps": 1, "heter": 1}, Mode.HETER),
    ],
)
def test_the_mode_follows_from_the_roles(options: dict, mode: Mode):
    assert job(**options).mode is mode


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, CleanPodPolicy.ON_COMPLETION),
        ({"cleanPolicy": "Never"}, CleanPodPolicy.NEVER),
        ({"cleanPodPolicy": "OnFailed"}, CleanPodPolicy.ON_FAILURE),
        ({"cleanPolicy": "OnFailed"}, CleanPodPolicy.ON_FAILURE),
        ({"cleanPolicy": "Oncompletion"}, CleanPodPolicy.ON_COMPLETION),
        ({"cleanPodPolicy": "Oncompletion"}, CleanPodPolicy.ON_COMPLETION),
    ],
)
def test_policies_by_their_old_names(given: dict, meant: CleanPodPolicy):
    assert job(**given).spec.clean is meant


def test_yaml_faults_name_line_and_column():
    with pytest.raises(BadInput, match=r"^job\.yaml:2:5: invalid YAML"):
        documents("a: b\nc: d: e\n", "job.yaml")


def test_dates_stay_text_and_lists_are_taken_apart():
    text = "kind: List\nitems:\n- {kind: A, when: 2021-02-08T07:43:24Z}\n- {kind: B}\n---\n---\nkind: C\n"
    found = documents(text, "x")
    assert [one["kind"] for one in found] == ["A", "B", "C"]
    assert found[0]["when"] == "2021-02-08T07:43:24Z"


@pytest.mark.parametrize("text", ["", "---\n", "- a\n- b\n", "just text"])
def test_a_document_that_is_not_an_object_is_reported(text: str):
    with pytest.raises(BadInput):
        documents(text, "x")


def test_an_invalid_quantity_is_reported():
    job = document(workers=1)
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "4GB", "cpu": "2"}}
    assert [fault.partition("limits.")[2] for fault in faults(job)] == ['memory: "4GB" is not a quantity; write 4Gi']


def test_more_replicas_than_the_maximum_are_rejected():
    assert "more than 10000" in faults(document(workers=99999999999999999999))[0]


def test_a_duplicate_key_is_named_with_its_position():
    with pytest.raises(BadInput, match=r"^job\.yaml:2:1: duplicate key `kind`; remove one"):
        documents("kind: PaddleJob\nkind: Job\n", "job.yaml")


def test_a_merged_key_may_be_given_again():
    assert documents("a: &a {x: 1}\nb: {<<: *a, x: 2}\n", "job.yaml")[0]["b"] == {"x": 2}


def test_the_status_of_a_job_that_was_printed_does_not_matter():
    printed = {**document("mnist"), "status": {"phase": "Strange", "pods": [1]}}
    assert find_faults(printed) == []


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (
            "command",
            "python train.py",
            'command: "python train.py" is not a list; write command: ["python", "train.py"]',
        ),
        ("command", "cd a && b", 'command: "cd a && b" is not a list; write command: ["bash", "-c", "cd a && b"]'),
        ("args", "--name 'a", """args: "--name 'a" is not a list; write args: ["--name", "'a"]"""),
        ("env", {"STEPS": 4}, 'env: {"STEPS": 4} is not a list; write env: [{name: STEPS, value: "4"}]'),
        ("env", {}, "env: {} is not a list"),
        ("env", [{"STEPS": 4}], 'env[0] is not a variable with a name and a value; write - {name: STEPS, value: "4"}'),
        (
            "env",
            [{"FAST": True}],
            'env[0] is not a variable with a name and a value; write - {name: FAST, value: "true"}',
        ),
        ("env", ["STEPS=4"], 'env[0]: "STEPS=4" is not a mapping; write - {name: STEPS, value: "4"}'),
        ("env", ["STEPS"], 'env[0]: "STEPS" is not a mapping'),
        ("ports", [8080], "ports[0]: 8080 is not a mapping; write - containerPort: 8080"),
        (
            "volumeMounts",
            ["/data"],
            'volumeMounts[0]: "/data" is not a mapping; write - {name: NAME, mountPath: /data}, with the NAME of a '
            "volume of the pod",
        ),
        ("resources", {"cpu": 2}, "resources.cpu: unknown field; write it below limits"),
        ("resources", {"limits": {"memory": "4 Gi"}}, 'resources.limits.memory: "4 Gi" is not a quantity; write 4Gi'),
        (
            "resources",
            {"limits": {"memory": "512mb"}},
            'resources.limits.memory: "512mb" is not a quantity; write 512Mi',
        ),
        (
            "resources",
            {"limits": {"cpu": "two"}},
            'resources.limits.cpu: "two" is not a quantity; write it as 2, 500m or 4Gi',
        ),
    ],
)
def test_a_field_of_a_container_that_is_written_wrongly_is_shown_as_it_should_be(field: str, value: object, said: str):
    made = document()
    made["spec"]["worker"]["template"]["spec"]["containers"][0][field] = value
    assert faults(made) == [f"spec.worker.template.spec.containers[0].{said}"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("elastic", True, "spec.elastic: true is not a whole number; write elastic: 1"),
        ("withGloo", False, "spec.withGloo: false is not a whole number; write withGloo: 0"),
        ("cleanPodPolicy", "never", 'spec.cleanPodPolicy: "never" is not valid; write Never'),
        ("intranet", "podip", 'spec.intranet: "podip" is not valid; write PodIP'),
    ],
)
def test_a_field_of_the_job_that_is_written_wrongly_is_shown_as_it_should_be(field: str, value: object, said: str):
    made = document()
    made["spec"][field] = value
    assert faults(made) == [said]
