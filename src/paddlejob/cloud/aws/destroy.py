"""`destroy`: delete the stack, with or without the data, and say what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlejob.errors import NotPossible

from . import data
from .blockers import blockers
from .render import keeping_data
from .stack import Stack, StackState, changed_only, in_words
from .up import finished, started_update, unprotect


@dataclass(frozen=True)
class Survey:
    """What `destroy` is about to meet."""

    state: StackState
    blockers: list[str]
    holdings: list[str]
    file_system: str

    @property
    def begun(self) -> bool:
        """Whether an earlier run has begun the deletion, so that there is nothing to decide any more."""
        return self.state.status == "DELETE_IN_PROGRESS"


def survey(stack: Stack) -> Survey | None:
    """Look before anything is deleted. None where there is no such stack."""
    state = stack.find()
    if state is None:
        return None
    resources = stack.resources()
    in_the_way = [] if state.busy else blockers(stack.aws, stack.name, resources)
    return Survey(state, in_the_way, data.holdings(stack.aws, resources), resources.get("FileSystem", ""))


def destroy(stack: Stack, state: StackState, keep_data: bool = False, wait: bool = True) -> bool:
    """Delete the stack. Whether its file system and its bucket stay, which `keep_data` asks for."""
    if state.busy and state.status != "DELETE_IN_PROGRESS":
        stack.say(f"stack {state.name} is {state.status}: waiting for that to end")
        state, _ = stack.follow(state.id)
    if state.status == "DELETE_IN_PROGRESS":
        kept = _was_kept(state, keep_data)
    else:
        retained = _keep(stack, state) if keep_data else {}
        kept = keep_data or _stays(stack, state)
        unprotect(stack)
        stack.start("delete_stack", **retained)
    if wait:
        _wait_until_gone(stack, state)
    return kept


def _was_kept(state: StackState, keep_data: bool) -> bool:
    kept = _keeps_data(state)
    if keep_data and not kept:
        raise NotPossible(
            f"stack {state.name} is being deleted with its data since an earlier run, and CloudFormation cannot be "
            "stopped; wait until that has ended, then run `pdj aws destroy --keep-data` for what is left"
        )
    return kept


def _keep(stack: Stack, state: StackState) -> dict[str, Any]:
    """See to it that data survives the deletion. What the request to delete must say for that."""
    resources = stack.resources()
    held = [name for name in data.HOLD_DATA if name in resources]
    if not held or _keeps_data(state):
        return {}
    if state.status == "DELETE_FAILED":
        return {"RetainResources": held}
    _change_policies(stack, _recovered(stack, state), keep=True)
    return {}


def _stays(stack: Stack, state: StackState) -> bool:
    """Empty the bucket, so that it can be deleted. True where an earlier run has decided that data stays and
    that can no longer be changed."""
    if _keeps_data(state):
        if not state.sound:
            return True
        _change_policies(stack, state, keep=False)
    if bucket := stack.resources().get("Bucket"):
        data.empty(stack.aws, bucket, stack.say)
    return False


def _keeps_data(state: StackState) -> bool:
    return state.parameters.get("KeepData") == "yes"


def _recovered(stack: Stack, state: StackState) -> StackState:
    """The stack in a state in which its deletion policies can be changed."""
    if state.status == "UPDATE_ROLLBACK_FAILED":
        stack.start("continue_update_rollback")
        state, _ = stack.follow(state.id)
    # A stack that was never complete would be rolled back to nothing, and its data with it.
    elif state.status == "UPDATE_FAILED" and stack.was_complete():
        stack.start("rollback_stack")
        state, _ = stack.follow(state.id)
    if not state.sound:
        raise NotPossible(
            f"stack {state.name} is {state.status}, and CloudFormation can keep no data of such a stack; run `pdj aws "
            "up` to complete it first, or copy the data and destroy it without --keep-data"
        )
    return state


def _change_policies(stack: Stack, state: StackState, keep: bool) -> None:
    template = stack.aws.call("cloudformation", "get_template", StackName=stack.name)["TemplateBody"]
    if started_update(
        stack,
        state,
        TemplateBody=keeping_data(template, keep),
        Parameters=changed_only(state.parameters, KeepData="yes" if keep else "no"),
        Capabilities=["CAPABILITY_IAM"],
    ):
        finished(stack)


def _wait_until_gone(stack: Stack, state: StackState) -> None:
    state, failure = stack.follow(state.id)
    if state.gone:
        return
    in_the_way = "".join(f"\n  {blocker}" for blocker in blockers(stack.aws, stack.name, stack.resources()))
    raise NotPossible(f"{in_words(state, failure)}; run `pdj aws destroy` again afterwards{in_the_way}")
