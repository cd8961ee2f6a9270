"""The ConfigMaps and Secrets of a job file: what the API server would reject is named with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.objects import check_object
from paddlejob.api.checks.references import missing_keys
from tests.support.builders import document

Manifest = dict[str, Any]


def stored(kind: str, **fields: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "mine"}, **fields}


def faults(obj: Manifest) -> list[str]:
    return [str(fault) for fault in check_object(obj)]


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (stored("ConfigMap", data={"rate": 0.1}), 'data.rate: values are strings; write "0.1" in quotes'),
        (stored("ConfigMap", data={"on": True}), 'data.on: values are strings; write "true" in quotes'),
        (stored("ConfigMap", data={"on": None}), 'data.on: values are strings; write "none" in quotes'),
        (stored("ConfigMap", data={1: "x"}), 'data.1: keys are strings; write "1" in quotes'),
        (stored("ConfigMap", data={"a/b": "x"}), "data[\"a/b\"]: 'a/b' is not a valid key; use letters, digits"),
        (stored("ConfigMap", data={"..": "x"}), "data[\"..\"]: '..' is not a valid key"),
        (stored("ConfigMap", data={".": "x"}), "data[\".\"]: '.' is not a valid key"),
        (stored("ConfigMap", data={"a" * 254: "x"}), "is not a valid key"),
        (stored("ConfigMap", binaryData={"key": "YWJ"}), "binaryData.key is not base64; encode it, or write it as it"),
        (stored("Secret", data={"key": "not base64!"}), "data.key is not base64; encode it, or write it as it is"),
        (stored("Secret", stringData={"key": 7}), 'stringData.key: values are strings; write "7" in quotes'),
    ],
)
def test_a_value_that_the_api_server_rejects_is_named_with_the_remedy(wrong: Manifest, fault: str):
    (found,) = faults(wrong)
    assert fault in found
    assert found.endswith(f"({wrong['kind']} mine)")


@pytest.mark.parametrize(
    ("kind", "field"),
    [("ConfigMap", "data"), ("ConfigMap", "binaryData"), ("Secret", "data"), ("Secret", "stringData")],
)
def test_a_field_that_is_not_a_mapping_is_one_fault(kind: str, field: str):
    assert faults(stored(kind, **{field: ["a"]})) == [
        f"{field} of {kind} mine is not a mapping; write one `key: value` per line"
    ]
    assert faults(stored(kind, **{field: None})) == []


def test_what_is_not_base64_may_be_written_as_it_is_under_the_field_that_is_named():
    assert "under stringData (Secret mine)" in faults(stored("Secret", data={"a": "plain!"}))[0]
    assert faults(stored("Secret", stringData={"a": "plain!"})) == []
    assert "under data (ConfigMap mine)" in faults(stored("ConfigMap", binaryData={"a": "plain!"}))[0]
    assert faults(stored("ConfigMap", data={"a": "plain!"})) == []


def test_every_mistake_of_an_object_is_named():
    wrong = stored("Secret", data={"a": "not base64!", "b": 1}, stringData={"c/d": "plain"})
    assert [found.split()[0].rstrip(":") for found in faults(wrong)] == ["data.a", "data.b", 'stringData["c/d"]']


@pytest.mark.parametrize(
    "fine",
    [
        stored("ConfigMap", data={"a.b-c_d": "x", "a" * 253: "", "...": "x"}),
        stored("Secret", data={"a": "YWJj", "b": "YQ==", "c": ""}, stringData={"d": "plain!"}),
        stored("Service", data={"a": 1}),
    ],
)
def test_ordinary_objects_and_objects_of_other_kinds_have_no_faults(fine: Manifest):
    assert faults(fine) == []


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"apiVersion": "v1", "metadata": {"name": "mine"}}, "kind is missing in a document; add it"),
        ({"apiVersion": "v1", "kind": "Secret"}, "metadata.name is missing in a Secret; add it"),
        (
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": ""}, "data": {"a": 1}},
            "metadata.name is missing in a Secret; add it",
        ),
        (stored("Secret", metadata={"name": 7}), "metadata.name is missing in a Secret; add it"),
        ({**stored("Secret"), "apiVersion": None}, "apiVersion is missing in a Secret; add it"),
    ],
)
def test_an_object_without_a_kind_or_a_name_has_no_other_fault(wrong: Manifest, fault: str):
    assert faults(wrong) == [fault]


POD = "spec.worker.template.spec"


def reading(*volumes: Manifest, env: list[Manifest] | None = None) -> Manifest:
    made = document(workers=1)
    pod = made["spec"]["worker"]["template"]["spec"]
    pod["volumes"], pod["containers"][0]["env"] = list(volumes), env or []
    return made


def test_a_key_that_an_object_of_the_file_lacks_is_named_where_the_template_names_it():
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": ""}, "stringData": {"b": ""}}
    rates = {"kind": "ConfigMap", "metadata": {"name": "m"}, "binaryData": {"c": ""}}

    def missing(**source: Any) -> list[str]:
        made = reading(env=[{"name": "x", "value": ""}, {"name": "y", "valueFrom": source}])
        return [str(fault) for fault in missing_keys(made, [secret, rates])]

    for key in "ab":
        assert missing(secretKeyRef={"name": "s", "key": key}) == []
    assert missing(configMapKeyRef={"name": "m", "key": "c"}) == []
    assert missing(configMapKeyRef={"name": "m", "key": "a"}) == [
        f"{POD}.containers[0].env[1].valueFrom.configMapKeyRef.key: ConfigMap m has no key a; add it, or correct the "
        "key in the template"
    ]
    assert missing(secretKeyRef={"name": "s", "key": "c", "optional": True}) == []
    assert missing(secretKeyRef={"name": "elsewhere", "key": "c"}) == []
    items = {"items": [{"key": "a", "path": "a"}, {"key": "z", "path": "z"}]}
    mounted = reading({"name": "v", "secret": {"secretName": "s", **items}})
    assert [fault.where for fault in missing_keys(mounted, [secret])] == [f"{POD}.volumes[0].secret.items[1].key"]
    optional = reading({"name": "v", "configMap": {"name": "m", "optional": True, **items}})
    assert list(missing_keys(optional, [rates])) == []
