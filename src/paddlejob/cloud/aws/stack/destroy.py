"""Delete the stack, with or without its data, and name what blocks the deletion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.stack import data
from paddlejob.cloud.aws.stack.blockers import blockers
from paddlejob.cloud.aws.stack.render import retain_data
from paddlejob.cloud.aws.stack.stack import Stack, StackState, describe_failure, with_changes
from paddlejob.cloud.aws.stack.up import disable_termination_protection, start_update, wait_for_success
from paddlejob.errors import NotPossible


@dataclass(frozen=True)
class Preflight:
    """What is known before anything is deleted."""

    state: StackState
    blockers: list[str]
    stored_data: list[str]
    file_system: str

    @property
    def deletion_started(self) -> bool:
        """Whether an earlier run started the deletion, so that there is nothing left to confirm."""
        return self.state.status == "DELETE_IN_PROGRESS"


def preflight(stack: Stack) -> Preflight | None:
    """Collect what blocks the deletion and which data would be lost. Returns None if the stack does not exist."""
    state = stack.find()
    if state is None:
        return None
    resources = stack.resources()
    found = [] if state.in_progress else blockers(stack.aws, stack.name, resources)
    return Preflight(state, found, data.stored_data(stack.aws, resources), resources.get("FileSystem", ""))


def destroy(stack: Stack, state: StackState, keep_data: bool = False, wait: bool = True) -> bool:
    """Delete the stack. Returns whether its file system and bucket are kept."""
    if state.in_progress and state.status != "DELETE_IN_PROGRESS":
        stack.say(f"stack {state.name} is {state.status}: waiting for it to finish")
        state, _ = stack.follow(state.id)
    if state.status == "DELETE_IN_PROGRESS":
        kept = _kept_by_earlier_run(state, keep_data)
    else:
        retained = _retain(stack, state) if keep_data else {}
        kept = keep_data or not _release(stack, state)
        disable_termination_protection(stack)
        stack.start("delete_stack", **retained)
    if wait:
        _wait_until_deleted(stack, state)
    return kept


def _kept_by_earlier_run(state: StackState, keep_data: bool) -> bool:
    kept = _keeps_data(state)
    if keep_data and not kept:
        raise NotPossible(
            f"an earlier run is deleting stack {state.name} together with its data, and CloudFormation cannot be "
            "stopped; wait for it to finish, then run `pdj aws destroy --keep-data` to keep what remains"
        )
    return kept


def _retain(stack: Stack, state: StackState) -> dict[str, Any]:
    """Make the data survive the deletion. Returns what the deletion request has to contain for that."""
    resources = stack.resources()
    present = [name for name in data.DATA_RESOURCES if name in resources]
    if not present or _keeps_data(state):
        return {}
    if state.status == "DELETE_FAILED":
        return {"RetainResources": present}
    _change_policies(stack, _recovered(stack, state), keep=True)
    return {}


def _release(stack: Stack, state: StackState) -> bool:
    """Let the data be deleted, and empty the bucket so that it can be.

    Returns False if an earlier run decided to keep the data and the status no longer allows changing that.
    """
    if _keeps_data(state):
        if not state.stable:
            return False
        _change_policies(stack, state, keep=False)
    if bucket := stack.resources().get("Bucket"):
        data.empty_bucket(stack.aws, bucket, stack.say)
    return True


def _keeps_data(state: StackState) -> bool:
    return state.parameters.get("KeepData") == "yes"


def _recovered(stack: Stack, state: StackState) -> StackState:
    """Bring the stack to a status in which its deletion policies can be changed."""
    if state.status == "UPDATE_ROLLBACK_FAILED":
        stack.start("continue_update_rollback")
        state, _ = stack.follow(state.id)
    # A stack that was never complete would be rolled back to nothing, and its data with it.
    elif state.status == "UPDATE_FAILED" and stack.was_ever_complete():
        stack.start("rollback_stack")
        state, _ = stack.follow(state.id)
    if not state.stable:
        raise NotPossible(
            f"stack {state.name} is {state.status}, and CloudFormation cannot keep data in this status; run "
            "`pdj aws up` to complete the stack first, or copy the data and destroy it without --keep-data"
        )
    return state


def _change_policies(stack: Stack, state: StackState, keep: bool) -> None:
    template = stack.aws.call("cloudformation", "get_template", StackName=stack.name)["TemplateBody"]
    if start_update(
        stack,
        state,
        TemplateBody=retain_data(template, keep),
        Parameters=with_changes(state.parameters, KeepData="yes" if keep else "no"),
        Capabilities=["CAPABILITY_IAM"],
    ):
        wait_for_success(stack)


def _wait_until_deleted(stack: Stack, state: StackState) -> None:
    state, failure = stack.follow(state.id)
    if state.deleted:
        return
    found = "".join(f"\n  {blocker}" for blocker in blockers(stack.aws, stack.name, stack.resources()))
    raise NotPossible(f"{describe_failure(state, failure)}; remove the cause and run `pdj aws destroy` again{found}")
