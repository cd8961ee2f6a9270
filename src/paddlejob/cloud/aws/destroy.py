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

_HOLDS_DATA = ("FileSystem", "Bucket")


@dataclass(frozen=True)
class Survey:
    """What `destroy` is about to meet."""

    state: StackState
    blockers: list[str]
    holdings: list[str]


def survey(stack: Stack) -> Survey | None:
    """Look before anything is deleted. None where there is no such stack."""
    state = stack.find()
    if state is None:
        return None
    in_the_way = [] if state.busy else blockers(stack.aws, state)
    return Survey(state, in_the_way, data.holdings(stack.aws, state))


def destroy(stack: Stack, state: StackState, keep_data: bool = False, wait: bool = True) -> None:
    """Delete the stack. With `keep_data`, its file system and its bucket stay."""
    retained: dict[str, Any] = {}
    if state.busy and state.status != "DELETE_IN_PROGRESS":
        stack.say(f"stack {state.name} is {state.status}: waiting for that to end")
        state, _ = stack.follow(state.id)
    if state.status != "DELETE_IN_PROGRESS":
        if keep_data:
            retained = _keep(stack, state)
        elif bucket := state.outputs.get("BucketName"):
            data.empty(stack.aws, bucket, stack.say)
        unprotect(stack)
        stack.start("delete_stack", **retained)
    if wait:
        _wait_until_gone(stack, state)


def _keep(stack: Stack, state: StackState) -> dict[str, Any]:
    """Change the deletion policies of what holds data. The rest of the request to delete the stack."""
    if state.parameters.get("KeepData") == "yes":
        return {}
    if state.status == "DELETE_FAILED":
        return {"RetainResources": _still_there(stack)}
    if state.status == "UPDATE_FAILED":
        stack.start("rollback_stack")
        state, _ = stack.follow(state.id)
    if not state.sound:
        raise NotPossible(
            f"stack {state.name} is {state.status} and was never complete, so that its data cannot be kept; "
            "run `pdj aws up` to complete it, or destroy it without --keep-data"
        )
    template = stack.aws.call("cloudformation", "get_template", StackName=stack.name)["TemplateBody"]
    if started_update(
        stack,
        TemplateBody=keeping_data(template),
        Parameters=changed_only(state.parameters, KeepData="yes"),
        Capabilities=["CAPABILITY_IAM"],
    ):
        finished(stack)
    return {}


def _still_there(stack: Stack) -> list[str]:
    resources = stack.aws.items(
        "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack.name
    )
    left = {item["LogicalResourceId"] for item in resources if item["ResourceStatus"] != "DELETE_COMPLETE"}
    return [name for name in _HOLDS_DATA if name in left]


def _wait_until_gone(stack: Stack, state: StackState) -> None:
    state, failure = stack.follow(state.id)
    if state.gone:
        return
    in_the_way = "".join(f"\n  {blocker}" for blocker in blockers(stack.aws, state))
    raise NotPossible(f"{in_words(state, failure)}; run `pdj aws destroy` again afterwards{in_the_way}")
