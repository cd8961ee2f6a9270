"""`up`: make the stack as cluster.yaml says, or bring it there. Run again, it goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob.errors import BadInput, NotPossible

from . import render
from .config import ClusterConfig
from .refusals import Refused
from .session import Aws
from .stack import OWNER_TAG, Stack, StackState, as_list, changed_only, in_words
from .zones import second_zone, zones_of

_EMPTY_SHELLS = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS")
# Where the template is put and how it is named in the request: its text, or its URL.
Publish = Callable[[str], dict[str, str]]


def as_text(template: str) -> dict[str, str]:
    return {"TemplateBody": template}


def up(
    stack: Stack, config: ClusterConfig, publish: Publish = as_text, rollback: bool = False
) -> tuple[StackState, bool]:
    """Create or update the stack and wait for it. The state then, and whether anything was changed.

    Without `rollback`, what a failed creation has made stays, and the next `up` goes on from there.
    """
    state = settle(stack, stack.find())
    values = resolved(stack.aws, config, state)
    request: dict[str, Any] = {
        **publish(render.template(values)),
        "Parameters": as_list(values),
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": [{"Key": OWNER_TAG, "Value": config.cluster_name}],
    }
    if state is None:
        if config.worker_count == 0:
            raise BadInput("workerCount: is 0, and the add-ons need a node at first; use 1, and `scale 0` later")
        stack.start("create_stack", EnableTerminationProtection=True, DisableRollback=not rollback, **request)
    else:
        _announce_new_nodes(stack, state, values)
        if not started_update(stack, state, **request):
            return state, False
    return finished(stack), True


def scale(stack: Stack, count: int, accepted: Callable[[], None] = lambda: None) -> tuple[StackState, bool]:
    """Change the number of nodes and nothing else. `accepted` is called when AWS has taken the request, so that
    the number is written down even if nobody waits for the end."""
    state = _standing(stack)
    most = int(state.parameters["MaxWorkerCount"])
    if not 0 <= count <= most:
        raise BadInput(f"workerCount: is {count}, outside 0 to {most}; raise maxWorkerCount in cluster.yaml and run up")
    changes = changed_only(state.parameters, WorkerCount=str(count))
    changed = started_update(
        stack, state, UsePreviousTemplate=True, Parameters=changes, Capabilities=["CAPABILITY_IAM"]
    )
    accepted()
    return (finished(stack), True) if changed else (state, False)


def settle(stack: Stack, state: StackState | None) -> StackState | None:
    """Bring a stack to a state that an update can start from; None where it is to be created."""
    if state and state.busy:
        stack.say(f"stack {state.name} is {state.status} from an earlier run: following it")
        state, failure = stack.follow(state.id)
        if failure:
            stack.say(in_words(state, failure))
    if state is None or state.gone:
        return None
    if state.status == "DELETE_FAILED":
        raise NotPossible(f"stack {state.name} is half deleted; run `pdj aws destroy` again, then `pdj aws up`")
    if state.status in _EMPTY_SHELLS:
        _remove_shell(stack, state)
        return None
    if state.status == "UPDATE_ROLLBACK_FAILED":
        stack.start("continue_update_rollback")
        state, failure = stack.follow(state.id)
        if not state.sound:
            raise NotPossible(in_words(state, failure))
    return state


def started_update(stack: Stack, state: StackState, **request: Any) -> bool:
    """Start an update; False where CloudFormation says that there is nothing to do.

    The update of a complete cluster is undone where it fails, so that the cluster is never worse than before, and
    because CloudFormation exchanges nothing (nodes of another type) with rollback disabled. A cluster whose creation
    has failed can only go on with rollback disabled.
    """
    try:
        stack.start("update_stack", DisableRollback=not state.sound, **request)
    except Refused as no:
        if no.code == "ValidationError" and "No updates are to be performed" in no.said:
            return False
        raise
    return True


def finished(stack: Stack) -> StackState:
    state, failure = stack.follow()
    if state.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return state
    raise NotPossible(f"{in_words(state, failure)}\n{_AFTERWARDS.get(state.status, _STAYS)}")


_STAYS = (
    "what was made stays and costs; change that and run `pdj aws up` again: it goes on from there, or `pdj aws destroy`"
)
_AFTERWARDS = {
    "ROLLBACK_COMPLETE": "what was made is gone again; change that and run `pdj aws up` again",
    "UPDATE_ROLLBACK_COMPLETE": "the cluster is as it was before; change that and run the same command again",
}


def _announce_new_nodes(stack: Stack, state: StackState, values: render.Parameters) -> None:
    changed = [
        setting
        for name, setting in render.NEW_NODES.items()
        if name in state.parameters and state.parameters[name] != values[name]
    ]
    if changed:
        stack.say(f"{', '.join(changed)} changed: new nodes are made, then the old ones go, with the pods on them")


def resolved(aws: Aws, config: ClusterConfig, state: StackState | None) -> render.Parameters:
    """The parameters, with what AWS must be asked for. What is deployed and was not named by the user stays."""
    before = state.parameters if state else {}
    one_zone = len(config.availability_zones) == 1
    values = render.parameters(
        config,
        second_zone=second_zone(config, zones_of(aws), before.get("Zone2", "")) if one_zone else "",
        administrator=before.get("AdministratorArn", "") or ("" if config.administrator_arn else aws.caller_arn()),
    )
    faults = [
        f"{render.SETTING_OF[name]}: is {values[name] or 'empty'}, but the cluster has {before[name] or 'none'}, and "
        "that cannot change while it lives; put it back, or `pdj aws destroy` first"
        for name in render.FIXED
        if name in before and before[name] != values[name]
    ]
    if faults:
        raise BadInput("\n".join(faults))
    return values


def _standing(stack: Stack) -> StackState:
    state = settle(stack, stack.find())
    if state is None:
        raise NotPossible(f"there is no cluster {stack.name}; run `pdj aws up`")
    return state


def _remove_shell(stack: Stack, state: StackState) -> None:
    stack.say(f"stack {state.name} is {state.status} and holds nothing: removing it first")
    unprotect(stack)
    stack.start("delete_stack")
    state, failure = stack.follow(state.id)
    if not state.gone:
        raise NotPossible(in_words(state, failure))


def unprotect(stack: Stack) -> None:
    stack.aws.call(
        "cloudformation", "update_termination_protection", StackName=stack.name, EnableTerminationProtection=False
    )
