"""Validation of a job. Each fault says where, what, and what to change; all of them are reported at once.

The schema is that of the CRD, with unknown fields as faults: what passes here passes the API server, and vice versa.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.checks import corrections
from paddlejob.api.checks.misplaced import METADATA_FIELDS, remedy
from paddlejob.api.crd import job_schema
from paddlejob.api.fault import Fault, Path, parse_fault
from paddlejob.api.rules import CHANGE_RULES, NOT_A_LABEL, ROLES, RULES, Obj
from paddlejob.api.types import PaddleJob
from paddlejob.api.yaml_problem import first_full_width, full_width, show
from paddlejob.errors import InvalidJob

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

LARGEST = {"int32": 2**31 - 1, "int64": 2**63 - 1}
"""By format of an integer. The API server checks it, a validator of JSON Schema does not."""
GPU_FIELDS = ("gpu", "gpus", "nvidia.com/gpu")
SAMPLE_SET = (
    "PaddleCloud mounted the data of a SampleSet with it; add a persistentVolumeClaim with the data to volumes of each "
    "template, mount it at the mountPath that is given here, then remove the field"
)


def parse(document: Obj, source: str = "") -> PaddleJob:
    """The job as a typed object; raises InvalidJob with every fault."""
    found = find_faults(document)
    if found:
        raise InvalidJob([fault.at(document, source) for fault in found])
    return PaddleJob.model_validate(document)


def faults(document: Obj) -> list[str]:
    """The faults of a new job in sentences; empty if it is valid."""
    return [str(fault) for fault in find_faults(document)]


def find_faults(document: Obj) -> list[Fault]:
    """The faults of a new job; empty if it is valid. A status, as in the output of `get -o yaml`, has no effect."""
    errors = _validator().iter_errors({key: value for key, value in document.items() if key != "status"})
    found = [fault for error in errors for fault in _explain(error)]
    if found:
        return found
    job = with_defaults(document)
    checked = [(rule.check(_part(job, rule.level)), "") for rule in RULES if rule.level != "role"]
    for role in ROLES:
        if role in job["spec"]:
            checked += [(rule.check(job["spec"][role]), f"spec.{role}.") for rule in RULES if rule.level == "role"]
    return [parse_fault(prefix + fault) for fault, prefix in checked if fault]


def change_faults(new: Obj, old: Obj) -> list[str]:
    """The faults of the change from one valid job to another."""
    after, before = with_defaults(new)["spec"], with_defaults(old)["spec"]
    return [str(parse_fault(fault)) for rule in CHANGE_RULES if (fault := rule.check(after, before))]


def with_defaults(document: Obj) -> Obj:
    """The job as the API server would store it, with the defaults of the schema."""
    spec = {"device": "auto", "elastic": 0, "intranet": "PodIP", "suspend": False, "withGloo": 1} | document["spec"]
    for role in ROLES:
        if role in spec:
            spec[role] = {"replicas": 1} | spec[role]
    return document | {"spec": spec}


def _part(job: Obj, level: str) -> Obj:
    part: Obj = job if level == "root" else job["spec"]
    return part


@cache
def _validator() -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    schema = _strict(job_schema())
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    schema["properties"] |= {
        "apiVersion": {"enum": [contract.API_VERSION]},
        "kind": {"enum": [contract.KIND]},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {field: {} for field in METADATA_FIELDS}
            | {
                "name": {"type": "string", "pattern": f"^{contract.DNS_LABEL}$"},
                "namespace": {"type": "string", "pattern": f"^{contract.DNS_LABEL}$"},
                "labels": {
                    "type": "object",
                    "propertyNames": {"pattern": f"^{contract.LABEL_KEY}$", "maxLength": contract.LABEL_KEY_LIMIT},
                    "additionalProperties": {
                        "type": "string",
                        "pattern": contract.LABEL_VALUE,
                        "maxLength": contract.LABEL_VALUE_LIMIT,
                    },
                },
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    }
    return Draft202012Validator(schema)


def _strict(schema: Any) -> Any:
    """A structural schema as plain JSON Schema that allows no unknown fields."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _strict(value) for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string") is True:
        result["type"] = ["integer", "string"]
    if schema.get("nullable") is True:
        result["type"] = [schema["type"], "null"]
    if schema.get("type") == "integer":
        result.setdefault("maximum", LARGEST[schema.get("format", "int64")])
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def _explain(error: ValidationError) -> list[Fault]:
    path = tuple(error.instance_path)
    kind: Any = error.kind
    unnamed = corrections.unnamed_variable(path, error.instance)
    match kind.name:
        case "additionalProperties" if unnamed:
            return [Fault(path, f"is not a variable with a name and a value; write {unnamed}")]
        case "required" if unnamed:
            return []
        case "additionalProperties":
            known = _known_fields(error.schema_path)
            return [_unknown(path, name, known) for name in kind.unexpected]
        case "required":
            return [Fault((*path, kind.property), "is missing; add it")]
    return [Fault(path, _sentence(error))]


