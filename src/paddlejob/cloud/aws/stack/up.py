"""Create, update and scale a cluster with its data. After a failure, `up` can be run again to resume."""

from __future__ import annotations

from collections.abc import Callable

from paddlejob.cloud.aws import capacity
from paddlejob.cloud.aws.access.boundary import find_boundary
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.apply import DEFAULT, Options, apply, change_parameters, existing, make_updatable
from paddlejob.cloud.aws.stack.changes import accept
from paddlejob.cloud.aws.stack.stack import Stack, Stacks, StackState
from paddlejob.cloud.aws.templates import render
from paddlejob.cloud.aws.templates.compose import Parameters
from paddlejob.cloud.aws.zones import second_zone
from paddlejob.errors import BadInput


def up(stacks: Stacks, config: ClusterConfig, options: Options = DEFAULT) -> tuple[StackState, bool]:
    """Create or update both stacks and wait for them. Returns the state of the cluster's and whether it changed."""
    state = make_updatable(stacks.cluster)
    if not state and config.worker_count == 0:
        raise BadInput("workerCount: 0 leaves no node for the add-ons; create the cluster with 1, then `scale 0`")
    values = resolve_parameters(stacks.cluster.aws, config, state)
    data = up_data(stacks.data, config.file_system_id, values["BoundaryArn"], options)
    template = render.cluster_template(config, values | render.from_data(data.outputs))
    return apply(stacks.cluster, state, template, options)


def up_data(stack: Stack, file_system: str, boundary: str, options: Options = DEFAULT) -> StackState:
    """Create the stack of the data, or take up the one that an earlier cluster of the name left."""
    state = make_updatable(stack)
    _raise_if_immutable_changed(state, {"FileSystemId": file_system}, stack.undo)
    path = state.parameters.get("RolePath", "") if state else None
    return apply(stack, state, render.data_template(stack.cluster, file_system, boundary, path), options)[0]


def scale(stack: Stack, count: int, accepted: Callable[[], None] = lambda: None) -> tuple[StackState, bool]:
    """Change the number of nodes and nothing else."""
    state = existing(stack)
    if "MaxWorkerCount" not in state.parameters:
        raise BadInput("autoMode: EKS creates nodes as pods need them, so there is nothing to scale")
    most = int(state.parameters["MaxWorkerCount"])
    if not 0 <= count <= most:
        raise BadInput(f"workerCount: {count} is outside 0 to {most}; raise maxWorkerCount, then `pdj aws up`")
    return change_parameters(stack, state, {"WorkerCount": str(count)}, accept, accepted)


def resolve_parameters(aws: Aws, config: ClusterConfig, state: StackState | None) -> Parameters:
    """Return the parameters, with those that AWS has to be asked for. Deployed defaults are kept."""
    deployed = state.parameters if state else {}
    asked = {
        "BoundaryArn": deployed.get("BoundaryArn") or find_boundary(aws, config.cluster_name),
        "EfaInterfaces": capacity.efa_interfaces(aws, config),
        "CapacityType": capacity.capacity_type(aws, config),
    }
    if len(config.availability_zones) == 1:
        asked["Zone2"] = second_zone(aws, config, deployed.get("Zone2", ""))
    if not config.administrator_arn:
        asked["AdministratorArn"] = deployed.get("AdministratorArn") or aws.caller_arn()
    values = render.parameters(config, **asked)
    _raise_if_immutable_changed(state, values, "pdj aws destroy")
    if state:  # Another path would replace the roles, and with the control plane's role the cluster.
        values["RolePath"] = deployed.get("RolePath", "")
    # `upgrade` chose these.
    return values | {name: deployed[name] for name in ("AddonVersions", "NodeRelease") if name in deployed}


def _raise_if_immutable_changed(state: StackState | None, values: Parameters, undo: str) -> None:
    deployed = state.parameters if state else values
    problems = [
        f"{setting} cannot change from {deployed.get(name) or 'none'} to {values[name] or 'none'} while the cluster "
        f"or its data exists; restore it, or run `{undo}` first"
        for name, setting in render.IMMUTABLE.items()
        if name in values and deployed.get(name, "") != values[name]
    ]
    if problems:
        raise BadInput("\n".join(problems))
