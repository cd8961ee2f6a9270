"""Test-only: rules of CloudFormation that moto lacks.

It knows no termination protection, no deletion that fails (it loses such a stack), not which updates go with rollback
disabled, not that roles have to be acknowledged, and its change sets know nothing of parameters (moto_changes.py).
Rejections have the messages of AWS.
"""

from __future__ import annotations

from typing import Any

import pytest
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend, Event, Stack
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import EmptyResult

from . import moto_changes
from .moto_eks import EksNodegroup

_NOT_TERMINAL = (
    "This stack is currently in a non-terminal [{0}] state. To update the stack from this state, please use the "
    "disable-rollback parameter with update-stack API. To rollback to the last known good state, use the "
    "rollback-stack API"
)


def obey(patch: pytest.MonkeyPatch) -> None:
    """Make moto's stacks keep to the rules."""
    _deletion(patch, CloudFormationBackend.delete_stack)
    _updates(patch, CloudFormationResponse.update_stack)
    moto_changes.fill(patch, _same)
    for operation in ("create_stack", "update_stack", "create_change_set"):
        _acknowledged(patch, operation, getattr(CloudFormationResponse, operation))
    for rule in (update_termination_protection,):
        patch.setattr(CloudFormationResponse, rule.__name__, rule, raising=False)
    patch.setattr(Stack, "stack_resources", property(_what_is_there))
    patch.setattr(CloudFormationResponse, "_validate_different_update", _reject_an_update_without_change)


def _what_is_there(self: Stack) -> list[Any]:
    """moto would make again what has been deleted, just by listing it."""
    return [one for one in self.resource_map._parsed_resources.values() if hasattr(one, "physical_resource_id")]


def _deletion(patch: pytest.MonkeyPatch, plainly: Any) -> None:
    def delete(self: CloudFormationBackend, name_or_stack_id: str) -> None:
        stack = self.get_stack(name_or_stack_id)
        if stack.enable_termination_protection:
            raise ValidationError(
                message=f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            )
        try:
            plainly(self, stack.stack_id)
        except Exception as error:
            self.stacks[stack.stack_id] = stack
            _deletion_failed(stack, str(error))

    patch.setattr(CloudFormationBackend, "delete_stack", delete)


def _deletion_failed(stack: Stack, why: str) -> None:
    described = stack.resource_map._resource_json_map
    left = [name for name in stack.resource_map._parsed_resources if name in described]
    for name in left:
        kind = described[name]["Type"]
        stack.events.append(Event(stack.stack_id, stack.name, name, name, kind, "DELETE_FAILED", why, None))
    stack.status = "DELETE_FAILED"
    stack._add_stack_event("DELETE_FAILED", resource_status_reason=f"The following resource(s) failed: {left}")


def _updates(patch: pytest.MonkeyPatch, plainly: Any) -> None:
    def update_stack(self: CloudFormationResponse) -> Any:
        status = self.cloudformation_backend.get_stack(self._get_param("StackName")).status
        disabled = self._get_bool_param("DisableRollback", False)
        if status in ("CREATE_FAILED", "UPDATE_FAILED") and not disabled:
            raise ValidationError(message=_NOT_TERMINAL.format(status))
        patch.setattr(EksNodegroup, "rollback_disabled", disabled)
        return plainly(self)

    patch.setattr(CloudFormationResponse, "update_stack", update_stack)


def _acknowledged(patch: pytest.MonkeyPatch, operation: str, plainly: Any) -> None:
    """A template with roles is accepted only with the capability that acknowledges them."""

    def acknowledged(self: CloudFormationResponse) -> Any:
        known = [one for one in self.cloudformation_backend.list_stacks() if one.name == self._get_param("StackName")]
        template = self._get_param("TemplateBody") or "".join(one.template for one in known)
        if "AWS::IAM::Role" in template and "CAPABILITY_IAM" not in self._get_param("Capabilities", []):
            raise ValidationError(message="Requires capabilities : [CAPABILITY_IAM]")
        return plainly(self)

    patch.setattr(CloudFormationResponse, operation, acknowledged)


def update_termination_protection(self: CloudFormationResponse) -> EmptyResult:
    stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
    stack.enable_termination_protection = self._get_bool_param("EnableTerminationProtection")
    return EmptyResult()


def _same(parameters: list[dict[str, Any]], template: str, stack: Stack) -> bool:
    given = {p["ParameterKey"]: p["ParameterValue"] for p in parameters if "ParameterValue" in p}
    return stack.template == template and all(stack.parameters.get(name) == value for name, value in given.items())


def _reject_an_update_without_change(
    _: CloudFormationResponse, parameters: list[dict[str, Any]], template: str, stack: Stack
) -> None:
    """moto compares a list parameter's text with its parts, and so never sees that nothing has changed."""
    if _same(parameters, template, stack):
        raise ValidationError(stack.name, message="No updates are to be performed.")
