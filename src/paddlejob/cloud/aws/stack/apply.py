"""Create or update one stack and wait for it. After a failure, the same can be done again to resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.stack.changes import Confirm, accept, start_change
from paddlejob.cloud.aws.stack.stack import Stack, StackState, describe_failure
from paddlejob.cloud.aws.templates.compose import OWNER_TAG, Parameters, Template
from paddlejob.errors import NotPossible

_EMPTY_STATUSES = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS")
_RESOURCES_REMAIN = (
    "resources created so far remain and are billed; fix the cause and run the same command again to resume, or delete "
    "them with `{undo}`"
)
_NEXT_STEPS = {
    "ROLLBACK_COMPLETE": "everything was rolled back; fix the cause and run the same command again",
    "UPDATE_ROLLBACK_COMPLETE": "the update was rolled back; fix the cause and run the same command again",
}


@dataclass(frozen=True)
class Options:
    """How stacks are created and changed.

    `publish` returns the part of the request that refers to the template: its text or its URL. Without `rollback`, the
    resources of a failed creation remain, and the next `up` resumes from there.
    """

    publish: Callable[[Template], dict[str, str]] = lambda template: {"TemplateBody": template.text}
    confirm: Confirm = accept
    rollback: bool = False


DEFAULT = Options()


def apply(
    stack: Stack, state: StackState | None, template: Template, options: Options = DEFAULT
) -> tuple[StackState, bool]:
    """Create the stack, or update it from this state. Returns its state and whether it changed."""
    request: dict[str, Any] = {
        **options.publish(template),
        "Parameters": _given(template.parameters),
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": [{"Key": OWNER_TAG, "Value": stack.cluster}],
    }
    if state is None:
        stack.start("create_stack", EnableTerminationProtection=True, DisableRollback=not options.rollback, **request)
        return wait_for_success(stack), True
    changed = _start_update(stack, state, options.confirm, **request)
    return (wait_for_success(stack), True) if changed else (state, False)


def change_parameters(
    stack: Stack, state: StackState, changes: Parameters, confirm: Confirm, accepted: Callable[[], None]
) -> tuple[StackState, bool]:
    """Change parameters and nothing else, and wait for it.

    `accepted` is called as soon as AWS accepts the request, so that cluster.yaml is updated even if this process is
    interrupted afterwards.
    """
    kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in state.parameters if name not in changes]
    known = {name: value for name, value in changes.items() if name in state.parameters}
    request = {"UsePreviousTemplate": True, "Capabilities": ["CAPABILITY_IAM"], "Parameters": [*kept, *_given(known)]}
    changed = _start_update(stack, state, confirm, **request)
    accepted()
    return (wait_for_success(stack), True) if changed else (state, False)


def make_updatable(stack: Stack) -> StackState | None:
    """Bring the stack to a status that an update can start from. Returns None if it has to be created."""
    state = stack.find()
    if state and state.in_progress:
        stack.say(f"stack {state.name} is {state.status} from an earlier run: following it")
        state, failure = stack.follow(state.id)
        if failure:
            stack.say(describe_failure(state, failure))
    if state is None or state.deleted:
        return None
    if state.status == "DELETE_FAILED":
        raise NotPossible(f"stack {state.name} is partly deleted; run `{stack.undo}` again, then create it anew")
    if state.status in _EMPTY_STATUSES:
        _delete_empty_stack(stack, state)
        return None
    if state.status == "UPDATE_ROLLBACK_FAILED":
        stack.start("continue_update_rollback")
        state, failure = stack.follow(state.id)
        if not state.stable:
            raise NotPossible(describe_failure(state, failure))
    return state


def existing(stack: Stack) -> StackState:
    state = make_updatable(stack)
    if state is None:
        raise NotPossible(f"cluster {stack.name} does not exist in {stack.aws.region}; run `pdj aws up`")
    return state


def wait_for_success(stack: Stack) -> StackState:
    """Follow the operation. Raises an error with the first failure and the next step if it did not succeed."""
    state, failure = stack.follow()
    if state.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return state
    next_step = _NEXT_STEPS.get(state.status, _RESOURCES_REMAIN).format(undo=stack.undo)
    raise NotPossible(f"{describe_failure(state, failure)}\n{next_step}")


def _start_update(stack: Stack, state: StackState, confirm: Confirm, **request: Any) -> bool:
    """Start an update. Returns False if CloudFormation finds nothing to change.

    A stack whose creation failed is completed by a plain update: it can be updated only with rollback disabled, and
    there is nothing to lose that a preview would show.
    """
    if state.stable:
        return start_change(stack, confirm, **request)
    try:
        stack.start("update_stack", DisableRollback=True, **request)
    except AwsError as error:
        if error.code == "ValidationError" and "No updates are to be performed" in error.message:
            return False
        raise
    return True


def _given(values: Parameters) -> list[dict[str, Any]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]


def _delete_empty_stack(stack: Stack, state: StackState) -> None:
    stack.say(f"stack {state.name} is {state.status} and empty: deleting it first")
    stack.delete()
    state, failure = stack.follow(state.id)
    if not state.deleted:
        raise NotPossible(describe_failure(state, failure))
