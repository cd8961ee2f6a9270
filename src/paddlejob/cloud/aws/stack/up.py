"""Create, update and scale a cluster. After a failure, `up` can be run again to resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.access.boundary import find_boundary
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import AwsError
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack import render
from paddlejob.cloud.aws.stack.changes import Confirm, accept, start_change
from paddlejob.cloud.aws.stack.stack import (
    OWNER_TAG,
    Stack,
    Stacks,
    StackState,
    describe_failure,
    parameter_list,
    with_changes,
)
from paddlejob.cloud.aws.zones import second_zone, zones_of
from paddlejob.errors import BadInput, NotPossible

# Where the user finds the templates as they were sent.
CLUSTER_FILE = "stack.yaml"
DATA_FILE = "data-stack.yaml"
_EMPTY_STATUSES = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS")
_RESOURCES_REMAIN = (
    "resources created so far remain and are billed; fix the cause and run `pdj aws up` again to resume, or run "
    "`pdj aws destroy`"
)
_NEXT_STEPS = {
    "ROLLBACK_COMPLETE": "everything was rolled back; fix the cause and run `pdj aws up` again",
    "UPDATE_ROLLBACK_COMPLETE": "the update was rolled back; fix the cause and run the same command again",
}
# Publishes a template under a file name. Returns the part of the request that refers to it: its text or its URL.
Publish = Callable[[str, str], dict[str, str]]


def inline_template(_: str, template: str) -> dict[str, str]:
    return {"TemplateBody": template}


@dataclass(frozen=True)
class Options:
    """How stacks are created and changed.

    Without `rollback`, the resources of a failed creation remain, and the next `up` resumes from there.
    """

    publish: Publish = inline_template
    confirm: Confirm = accept
    rollback: bool = False


DEFAULT = Options()


def up(stacks: Stacks, config: ClusterConfig, options: Options = DEFAULT) -> tuple[StackState, bool]:
    """Create or update both stacks and wait for them. Returns the state of the cluster's and whether it changed."""
    state = make_updatable(stacks.cluster, stacks.cluster.find())
    if state:
        raise_if_one_stack(state)
    elif config.worker_count == 0:
        raise BadInput("workerCount: 0 leaves no node for the add-ons; create the cluster with 1, then `scale 0`")
    values = resolve_parameters(stacks.cluster.aws, config, state)
    data = up_data(stacks.data, render.data_parameters(config, values["BoundaryArn"]), options)
    return up_cluster(stacks.cluster, state, values | render.from_data(data.outputs), options)


def up_data(stack: Stack, values: render.Parameters, options: Options = DEFAULT) -> StackState:
    """Create the stack of the data, or take up the one that an earlier cluster of the name left."""
    state = make_updatable(stack, stack.find())
    _raise_if_immutable_changed(state, values)
    template = options.publish(DATA_FILE, render.template(values, render.DATA_TEMPLATE))
    return _apply(stack, state, values, template, options)[0]


def up_cluster(
    stack: Stack, state: StackState | None, values: render.Parameters, options: Options = DEFAULT
) -> tuple[StackState, bool]:
    """Create or update the stack of the cluster."""
    return _apply(stack, state, values, options.publish(CLUSTER_FILE, render.template(values)), options)


def _apply(
    stack: Stack, state: StackState | None, values: render.Parameters, template: dict[str, str], options: Options
) -> tuple[StackState, bool]:
    """Create or update a stack and wait for it."""
    request: dict[str, Any] = {
        **template,
        "Parameters": parameter_list(values),
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": [{"Key": OWNER_TAG, "Value": stack.cluster or stack.name}],
    }
    if state is None:
        stack.start("create_stack", EnableTerminationProtection=True, DisableRollback=not options.rollback, **request)
    elif not _start_update(stack, state, options.confirm, **request):
        return state, False
    return wait_for_success(stack), True


def scale(stack: Stack, count: int, accepted: Callable[[], None] = lambda: None) -> tuple[StackState, bool]:
    """Change the number of nodes and nothing else.

    `accepted` is called as soon as AWS accepts the request, so that cluster.yaml is updated even if this process is
    interrupted afterwards.
    """
    state = existing(stack)
    most = int(state.parameters["MaxWorkerCount"])
    if not 0 <= count <= most:
        raise BadInput(f"workerCount: {count} is outside 0 to {most}; raise maxWorkerCount in cluster.yaml and run up")
    changes = with_changes(state.parameters, WorkerCount=str(count))
    return change_parameters(stack, state, changes, accept, accepted)


