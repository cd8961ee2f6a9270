"""The CustomResourceDefinition, built from the types, the rules and Kubernetes' schema of a pod template."""

from __future__ import annotations

from functools import cache
from typing import Any

from paddlejob import contract
from paddlejob.api.rules import CHANGE_RULES, ROLES, RULES
from paddlejob.api.types import OLD_POLICY_NAMES, Model, Spec, Status

Schema = dict[str, Any]

COLUMNS = (
    ("Status", "string", ".status.phase", 0),
    ("Mode", "string", ".status.mode", 0),
    ("PS", "string", ".status.ps.ready", 0),
    ("Worker", "string", ".status.worker.ready", 0),
    ("Progress", "string", ".status.progress.summary", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Reason", "string", ".status.reason", 1),
    ("Message", "string", ".status.message", 1),
)


def crd() -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{contract.PLURAL}.{contract.GROUP}"},
        "spec": {
            "group": contract.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": contract.KIND,
                "listKind": f"{contract.KIND}List",
                "plural": contract.PLURAL,
                "singular": contract.SINGULAR,
                "shortNames": [contract.SHORT_NAME],
                "categories": ["all"],
            },
            "versions": [_version()],
        },
    }


def _version() -> Schema:
    return {
        "name": contract.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": job_schema()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.worker.replicas",
                "statusReplicasPath": ".status.worker.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} | ({"priority": wide} if wide else {})
            for name, kind, path, wide in COLUMNS
        ],
    }


@cache
def job_schema() -> Schema:
    # 10 ms, which most commands need not spend.
    from paddlejob.api.pod_template import POD_TEMPLATE

    spec = structural(Spec)
    for role in ROLES:
        part = spec["properties"][role]
        part["properties"]["template"] = POD_TEMPLATE | {"description": part["properties"]["template"]["description"]}
        part["x-kubernetes-validations"] = _validations("role")
    for field in ("cleanPodPolicy", "cleanPolicy"):
        policy = spec["properties"][field]
        policy["enum"] = [*policy["enum"], *OLD_POLICY_NAMES]
    spec["properties"]["schedulingPolicy"]["properties"]["minResources"]["additionalProperties"] = {
        "x-kubernetes-int-or-string": True,
        "pattern": contract.QUANTITY,
    }
    spec["x-kubernetes-validations"] = _validations("spec") + [
        {"rule": rule.cel, "message": rule.message, "fieldPath": rule.field} for rule in CHANGE_RULES
    ]
    status = structural(Status, written=True)
    status["properties"]["progress"].pop("required")
    status["properties"]["conditions"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    return {
        "type": "object",
        "description": "A distributed PaddlePaddle training job.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec | {"description": "The desired state of the job."},
            "status": status | {"description": "The observed state of the job, written by the operator."},
        },
        "x-kubernetes-validations": _validations("root"),
    }


def _validations(level: str) -> list[Schema]:
    return [
        {"rule": rule.cel, "message": rule.message} | ({"fieldPath": rule.field} if rule.field else {})
        for rule in RULES
        if rule.level == level
    ]


def structural(model: type[Model], written: bool = False) -> Schema:
    """The model's JSON schema as a Kubernetes structural schema: no references, no nulls, no titles.

    `written` includes the fields that are computed when the model is written.
    """
    schema = model.model_json_schema(by_alias=True, mode="serialization" if written else "validation")
    return _flattened(schema, schema.get("$defs", {}))


def _flattened(schema: Schema, known: Schema) -> Schema:
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        schema = {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    if "$ref" in schema:
        target = known[schema["$ref"].rsplit("/", 1)[-1]]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    result = {key: value for key, value in schema.items() if key in _KEPT}
    if schema.get("default") in (None, "", []):
        result.pop("default", None)
    if schema.get("type") == "integer":
        result["format"] = "int32"
    if "properties" in result:
        result["properties"] = {name: _flattened(part, known) for name, part in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _flattened(result[key], known)
    return result


_KEPT = {
    "type", "properties", "items", "additionalProperties", "required", "enum", "minimum", "maximum",
    "maxLength", "minItems", "maxItems", "description", "default",
}  # fmt: skip