def _sentence(error: ValidationError) -> str:
    kind: Any = error.kind
    value: Any = error.instance
    match kind.name:
        case "enum":
            meant = corrections.option(value, kind.options)
            return f"{show(value)} is not valid; " + (f"write {meant}" if meant else f"use {_listed(kind.options)}")
        case "type" if value is None and kind.types == ["object"]:
            return "is empty; indent its fields below it"
        case "type":
            meant = corrections.corrected(tuple(error.instance_path), value, kind.types)
            hint = f"; write {meant}" if meant else _hint(value, kind.types)
            return f"{show(value)} is not {_type_names(kind.types)}{hint}"
        case "minimum":
            return f"{show(value)} is less than {kind.limit}; use {kind.limit} or more"
        case "maximum":
            return f"{show(value)} is more than {kind.limit}; use {kind.limit} or less"
        case "minItems":
            return "is empty; add at least one"
        case "maxItems":
            return f"has {len(value)} items; use at most {kind.limit}"
        case "maxLength":
            return f"has {len(value)} characters; use at most {kind.limit}"
        case "pattern" if kind.pattern == contract.QUANTITY:
            return f"{show(value)} is not a quantity; write {corrections.quantity(value) or 'it as 2, 500m or 4Gi'}"
        case "pattern" if kind.pattern == contract.LABEL_VALUE:
            return (
                f"{show(value)} is not the value of a label; use letters, digits, '-', '_' and '.', and start and end "
                "with a letter or digit"
            )
        case "propertyNames":
            return f"{show(kind.error.instance)} is not the key of a label; use one as in team or example.com/team"
        case "pattern":
            return f"{show(value)} {NOT_A_LABEL}"
    return str(error.message)


def _unknown(path: Path, name: str, known: list[str]) -> Fault:
    near = difflib.get_close_matches(name, known, n=1)
    if character := first_full_width(name):
        problem, hint = full_width(character)
        return Fault((*path, name), f"unknown field; {problem}; {hint}")
    if name in GPU_FIELDS:
        hint = "write nvidia.com/gpu below resources.limits of the container"
    elif path[-1:] == ("resources",):
        hint = "write it below limits"
    elif name == "sampleSetRef":
        hint = SAMPLE_SET
    else:
        hint = remedy(path, name) or (f'did you mean "{near[0]}"?' if near else "remove it")
    return Fault((*path, name), f"unknown field; {hint}")


def _known_fields(schema_path: list[str | int]) -> list[str]:
    part: Any = job_schema()
    for step in schema_path[:-1]:
        part = part.get(step, {}) if isinstance(part, dict) else {}
    return sorted(part.get("properties", METADATA_FIELDS))


def _listed(options: list[Any]) -> str:
    names = [str(option) for option in options]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _type_names(types: list[str]) -> str:
    names = {"integer": "a whole number", "string": "a string", "object": "a mapping", "array": "a list",
             "boolean": "true or false", "null": "null", "number": "a number"}  # fmt: skip
    return " or ".join(names[name] for name in types)


def _hint(value: object, types: list[str]) -> str:
    if isinstance(value, float) and "string" in types:
        return f'; write "{value:g}" in quotes'
    if isinstance(value, int | bool) and types == ["string"]:
        return f'; write "{str(value).lower() if isinstance(value, bool) else value}" in quotes'
    if isinstance(value, str) and (character := first_full_width(value)):
        return f"; {'; '.join(full_width(character))}"
    if isinstance(value, str) and value.isdecimal() and types == ["integer"]:
        return "; remove the quotes"
    return ""