def change_parameters(
    stack: Stack, state: StackState, changes: list[dict[str, Any]], confirm: Confirm, accepted: Callable[[], None]
) -> tuple[StackState, bool]:
    """Change parameters and nothing else, and wait for it."""
    request = {"UsePreviousTemplate": True, "Parameters": changes, "Capabilities": ["CAPABILITY_IAM"]}
    changed = _start_update(stack, state, confirm, **request)
    accepted()
    return (wait_for_success(stack), True) if changed else (state, False)


def make_updatable(stack: Stack, state: StackState | None) -> StackState | None:
    """Bring the stack to a status that an update can start from. Returns None if it has to be created."""
    if state and state.in_progress:
        stack.say(f"stack {state.name} is {state.status} from an earlier run: following it")
        state, failure = stack.follow(state.id)
        if failure:
            stack.say(describe_failure(state, failure))
    if state is None or state.deleted:
        return None
    if state.status == "DELETE_FAILED":
        raise NotPossible(f"stack {state.name} is partly deleted; run `pdj aws destroy` again, then `pdj aws up`")
    if state.status in _EMPTY_STATUSES:
        _delete_empty_stack(stack, state)
        return None
    if state.status == "UPDATE_ROLLBACK_FAILED":
        stack.start("continue_update_rollback")
        state, failure = stack.follow(state.id)
        if not state.stable:
            raise NotPossible(describe_failure(state, failure))
    return state


def _start_update(stack: Stack, state: StackState, confirm: Confirm, **request: Any) -> bool:
    """Start an update. Returns False if CloudFormation finds nothing to change.

    A cluster whose creation failed is completed by a plain update: it can be updated only with rollback disabled, and
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


def wait_for_success(stack: Stack) -> StackState:
    """Follow the operation. Raises an error with the first failure and the next step if it did not succeed."""
    state, failure = stack.follow()
    if state.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return state
    raise NotPossible(f"{describe_failure(state, failure)}\n{_NEXT_STEPS.get(state.status, _RESOURCES_REMAIN)}")


def disable_termination_protection(stack: Stack) -> None:
    stack.aws.call(
        "cloudformation", "update_termination_protection", StackName=stack.name, EnableTerminationProtection=False
    )


def raise_if_one_stack(state: StackState) -> None:
    """An update to this version's template would delete the data in the stack of a 0.1 cluster."""
    if state.holds_data:
        raise NotPossible(
            f"paddlejob 0.1 created cluster {state.name}, with its data in the same stack, which this version cannot "
            "change; with paddlejob 0.1, run `pdj aws destroy --keep-data`, then create the cluster with this version "
            "and the fileSystemId that it prints"
        )


def resolve_parameters(aws: Aws, config: ClusterConfig, state: StackState | None) -> render.Parameters:
    """Return the parameters, with those that AWS has to be asked for. Deployed defaults are kept."""
    deployed = state.parameters if state else {}
    one_zone = len(config.availability_zones) == 1
    values = render.parameters(
        config,
        second_zone=second_zone(config, zones_of(aws), deployed.get("Zone2", "")) if one_zone else "",
        administrator=deployed.get("AdministratorArn", "") or ("" if config.administrator_arn else aws.caller_arn()),
        boundary=deployed.get("BoundaryArn", "") or find_boundary(aws, config),
    )
    _raise_if_immutable_changed(state, values)
    # `upgrade` chose these.
    return values | {name: deployed[name] for name in ("AddonVersions", "NodeRelease") if name in deployed}


def _raise_if_immutable_changed(state: StackState | None, values: render.Parameters) -> None:
    deployed = state.parameters if state else {}
    problems = [
        f"{render.SETTING_NAMES[name]}: cannot change from {deployed[name] or 'none'} to {values[name] or 'none'} "
        "while the cluster or its data exists; restore it, or run `pdj aws destroy` first"
        for name in render.IMMUTABLE
        if name in deployed and name in values and deployed[name] != values[name]
    ]
    if problems:
        raise BadInput("\n".join(problems))


def existing(stack: Stack) -> StackState:
    state = make_updatable(stack, stack.find())
    if state is None:
        raise NotPossible(f"cluster {stack.name} does not exist; run `pdj aws up`")
    return state


def _delete_empty_stack(stack: Stack, state: StackState) -> None:
    stack.say(f"stack {state.name} is {state.status} and empty: deleting it first")
    disable_termination_protection(stack)
    stack.start("delete_stack")
    state, failure = stack.follow(state.id)
    if not state.deleted:
        raise NotPossible(describe_failure(state, failure))
