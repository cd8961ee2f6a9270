"""Test-only: change sets as CloudFormation describes them; moto's compare templates only, and not their parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from moto.cloudformation.models import Stack
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import ActionResult, EmptyResult

from .moto_eks import EksNodegroup

_CHANGES = "DescribeChangeSetOutput.Changes"
_NOTHING = "The submitted information didn't contain changes. Submit different information to create a change set."


@dataclass
class ChangeSet:
    template: str
    parameters: dict[str, str]
    changes: list[dict[str, Any]]


def fill(patch: pytest.MonkeyPatch, same: Callable[..., bool]) -> None:
    kept: dict[str, ChangeSet] = {}

    def create_change_set(self: CloudFormationResponse) -> ActionResult:
        stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
        template = self._get_param("TemplateBody") or stack.template
        if url := self._get_param("TemplateURL"):
            template = self._get_stack_from_s3_url(url)
        given = self._get_param("Parameters", [])
        values = {p["ParameterKey"]: p["ParameterValue"] for p in given if "ParameterValue" in p}
        old = {name: str(value) for name, value in stack.parameters.items()}
        changes = [] if same(given, template, stack) else _changes(stack, template, old, {**old, **values})
        kept[self._get_param("ChangeSetName")] = ChangeSet(template, {**old, **values}, changes)
        return ActionResult({"Id": self._get_param("ChangeSetName"), "StackId": stack.stack_id})

    def describe_change_set(self: CloudFormationResponse) -> ActionResult:
        found = kept[self._get_param("ChangeSetName")]
        blank = {"Changes": [], "Parameters": {}, "Tags": {}}
        if not found.changes:
            return ActionResult({**blank, "Status": "FAILED", "StatusReason": _NOTHING})
        return ActionResult({**blank, "Status": "CREATE_COMPLETE", "Changes": found.changes})

    def delete_change_set(self: CloudFormationResponse) -> EmptyResult:
        del kept[self._get_param("ChangeSetName")]
        return EmptyResult()

    def execute_change_set(self: CloudFormationResponse) -> EmptyResult:
        found = kept.pop(self._get_param("ChangeSetName"))
        patch.setattr(EksNodegroup, "rollback_disabled", self._get_bool_param("DisableRollback", False))
        stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
        self.cloudformation_backend.update_stack(
            name=stack.name,
            template=found.template,
            parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in found.parameters.items()],
            role_arn=None,
            tags=stack.tags,
        )
        return EmptyResult()

    patch.setitem(CloudFormationResponse.RESPONSE_KEY_PATH_TO_TRANSFORMER, _CHANGES, list)
    for handler in (create_change_set, describe_change_set, delete_change_set, execute_change_set):
        patch.setattr(CloudFormationResponse, handler.__name__, handler)


def _changes(stack: Stack, template: str, old: dict[str, str], new: dict[str, str]) -> list[dict[str, Any]]:
    """A property changes if its text does, or a parameter in it, or an attribute of a resource that changes."""
    before, after = (_resources(text) for text in (stack.template, template))
    moved = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    changed: dict[str, set[str]] = {}
    for _ in range(2):  # a second time for what depends on what has changed
        for name, resource in after.items():
            was = before.get(name, {}).get("Properties", {})
            properties = {
                key
                for key, value in resource["Properties"].items()
                if was.get(key) != value or _mentions(value, moved, {*changed})
            }
            if properties and name in before:
                changed[name] = properties
    added = [_change("Add", name, after[name]["Type"], set()) for name in after if name not in before]
    removed = [_change("Remove", name, before[name]["Type"], set()) for name in before if name not in after]
    return added + removed + [_change("Modify", name, after[name]["Type"], what) for name, what in changed.items()]


def _resources(template: str) -> dict[str, Any]:
    parsed = Stack.parse_template(template)
    return {name: {"Properties": {}, **resource} for name, resource in parsed["Resources"].items()}


def _mentions(value: Any, parameters: set[str], resources: set[str]) -> bool:
    text = json.dumps(value, default=str)
    return any(f'"Ref": "{name}"' in text or f"${{{name}}}" in text for name in parameters) or any(
        re.search(rf'"Fn::GetAtt": (\["{name}"|"{name}\.)', text) for name in resources
    )


def _change(action: str, name: str, kind: str, properties: set[str]) -> dict[str, Any]:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", kind).schema
    fixed = {path.split("/")[2] for path in schema.get("createOnlyProperties", [])}
    change = {
        "Action": action,
        "LogicalResourceId": name,
        "ResourceType": kind,
        "Details": [{"Target": {"Attribute": "Properties", "Name": one}} for one in sorted(properties)],
    }
    if action == "Modify":
        change["Replacement"] = "True" if properties & fixed else "False"
    return {"Type": "Resource", "ResourceChange": change}
